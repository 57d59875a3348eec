// Settings of a reading: from the form, from an example, from a link.

export const DIALECTS = ["auto", "thinkingml", "jsonseq", "aiplan", "filament", "ai_say", "toolcall", "json_value", "plain"];
const PROFILES = ["strict", "lenient"];
/** Finish reasons; the empty one stands for none. */
const REASONS = ["stop", "length", "content_filter", "tool_calls", "cancelled", ""];
const MOST_CHUNK = 100_000;

/** Settings of a new page. */
const DEFAULTS = { dialect: "auto", profile: "strict", finish: "stop", stream: false, chunk: 4, options: "", tools: "" };

export class SettingsForm {
  #form;

  constructor(form, onChange) {
    this.#form = form;
    form.addEventListener("input", onChange);
    form.addEventListener("submit", (event) => event.preventDefault());
    this.values = DEFAULTS;
  }

  /** Writes the names of the choices in another language. */
  translate(t) {
    const before = this.values;
    const fill = (name, values, textOf) => {
      this.#field(name).replaceChildren(...values.map((value) => new Option(textOf(value), value)));
    };
    fill("dialect", DIALECTS, (value) => (value === "auto" ? t("automatic") : value));
    fill("profile", PROFILES, t);
    fill("finish", REASONS, (value) => (value === "" ? t("finishNone") : value));
    this.values = before;
  }

  /** Values as they stand in the form, for a link. */
  get values() {
    const field = (name) => this.#field(name);
    const isFilled = field("dialect").options.length > 0;
    const choice = (name) => (isFilled ? field(name).value : DEFAULTS[name]);
    return {
      dialect: choice("dialect"),
      profile: choice("profile"),
      finish: choice("finish"),
      stream: field("stream").checked,
      chunk: chunkOf(field("chunk").value),
      options: field("options").value,
      tools: field("tools").value,
    };
  }

  /** Sets values; missing and foreign ones become those of a new page. */
  set values(given) {
    const choose = (name, values) => {
      this.#field(name).value = values.includes(given[name]) ? given[name] : DEFAULTS[name];
    };
    choose("dialect", DIALECTS);
    choose("profile", PROFILES);
    choose("finish", REASONS);
    this.#field("stream").checked = given.stream === true;
    this.#field("chunk").value = String(chunkOf(given.chunk));
    for (const name of ["options", "tools"]) {
      this.#field(name).value = typeof given[name] === "string" ? given[name] : "";
    }
    const details = this.#form.querySelector("details");
    if (this.#field("options").value !== "" || this.#field("tools").value !== "") details.open = true;
  }

  /** Settings for the reader; `null` if a field is no JSON object, which is said beside it. */
  read(t) {
    const { dialect, profile, finish, stream, chunk } = this.values;
    const options = this.#object("options", t);
    const tools = this.#object("tools", t);
    if (options === null || tools === null) return null;
    const withTools = this.#field("tools").value.trim() === "" ? {} : { tools };
    return {
      dialect,
      profile,
      finish: finish === "" ? null : finish,
      chunk: stream ? chunk : 0,
      options: { ...options, ...withTools },
    };
  }

  /** Object of a field; an empty one for no text. */
  #object(name, t) {
    const field = this.#field(name);
    let [value, problem] = [{}, ""];
    try {
      if (field.value.trim() !== "") value = JSON.parse(field.value);
      if (typeof value !== "object" || value === null || Array.isArray(value)) problem = t("notObject");
    } catch (error) {
      problem = t("notJson", { reason: error.message });
    }
    const note = this.#form.querySelector(`#${name}-problem`);
    note.textContent = problem;
    note.hidden = problem === "";
    field.setAttribute("aria-invalid", String(problem !== ""));
    return problem === "" ? value : null;
  }

  #field(name) {
    return this.#form.elements.namedItem(name);
  }
}

function chunkOf(value) {
  const chunk = Math.trunc(Number(value));
  return chunk >= 1 ? Math.min(chunk, MOST_CHUNK) : DEFAULTS.chunk;
}
