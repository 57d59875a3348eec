import { type TypedEvent } from "../../api/types.ts";

/** Place in the raw text that an event was read from. */
export type Place = { readonly start: number; readonly end: number };

/** Text of an event that occurs in the raw reply, if any. */
export function textOf({ event, data }: { event: string; data: unknown }): string {
  const fields = data as Readonly<Record<string, unknown>>;
  const text = (name: string) => (typeof fields[name] === "string" ? fields[name] : "");
  switch (event) {
    case "phase_start":
      return text("title");
    case "phase_delta":
    case "final_delta":
    case "draft_delta":
    case "serp_summary":
    case "aside":
    case "element":
      return text("text");
    case "details":
      return text("summary") || text("text");
    case "choice":
      return text("prompt") || ((fields["options"] as { text: string }[] | undefined)?.[0]?.text ?? "");
    case "ui_component":
      return text("view");
    case "media":
      return text("src");
    case "tool_call":
      return text("name");
    case "status_bar":
      return (fields["items"] as { text: string }[] | undefined)?.[0]?.text ?? "";
    case "state_update":
      return text("analysis") || ((fields["operations"] as { path: string }[] | undefined)?.[0]?.path ?? "");
    case "serp_queries":
      return (fields["queries"] as string[] | undefined)?.[0] ?? "";
    default:
      return "";
  }
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);
const encoded = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Encodings of a text in a reply. */
const FORMS = [(text: string) => text, escaped, encoded];

/** Search distance after the last place. */
const REACH = 200_000;

/** Most characters searched in vain for one reply; later texts have no place. */
const MOST_IN_VAIN = 200_000_000;

/**
 * Finds the texts of events in the raw reply. Events have no offsets: each text is searched after the previous one,
 * as is and in the escapes of JSON and markup. Texts that were invented or changed have no place.
 */
export function placesOf(raw: string, events: readonly TypedEvent[]): (Place | null)[] {
  let from = 0;
  let left = MOST_IN_VAIN;
  const find = (text: string): Place | null => {
    for (const form of FORMS) {
      if (left <= 0) return null;
      const whole = form(text);
      // A search in the whole text would go to its end each time.
      const near = raw.slice(from, from + REACH + whole.length);
      const at = near.indexOf(whole);
      if (at !== -1) return { start: from + at, end: from + at + whole.length };
      left -= near.length;
    }
    return null;
  };
  return events.map((event) => {
    const text = textOf(event).trim();
    if (text === "") return null;
    // Searches the beginning of a text that was repaired further on.
    const first = text.slice(0, 24);
    const begin = () => (first.length < 6 || first.length === text.length ? null : find(first));
    const found = find(text) ?? begin();
    const place = found === null ? null : { ...found, end: Math.max(found.end, Math.min(raw.length, found.start + text.length)) };
    if (place !== null) from = place.end;
    return place;
  });
}

/** First event with a place between two offsets, or the last one before them. */
export function eventIn(places: readonly (Place | null)[], start: number, end: number): number | null {
  const within = places.findIndex((place) => place !== null && place.start < end && place.end > start);
  return within === -1 ? eventAt(places, start) : within;
}

/** Event whose place holds an offset, or the last one before it. */
export function eventAt(places: readonly (Place | null)[], offset: number): number | null {
  let before: number | null = null;
  for (const [index, place] of places.entries()) {
    if (place === null) continue;
    if (place.start <= offset) before = index;
    if (offset >= place.start && offset < place.end) return index;
  }
  return before;
}
