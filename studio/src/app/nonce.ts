/** The nonce of styles, which the server writes into the page. */
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";

/**
 * Gives style elements that scripts of the studio make the nonce of the page. Ant Design and CodeMirror take it for most
 * of theirs, but not for all; styles within HTML that is inserted never get it.
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
