import createDOMPurify, { type Config } from "dompurify";
import { kindOfAddress } from "./address.ts";

/** Inline tags that a reply may hold (F-104). */
export const INLINE_TAGS = ["span", "br", "b", "strong", "i", "em", "u", "s", "ruby", "rt", "rp"];

/** Tags that Markdown itself produces. */
const MARKDOWN_TAGS = [
  "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "hr", "a", "img", "del",
  "table", "thead", "tbody", "tr", "th", "td",
];

const CONFIG: Config = {
  ALLOWED_TAGS: [...INLINE_TAGS, ...MARKDOWN_TAGS],
  ALLOWED_ATTR: ["href", "title", "src", "alt", "style", "start"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^/,
};

const COLOUR = String.raw`(?:#[0-9a-f]{3,8}|[a-z]{3,24}|(?:rgb|hsl)a?\((?:[\d.,%/ \t+-]|none|deg|grad|rad|turn){1,60}\))`;

/** Allowed style declarations, by name. */
const DECLARATIONS: Readonly<Record<string, RegExp>> = {
  color: new RegExp(`^${COLOUR}$`),
  "background-color": new RegExp(`^${COLOUR}$`),
  "font-weight": /^(?:normal|bold|bolder|lighter|[1-9]\d{0,2}|1000)$/,
  "font-style": /^(?:normal|italic|oblique(?:[ \t]+-?(?:[1-8]?\d|90)(?:\.\d+)?deg)?)$/,
  "text-decoration": new RegExp(
    `^(?:(?:underline|overline|line-through|none|solid|double|dotted|dashed|wavy|${COLOUR})(?:[ \\t]+|$)){1,5}$`,
  ),
};

/** Allowed declarations of a style. */
export function allowedStyle(style: string): string {
  const kept = style.split(";").flatMap((declaration) => {
    const [name = "", value = "", ...rest] = declaration.split(":");
    const plainName = name.trim().toLowerCase();
    const plainValue = value.replace(/!\s*important\s*$/i, "").trim().toLowerCase();
    const rule = Object.hasOwn(DECLARATIONS, plainName) ? DECLARATIONS[plainName] : undefined;
    return rest.length === 0 && rule?.test(plainValue) === true ? [`${plainName}: ${plainValue}`] : [];
  });
  return kept.join("; ");
}

/** Alignment of a cell, as Markdown writes it. */
const ALIGNED = /^text-align:\s*(?:left|center|right)$/;

/** Replacement text of an image that is not shown, from its description. */
export type ImageText = (alt: string) => string;

function keepAttributes(element: Element, imageText: ImageText): void {
  const tag = element.tagName.toLowerCase();
  for (const { name, value } of [...element.attributes]) {
    const keep =
      (tag === "a" && (name === "title" || (name === "href" && kindOfAddress(value) !== null))) ||
      (tag === "img" && (name === "alt" || name === "title" || name === "src")) ||
      (tag === "ol" && name === "start") ||
      (name === "style" && (tag === "span" || ((tag === "td" || tag === "th") && ALIGNED.test(value))));
    if (!keep) element.removeAttribute(name);
  }
  if (tag === "span" && element.hasAttribute("style")) {
    const style = allowedStyle(element.getAttribute("style") ?? "");
    if (style === "") element.removeAttribute("style");
    else element.setAttribute("style", style);
  }
  if (tag === "a" && element.hasAttribute("href")) {
    element.setAttribute("target", "_blank");
    element.setAttribute("rel", "noopener noreferrer nofollow");
  }
  if (tag === "img") element.replaceWith(imageOf(element, imageText));
}

/** Replaces pictures of other hosts by a link, or by the description if the link may not be followed. */
function imageOf(image: Element, imageText: ImageText): Node {
  const document = image.ownerDocument;
  const source = image.getAttribute("src") ?? "";
  const alt = image.getAttribute("alt") ?? "";
  const kind = kindOfAddress(source);
  if (kind === "relative") {
    const own = document.createElement("img");
    own.setAttribute("src", source);
    own.setAttribute("alt", alt);
    own.setAttribute("loading", "lazy");
    return own;
  }
  if (kind !== "https") return document.createTextNode(alt);
  const link = document.createElement("a");
  link.setAttribute("href", source);
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
  link.textContent = imageText(alt === "" ? source : alt);
  return link;
}

/** HTML that is safe to insert: only the output of Markdown and the inline list of replies (F-106). */
export function sanitize(html: string, imageText: ImageText): string {
  const purify = createDOMPurify(window);
  const body = purify.sanitize(html, { ...CONFIG, RETURN_DOM: true }) as HTMLElement;
  for (const element of [...body.querySelectorAll("*")]) keepAttributes(element, imageText);
  // Reads the output of DOMPurify as text; writes nothing.
  // eslint-disable-next-line no-restricted-syntax
  return body.innerHTML;
}
