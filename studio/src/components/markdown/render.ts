import MarkdownIt from "markdown-it";
import { kindOfAddress } from "./address.ts";
import { INLINE_TAGS, type ImageText, sanitize } from "./sanitize.ts";

const ALLOWED_TAG = new RegExp(String.raw`^<\/?(?:${INLINE_TAGS.join("|")})(?=[\s/>])`, "i");

const markdown = new MarkdownIt({ html: true, linkify: false, breaks: true });
// HTML of a reply is inline only; block HTML becomes a paragraph with tags in it.
markdown.disable("html_block");
markdown.validateLink = (address) => kindOfAddress(address) !== null;
// Tags that are not on the list are shown as text.
markdown.renderer.rules.html_inline = (tokens, index) => {
  const tag = tokens[index]?.content ?? "";
  return ALLOWED_TAG.test(tag) ? tag : markdown.utils.escapeHtml(tag);
};

/** Markdown as HTML that is safe to insert. */
export function renderMarkdown(text: string, imageText: ImageText): string {
  return sanitize(markdown.render(text), imageText);
}
