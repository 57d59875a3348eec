// Field of the reply, with the places of findings marked behind its text.
import { make } from "./answer.js";
import { cutText } from "./limits.js";

/** Most characters with marks behind them; of a longer text, a place is selected instead. */
const MOST_MARKED = 200_000;

const SEVERITIES = ["info", "warning", "error"];

/** UTF-8 bytes of a UTF-16 unit; the halves of a surrogate pair have two each. */
function bytesOf(unit) {
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return unit >= 0xd800 && unit <= 0xdfff ? 2 : 3;
}

/** Offsets in a string of byte offsets in ascending order, in one pass. */
function unitsAt(text, bytes) {
  const units = new Map();
  let at = 0;
  let sum = 0;
  for (const byte of [...new Set(bytes)].sort((one, other) => one - other)) {
    while (at < text.length && sum < byte) {
      sum += bytesOf(text.charCodeAt(at));
      at += 1;
    }
    units.set(byte, at);
  }
  return units;
}

/** Places of findings in the text: at least one character each, where there is one. */
export function placesOf(text, findings) {
  const units = unitsAt(text, findings.flatMap(({ span }) => [span.start, span.end]));
  return findings.map(({ span }) => {
    const start = units.get(span.start);
    const end = units.get(span.end);
    if (end > start) return { start, end };
    return start < text.length ? { start, end: start + 1 } : { start: Math.max(0, start - 1), end: start };
  });
}

export class Editor {
  #field;
  #marks;
  #findings = [];
  #places = [];
  #chosen = null;
  #onCut;

  /**
   * @param onInput - Called after the text has changed by typing.
   * @param onFinding - Called with the number of the finding where the caret was put.
   * @param onCut - Called after only the beginning of a text was taken.
   */
  constructor(field, marks, { onInput, onFinding, onCut }) {
    this.#field = field;
    this.#marks = marks;
    this.#onCut = onCut;
    field.addEventListener("input", () => {
      this.clearMarks();
      onInput();
    });
    field.addEventListener("paste", (event) => this.#insert(event, event.clipboardData));
    field.addEventListener("drop", (event) => this.#insert(event, event.dataTransfer));
    field.addEventListener("scroll", () => this.#follow());
    new ResizeObserver(() => this.#follow()).observe(field);
    field.addEventListener("click", () => {
      if (field.selectionStart !== field.selectionEnd) return;
      const at = field.selectionStart;
      const here = this.#places.findIndex(({ start, end }) => at >= start && at < end);
      if (here !== -1) onFinding(here);
    });
  }

  get text() {
    return this.#field.value;
  }

  /** Replaces the text; its marks go. */
  set text(text) {
    this.clearMarks();
    this.#field.value = cutText(text);
    this.#field.scrollTop = 0;
  }

  /** Inserts the beginning of a text that is too long for the field; of another text, the browser takes care. */
  #insert(event, data) {
    const text = data?.getData("text/plain") ?? "";
    const field = this.#field;
    const before = field.value.slice(0, field.selectionStart);
    const whole = `${before}${text}${field.value.slice(field.selectionEnd)}`;
    const short = cutText(whole);
    if (short.length === whole.length) return;
    event.preventDefault();
    field.value = short;
    field.setSelectionRange(before.length, before.length);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    this.#onCut();
  }

  clearMarks() {
    this.show([]);
  }

  /** Marks the places of findings in the text. */
  show(findings) {
    this.#findings = findings;
    this.#chosen = null;
    this.#places = findings.length === 0 ? [] : placesOf(this.text, findings);
    this.#draw();
  }

  /** Marks one finding, and scrolls to it. */
  choose(number) {
    this.#chosen = number;
    const place = this.#places[number];
    if (place === undefined) return;
    this.#field.setSelectionRange(place.start, place.end);
    if (this.text.length > MOST_MARKED) {
      // Browsers scroll to a selection when the field gets the focus.
      this.#field.blur();
      this.#field.focus();
      return;
    }
    this.#draw();
    const mark = this.#marks.querySelector(".chosen");
    if (mark === null) return;
    const top = mark.offsetTop;
    const { scrollTop, clientHeight } = this.#field;
    if (top < scrollTop || top + mark.offsetHeight > scrollTop + clientHeight) {
      this.#field.scrollTop = top - clientHeight / 3;
    }
    this.#follow();
  }

  /** Marks the text that a replay has read. */
  showRead(end) {
    if (this.text.length > MOST_MARKED) return;
    this.#marks.replaceChildren(make("mark", "read", this.text.slice(0, end)), `${this.text.slice(end)}\n`);
    this.#follow();
  }

  /** Shows the marks of the findings again. */
  endRead() {
    this.#draw();
  }

  #draw() {
    const { text } = this;
    if (this.#places.length === 0 || text.length > MOST_MARKED) {
      this.#marks.replaceChildren();
      return;
    }
    // Findings begin and end at the borders; between two of them, the same ones apply.
    const borders = new Map();
    this.#places.forEach(({ start, end }, number) => {
      for (const at of [start, end]) if (!borders.has(at)) borders.set(at, []);
      borders.get(start).push(number);
      borders.get(end).push(number);
    });
    const open = new Set();
    const parts = [];
    let before = 0;
    for (const at of [...borders.keys()].sort((one, other) => one - other)) {
      if (at > before) parts.push(this.#part(text.slice(before, at), open));
      for (const number of borders.get(at)) if (!open.delete(number)) open.add(number);
      before = at;
    }
    // A last line break needs something after it to have a height.
    parts.push(`${text.slice(before)}\n`);
    this.#marks.replaceChildren(...parts);
    this.#follow();
  }

  #part(text, open) {
    if (open.size === 0) return text;
    const worst = Math.max(...[...open].map((number) => SEVERITIES.indexOf(this.#findings[number].severity)));
    const isChosen = this.#chosen !== null && open.has(this.#chosen);
    return make("mark", `${SEVERITIES[worst]}${isChosen ? " chosen" : ""}`, text);
  }

  #follow() {
    this.#marks.scrollTop = this.#field.scrollTop;
  }
}
