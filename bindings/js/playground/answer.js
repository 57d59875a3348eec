// Answer as a reader of an application sees it: thinking folded, text, and blocks between. All of it is set as text.

/** Most characters that are shown of a text. */
const MOST_SHOWN = 100_000;
/** Most blocks and phases that are shown. */
const MOST_BLOCKS = 200;

/** Events that are blocks of the answer. */
const BLOCKS = new Set([
  "choice", "status_bar", "details", "ui_component", "media", "element", "plan", "tool_call", "state_update", "form",
  "picture", "skill", "exit_decision",
]);

/** Answer that is made from events, one after the other. */
export class AnswerModel {
  phases = [];
  blocks = [];
  summary = "";
  draft = "";
  queries = [];
  completed = null;
  failure = null;
  #isThought = false;

  add({ event, data }) {
    const isThought = event === "aside" && data.kind === "thought";
    if (event === "phase_start") this.phases.push({ title: data.title, text: "" });
    else if (event === "phase_delta") this.#think(data.text);
    else if (isThought) this.#aside(data.text);
    else if (event === "final_delta") this.#write(data.text);
    else if (event === "serp_summary") this.summary = data.text;
    else if (event === "serp_queries") this.queries = data.queries;
    else if (event === "draft_delta") this.draft += data.text;
    else if (event === "completed") this.completed = data;
    else if (event === "error") this.failure = data;
    else if (BLOCKS.has(event)) this.blocks.push({ kind: event, data });
    this.#isThought = isThought;
  }

  #think(text) {
    const last = this.phases.at(-1);
    if (last !== undefined) last.text += text;
  }

  /** Thoughts after the answer began come in pieces; together they are a phase without a title. */
  #aside(text) {
    if (this.#isThought) this.#think(text);
    else this.phases.push({ title: null, text });
  }

  #write(text) {
    const last = this.blocks.at(-1);
    if (last?.kind === "text") last.text += text;
    else this.blocks.push({ kind: "text", text });
  }
}

/** Makes an element with text or children. */
export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className !== "") element.className = className;
  element.append(...children);
  return element;
}

/** Part of a text that is shown. */
export function shorten(text, t, most = MOST_SHOWN) {
  return text.length <= most ? text : `${text.slice(0, most)}… ${t("moreCharacters", { count: text.length - most })}`;
}

/** Shows an answer in an element; an open thinking stays open. */
export function showAnswer(target, model, t) {
  const isOpen = target.querySelector("details.thinking")?.open ?? false;
  const parts = [];
  for (const note of notesOf(model, t)) parts.push(make("p", "note", note));
  if (model.summary !== "") parts.push(make("p", "muted", `${t("summary")}: ${shorten(model.summary, t)}`));
  if (model.draft !== "") parts.push(fold("draft", t("draft"), make("p", "prose", shorten(model.draft, t))));
  if (model.phases.length > 0) {
    const thinking = thinkingOf(model, t);
    thinking.open = isOpen;
    parts.push(thinking);
  }
  for (const block of model.blocks.slice(0, MOST_BLOCKS)) parts.push(blockOf(block, t));
  const left = model.blocks.length - MOST_BLOCKS;
  if (left > 0) parts.push(make("p", "muted", t("moreBlocks", { count: left })));
  if (model.queries.length > 0) {
    const list = make("ul", "chips", ...model.queries.map((query) => make("li", "", shorten(query, t))));
    parts.push(make("div", "block", make("p", "label", t("queries")), list));
  }
  if (model.blocks.length === 0) parts.push(make("p", "muted", t("noAnswer")));
  target.replaceChildren(...parts);
}

/** Outcome of the reply, in words. */
function notesOf({ completed, failure }, t) {
  const notes = [];
  if (failure !== null) notes.push(t("failed", { reason: `${failure.code}: ${failure.message}` }));
  const metadata = completed?.metadata;
  if (metadata?.fallback_reason != null) notes.push(t("fallback", { reason: metadata.fallback_reason }));
  if (metadata?.unused_reason != null) notes.push(t("unused", { reason: metadata.unused_reason }));
  if (metadata?.truncated === true) notes.push(t("cut"));
  for (const notice of metadata?.notices ?? []) notes.push(notice.message);
  return notes.slice(0, 20);
}

function thinkingOf(model, t) {
  const shown = model.phases.slice(0, MOST_BLOCKS).map(({ title, text }) =>
    make("li", "", make("p", "phase", title ?? t("thought")), make("p", "prose", shorten(text, t, 20_000))),
  );
  const left = model.phases.length - shown.length;
  if (left > 0) shown.push(make("li", "muted", t("morePhases", { count: left })));
  const count = t("phases", { count: model.phases.length });
  return fold("thinking", `${t("thinking")} · ${count}`, make("ol", "phases", ...shown));
}

function fold(className, title, ...children) {
  return make("details", className, make("summary", "", title), ...children);
}

function blockOf({ kind, text, data }, t) {
  if (kind === "text") return make("p", "prose", shorten(text, t));
  const label = labelOf(kind, data, t);
  const block = make("div", "block");
  if (kind === "choice" || kind === "status_bar") block.append(make("p", "label", label));
  if (kind === "choice") {
    if (data.prompt !== "") block.append(make("p", "prose", data.prompt));
    block.append(make("ul", "chips", ...data.options.slice(0, 100).map((option) => make("li", "", shorten(option.text, t, 1000)))));
  } else if (kind === "status_bar") {
    block.append(itemsOf(data.items, t));
  } else if (kind === "details") {
    block.append(fold("", data.summary || label, make("p", "prose", shorten(data.text, t))));
  } else {
    const value = kind === "tool_call" ? data.args : kind === "plan" ? data.plan : data;
    // A reader of an application does not see these; the program acts on them.
    block.append(fold("", label, make("pre", "json", shorten(JSON.stringify(value, null, 2), t, 20_000))));
  }
  return block;
}

function labelOf(kind, data, t) {
  if (kind === "tool_call") return t("block.tool_call", { name: data.name });
  if (kind === "plan") return `${t("block.plan")} · ${t(data.executable ? "executable" : "notExecutable")}`;
  return t(`block.${kind}`);
}

/** Items of a status bar, nested as deep as a reader can follow. */
function itemsOf(items, t, depth = 0) {
  const list = make("ul", "items");
  for (const { name, text, items: inner } of items.slice(0, 100)) {
    const item = make("li", "", make("span", "muted", `${name} `), shorten(text, t, 1000));
    if (inner.length > 0) item.append(depth < 4 ? itemsOf(inner, t, depth + 1) : "…");
    list.append(item);
  }
  return list;
}
