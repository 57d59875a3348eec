/** HTML of `renderMarkdown`; no other component of the studio inserts HTML. */
export function SafeHtml({ html, className }: { html: string; className?: string | undefined }) {
  // eslint-disable-next-line no-restricted-syntax
  return <div className={className} dangerouslySetInnerHTML={{ __html: html }} />;
}
