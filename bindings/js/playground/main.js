// The page: what is typed is read, and what is read is shown.
import { AnswerModel, make, showAnswer, shorten } from "./answer.js";
import { Reader } from "./client.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { SettingsForm } from "./form.js";
import { LONGEST, MOST_LINES } from "./limits.js";
import { addEvent, markFinding, showEvents, showFindings } from "./lists.js";
import { fragmentOf, valueOf } from "./share.js";
import { LANGUAGES, textsIn, translate } from "./texts.js";

/** Milliseconds after the last change before the text is read; a large text waits longer. */
const PAUSE = 120;
const LONG_PAUSE = 600;
const LONG_TEXT = 100_000;
/** Milliseconds between two events of a replay. */
const TICK = 140;
/** Most characters of a link that browsers and messages take. */
const LONGEST_LINK = 1_000_000;

const LANGUAGE_KEY = "tambour.playground.language";
const byId = (id) => document.getElementById(id);

class Page {
  #editor = new Editor(byId("reply"), document.querySelector(".marks"), {
    onInput: () => this.#typed(),
    onFinding: (number) => this.#choose(number, false),
    onCut: () => (byId("size").textContent = this.#t("cutText", { count: MOST_LINES })),
  });
  #form = new SettingsForm(document.querySelector("form"), () => this.#changed());
  #t = textsIn("en");
  #language = "en";
  /** Text that was typed, and its settings, while an example is shown. */
  #own = null;
  #example = "";
  #reader = new Reader();
  #isReady = false;
  #result = null;
  #timer = 0;
  #replayTimer = 0;

  async start() {
    this.#listen();
    this.#speak(preferredLanguage());
    this.#load(EXAMPLES[0]);
    if (!(await this.#open(location.hash))) this.#note("share-note", "linkBroken");
    byId("verdict").textContent = this.#t("loading");
    try {
      await this.#reader.start();
    } catch (error) {
      this.#show("noEngine", { reason: error.message });
      byId("verdict").textContent = "";
      return;
    }
    this.#isReady = true;
    this.#changed(0);
  }

  #listen() {
    byId("language").addEventListener("change", (event) => this.#speak(event.target.value));
    byId("example").addEventListener("change", (event) => this.#choice(event.target.value));
    byId("replay").addEventListener("click", () => (this.#replayTimer === 0 ? this.#replay() : this.#stop()));
    byId("share").addEventListener("click", () => void this.#share());
    byId("copy").addEventListener("click", () => void this.#copy());
    addEventListener("hashchange", async () => {
      if (!(await this.#open(location.hash))) this.#note("share-note", "linkBroken");
    });
  }

  // Language and examples

  #speak(language) {
    this.#language = language;
    this.#t = textsIn(language);
    byId("language").value = language;
    document.documentElement.lang = language;
    document.title = this.#t("title");
    byId("reply").placeholder = this.#t("replyPlaceholder");
    translate(document, this.#t);
    this.#form.translate(this.#t);
    this.#fillExamples();
    this.#note("share-note");
    keepLanguage(language);
    // Default texts of a reply, such as the titles of phases, are in the language of the page.
    this.#changed(0);
  }

  #fillExamples() {
    const groups = ["broken", "correct"].map((group) => {
      const element = document.createElement("optgroup");
      element.label = this.#t(group);
      const own = EXAMPLES.filter((example) => example.group === group);
      element.append(...own.map(({ id, name }) => new Option(name[this.#language], id)));
      return element;
    });
    byId("example").replaceChildren(new Option(this.#t("ownText"), ""), ...groups);
    byId("example").value = this.#example;
  }

  #choice(id) {
    if (this.#example === "") this.#own = { ...this.#form.values, text: this.#editor.text };
    const example = EXAMPLES.find((one) => one.id === id);
    this.#load(example ?? { id: "", text: "", ...this.#own });
    this.#changed(0);
  }

  #load(given) {
    this.#stop();
    this.#form.values = given;
    this.#editor.text = given.text;
    this.#example = given.id ?? "";
    byId("example").value = this.#example;
  }

  // Reading

  #typed() {
    this.#example = "";
    byId("example").value = "";
    this.#changed();
  }

  /** Reads the text after a pause. */
  #changed(pause = this.#editor.text.length > LONG_TEXT ? LONG_PAUSE : PAUSE) {
    this.#stop();
    this.#reader.cancel();
    clearTimeout(this.#timer);
    this.#showSize();
    if (!this.#isReady) return;
    this.#isBusy = true;
    this.#timer = setTimeout(() => void this.#read(), pause);
  }

  async #read() {
    const settings = this.#form.read(this.#t);
    if (settings === null) {
      this.#isBusy = false;
      return;
    }
    const text = this.#editor.text.slice(0, LONGEST);
    if (text.trim() === "") {
      this.#showNothing();
      return;
    }
    const options = { text_language: this.#language, ...settings.options };
    const percent = new Intl.NumberFormat(this.#language, { style: "percent" });
    const answer = await this.#reader.read({ ...settings, options, text }, (part) => {
      byId("verdict").textContent = this.#t("readingPart", { part: percent.format(part) });
    });
    if (answer === null) return;
    if (answer.result !== undefined) {
      this.#showResult(answer.result, text);
      return;
    }
    this.#showNothing();
    byId("verdict").textContent = "";
    if (answer.problem !== undefined) this.#problem(answer.problem);
    else this.#show(answer.fault);
  }

  // Showing

  #showSize() {
    const count = this.#editor.text.length;
    byId("size").textContent = this.#t(count > LONGEST ? "sizeLeft" : "size", { count, most: LONGEST });
  }

  /** Says that what is shown is not that of the text. */
  set #isBusy(value) {
    document.querySelector(".results").setAttribute("aria-busy", String(value));
  }

  #showNothing() {
    this.#isBusy = false;
    this.#result = null;
    this.#problem("");
    byId("verdict").textContent = this.#t("empty");
    byId("replay").disabled = true;
    byId("copy").hidden = true;
    for (const id of ["answer", "findings", "events", "repaired", "findings-count", "events-count"]) byId(id).replaceChildren();
    this.#editor.clearMarks();
  }

  #showResult(result, text) {
    const t = this.#t;
    this.#isBusy = false;
    this.#result = result;
    this.#problem("");
    this.#showVerdict();
    showAnswer(byId("answer"), result.answer, t);
    showFindings(byId("findings"), result.findings, t, (number) => this.#choose(number, true));
    byId("findings-count").textContent = t("number", { count: result.findings.length });
    this.#showEvents();
    this.#showRepaired(text);
    this.#editor.show(result.findings);
    byId("replay").disabled = result.events.length === 0;
  }

  #showVerdict() {
    const { dialect, passed, findings } = this.#result;
    const count = (severity) => findings.filter((finding) => finding.severity === severity).length;
    byId("verdict").replaceChildren(
      make("span", `badge ${passed ? "pass" : "error"}`, this.#t(passed ? "pass" : "fail")),
      " ",
      make("span", "badge", dialect),
      " ",
      make("span", "muted", this.#t("counts", {
        errors: count("error"),
        warnings: count("warning"),
        notes: count("info"),
        repairs: findings.filter(({ repair }) => repair !== null).length,
      })),
    );
  }

  #showEvents() {
    const { events, count } = this.#result;
    showEvents(byId("events"), events, count, this.#t);
    byId("events-count").textContent = this.#t("number", { count });
  }

  #showRepaired(text) {
    const t = this.#t;
    const { repaired, findings, passed } = this.#result;
    byId("copy").hidden = true;
    this.#note("copy-note");
    if (repaired.problem !== undefined) {
      byId("repaired").replaceChildren(make("p", "muted", t("notRepaired", { reason: repaired.problem })));
      return;
    }
    // A reply without repairs stays as it is, however its dialect would write it.
    if (repaired.text === text || (passed && findings.every(({ repair }) => repair === null))) {
      byId("repaired").replaceChildren(make("p", "muted", t("same")));
      return;
    }
    byId("copy").hidden = false;
    const note = repaired.is_fallback ? [make("p", "note", t("isFallback"))] : [];
    byId("repaired").replaceChildren(...note, make("pre", "raw", shorten(repaired.text, t)));
  }

  #choose(number, scrolls) {
    this.#stop();
    markFinding(byId("findings"), number);
    this.#editor.choose(number);
    if (scrolls) byId("reply").scrollIntoView({ block: "nearest" });
  }

  // Replay

  #replay() {
    const { events } = this.#result;
    const model = new AnswerModel();
    const list = make("ol", "events");
    byId("events").replaceChildren(list);
    byId("findings").setAttribute("aria-busy", "true");
    byId("replay").textContent = this.#t("stop");
    let at = 0;
    const step = () => {
      const event = events[at];
      model.add(event);
      addEvent(list, event, at, this.#t);
      at += 1;
      byId("events").scrollTop = byId("events").scrollHeight;
      showAnswer(byId("answer"), model, this.#t);
      this.#editor.showRead(event.read);
      byId("events-count").textContent = this.#t("replaying", { at, count: events.length });
      this.#replayTimer = at < events.length ? setTimeout(step, TICK) : setTimeout(() => this.#stop(), TICK * 4);
    };
    step();
  }

  /** Ends a replay: everything is shown again. */
  #stop() {
    if (this.#replayTimer === 0) return;
    clearTimeout(this.#replayTimer);
    this.#replayTimer = 0;
    byId("findings").removeAttribute("aria-busy");
    byId("replay").textContent = this.#t("replay");
    this.#editor.endRead();
    if (this.#result === null) return;
    showAnswer(byId("answer"), this.#result.answer, this.#t);
    this.#showEvents();
  }

  // Links and the clipboard

  async #share() {
    const text = this.#editor.text;
    const fragment = await fragmentOf({ ...this.#form.values, text });
    if (fragment.length > LONGEST_LINK) {
      this.#note("share-note", "shareLong");
      return;
    }
    history.replaceState(null, "", fragment);
    this.#note("share-note", (await write(location.href)) ? "shareDone" : "shareShown");
  }

  /** Takes the input of a link; false if the fragment is none. Without a fragment, nothing happens. */
  async #open(fragment) {
    if (fragment.length < 2) return true;
    const value = await valueOf(fragment);
    if (typeof value?.text !== "string") return false;
    this.#load({ ...value, id: "" });
    this.#changed(0);
    return true;
  }

  async #copy() {
    const isDone = await write(this.#result?.repaired.text ?? "");
    this.#note("copy-note", isDone ? "copyDone" : "copyFailed");
    byId("copy").textContent = this.#t(isDone ? "copyDone" : "copyFailed");
    setTimeout(() => (byId("copy").textContent = this.#t("copy")), 2000);
  }

  #note(id, key) {
    byId(id).textContent = key === undefined ? "" : this.#t(key);
  }

  #show(key, values) {
    this.#problem(this.#t(key, values));
  }

  #problem(text) {
    byId("problem").textContent = text;
    byId("problem").hidden = text === "";
  }
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function preferredLanguage() {
  let kept = null;
  try {
    kept = localStorage.getItem(LANGUAGE_KEY);
  } catch {
    // Storage is off.
  }
  if (LANGUAGES.includes(kept)) return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

function keepLanguage(language) {
  try {
    localStorage.setItem(LANGUAGE_KEY, language);
  } catch {
    // It is chosen again next time.
  }
}

void new Page().start();
