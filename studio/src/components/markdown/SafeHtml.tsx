/** HTML of `renderMarkdown`, the one place of the studio that inserts any. */
export function SafeHtml({ html, className }: { html: string; className?: string | undefined }) {
  // eslint-disable-next-line no-restricted-syntax
  return <div className={className} dangerouslySetInnerHTML={{ __html: html }} />;
}
