/** Nonce of styles, written into the page by the server. */
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";

/**
 * Gives the nonce of the page to style elements that the studio's scripts create. Ant Design and CodeMirror set it on
 * most of theirs, but not on all; styles in inserted HTML never get it.
 */
export function giveNonceToStyles(): void {
  /* eslint-disable @typescript-eslint/no-deprecated, @typescript-eslint/unbound-method --
     only its form for names that no element has is deprecated; it is called on its document */
  document.createElement = new Proxy(document.createElement, {
    apply: (make, self: Document, given: [string, ElementCreationOptions?]) => {
      const element = make.apply(self, given);
      if (element instanceof HTMLStyleElement) element.nonce = nonce;
      return element;
    },
  });
  /* eslint-enable */
}
