// @vitest-environment jsdom
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { kindOfAddress } from "./address.ts";
import { allowedStyle, INLINE_TAGS } from "./sanitize.ts";

const LIBRARY = join(import.meta.dirname, "../../../../crates/tambour");
const source = (path: string) => readFileSync(join(LIBRARY, path), "utf8");

/** Part of a file between two texts. */
function between(text: string, start: string, end: string): string {
  const from = text.indexOf(start) + start.length;
  const to = text.indexOf(end, from);
  if (from < start.length || to === -1) throw new Error(`there is no ${start} … ${end}`);
  return text.slice(from, to);
}

/** Texts in a piece of Rust. */
const textsOf = (rust: string): string[] => [...rust.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => textOf(text ?? ""));

const textOf = (written: string): string =>
  JSON.parse(`"${written.replace(/\\u\{(\w+)\}/g, (_, code: string) => `\\u${code.padStart(4, "0")}`)}"`) as string;

describe("F-106: the list of the studio and that of the server", () => {
  it("have the same elements", () => {
    const frame = source("src/dialect/filament/frame/element_tokens.rs");
    expect([...INLINE_TAGS].sort()).toEqual(textsOf(between(frame, "const INLINE_HTML: &[&str] = &[", "];")).sort());
  });

  it("have the same properties of a style", () => {
    const names = textsOf(between(source("src/html/style.rs"), "match name.to_ascii_lowercase().as_str() {", "_ => false"));
    expect(names.length).toBeGreaterThan(3);
    const values = { color: "red", "background-color": "red", "font-weight": "bold", "font-style": "italic", "text-decoration": "none" };
    expect(Object.keys(values).sort()).toEqual(names.sort());
    for (const [name, value] of Object.entries(values)) expect(allowedStyle(`${name}: ${value}`)).toBe(`${name}: ${value}`);
  });

  const styles = source("tests/it/html/styles.rs");
  const validStyles = textsOf(between(styles, "fn values_of_the_grammar_stay()", "] {"));
  const removedStyles = textsOf(between(styles, "fn other_values_go()", "] {"));

  it.each(validStyles)("keep the style %s", (style) => {
    expect(allowedStyle(style).split("; ")).toHaveLength(style.split(";").filter((part) => part.trim() !== "").length);
  });

  // An invalid colour has no effect in a browser; anything effective must be removed.
  it.each(removedStyles.filter((style) => !/^(?:color|text-decoration):[#\w\s(),%/.]*$/.test(style) || /url|expression|var|attr|calc/.test(style)))(
    "drop the style %s",
    (style) => expect(allowedStyle(style)).toBe(""),
  );

  const media = between(source("tests/it/filament.rs"), "fn sources_of_media_are_held_to_the_list()", "] {");
  const addresses = [...media.matchAll(/\("((?:[^"\\]|\\.)*)", (true|false)\)/g)].map(([, written = "", fine]) => {
    return [textOf(written).replaceAll("&amp;", "&"), fine === "true"] as const;
  });

  it.each(addresses)("judge the address %s alike", (address, fine) => expect(kindOfAddress(address) !== null).toBe(fine));

  it("have addresses and styles to compare", () => {
    expect(Math.min(validStyles.length, removedStyles.length, addresses.length)).toBeGreaterThan(15);
  });
});
