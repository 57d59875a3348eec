import { ApiError } from "../../../api/errors.ts";
import { SaveQueue, type SaveStatus } from "../../../components/save/SaveQueue.ts";
import { type Follow, unmoved } from "../document/follow.ts";
import { beginHistory, type History, record, redo, undo } from "../document/history.ts";
import { type Kept, type KeptWork } from "./kept.ts";
import { type WaitingForm, WaitingForms } from "./waiting.ts";

/** Script as loaded: its last version. */
export type LoadedScript = {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly version: number;
  readonly published: number | null;
};

/** Text that another user saved meanwhile; null if the script was removed. */
export type Conflict = { readonly theirs: string | null; readonly version: number };

export type ScriptSnapshot = SaveStatus & {
  readonly text: string;
  readonly version: number;
  readonly published: number | null;
  readonly canUndo: boolean;
  readonly canRedo: boolean;
  readonly conflict: Conflict | null;
  /** Time of the work restored from the browser. */
  readonly restoredFrom: number | null;
  /** True if the browser keeps unsaved work. */
  readonly kept: boolean;
  /** Invalid forms, which are not in the text. */
  readonly waiting: readonly WaitingForm[];
};

type Options = {
  loaded: LoadedScript;
  /** Stores a draft after a version, or in its place if allowed; returns the number of the new one. */
  put: (text: string, version: number, replaces: boolean) => Promise<number>;
  work: KeptWork;
  /** Work left by a page that is gone. */
  left?: { readonly place: string; readonly work: Kept } | undefined;
  /** Set if the script no longer exists. */
  gone?: boolean | undefined;
  delayMs?: number;
  now?: () => number;
};

/** Text of one script under edit: history, saving, conflicts, and unsaved work in the browser. */
export class ScriptSession {
  readonly #queue: SaveQueue<string>;
  readonly #put: Options["put"];
  readonly #work: KeptWork;
  readonly #name: string;
  readonly #waiting: WaitingForms;
  readonly #now: () => number;
  readonly #listeners = new Set<() => void>();
  #history: History;
  #base: string;
  #version: number;
  #published: number | null;
  #conflict: Conflict | null = null;
  #restoredFrom: number | null = null;
  #kept = true;
  /** Set if the last version is another user's, which was merged and must stay. */
  #isMerged = false;
  /** Text of the last write without an answer. */
  #sent: string | null = null;
  #snapshot: ScriptSnapshot;

  constructor({ loaded, put, work, left, gone = false, delayMs = 800, now = Date.now }: Options) {
    this.#put = put;
    this.#work = work;
    this.#name = loaded.name;
    this.#waiting = new WaitingForms(loaded.text);
    this.#conflict = gone ? REMOVED : null;
    this.#now = now;
    this.#base = loaded.text;
    this.#version = loaded.version;
    this.#published = loaded.published;
    this.#history = beginHistory(loaded.text);
    this.#queue = new SaveQueue((text: string) => this.#save(text), { delayMs });
    this.#queue.subscribe(() => this.#tell());
    this.#snapshot = this.#look();
    if (left !== undefined) this.#takeBack(left.work, loaded, left.place);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly snapshot = (): ScriptSnapshot => this.#snapshot;

  get text(): string {
    return this.#history.present;
  }

  /** Text that the unsaved work is based on. */
  get base(): string {
    return this.#base;
  }

  /** True if closing the page would lose something. */
  get wouldLose(): boolean {
    return !this.#kept && this.#isUnsaved;
  }

  get #isUnsaved(): boolean {
    return this.text !== this.#base || this.#conflict !== null || this.#waiting.list.length > 0;
  }

  /**
   * Applies a text. Changes of one group in close succession are undone together; `follow` gives the new places of the parts, which are
   * found by comparing the texts without it.
   */
  change(text: string, group: string | null = null, follow?: Follow): void {
    this.#become(record(this.#history, text, group, this.#now()), follow);
  }

  undo(): void {
    this.#become(undo(this.#history));
  }

  redo(): void {
    this.#become(redo(this.#history));
  }

  readonly waitingFor = (part: string, form: string): WaitingForm | null => this.#waiting.find(part, form);

  /** Keeps the values of an invalid form. */
  readonly hold = (form: WaitingForm): void => this.#wait(() => this.#waiting.put(form));

  readonly letGo = (form: WaitingForm): void => this.#wait(() => this.#waiting.remove(form));

  #wait(act: () => void): void {
    act();
    this.#keep();
    this.#tell();
  }

  /** Saves pending changes at once. */
  flush = (): Promise<boolean> =>
    this.#conflict === null ? this.#queue.flush() : Promise.resolve(false);

  /** Ends a conflict with the merged text. */
  resolve(text: string): void {
    if (this.#conflict === null) return;
    this.#base = this.#conflict.theirs ?? "";
    this.#version = this.#conflict.version;
    this.#conflict = null;
    this.#isMerged = true;
    this.#history = record(this.#history, text, null, this.#now());
    this.#waiting.follow(text);
    this.#changed();
    void this.flush();
  }

  /**
   * Takes over another user's work from a refusal of a request that stores no text: their text if nothing is unsaved here (`shown`), else
   * a conflict. Null for any other error.
   */
  meet(error: unknown): "shown" | "conflict" | null {
    const conflict = conflictOf(error);
    if (conflict === null) return null;
    if (conflict.theirs === null || this.text !== this.#base) {
      this.#conflict = conflict;
      this.#keep();
      this.#tell();
      return "conflict";
    }
    this.#base = conflict.theirs;
    this.#version = conflict.version;
    this.#history = record(this.#history, conflict.theirs, null, this.#now());
    this.#waiting.follow(conflict.theirs);
    this.#changed();
    return "shown";
  }

  /** Hands unsaved work over to the script that the text was saved as. */
  moveTo(work: KeptWork, version: number): void {
    if (this.#waiting.list.length > 0) work.keep({ ...this.#unsaved(), base: this.text, version });
    this.#work.forget();
  }

  /** Discards unsaved work. */
  abandon(): void {
    this.#waiting.clear();
    this.#work.forget();
  }

  /** Replaces restored work by the saved text; `undo` brings it back. */
  discardRestored(): void {
    this.#restoredFrom = null;
    this.#waiting.clear();
    this.change(this.#base);
    this.#keep();
    this.#tell();
  }

  keepRestored(): void {
    this.#restoredFrom = null;
    this.#tell();
  }

  hasPublished(version: number): void {
    this.#published = version;
    this.#tell();
  }

  #become(history: History | null, follow?: Follow): void {
    // Two equal parts may change places without a change of the text.
    if (history === null || (history === this.#history && (follow === undefined || follow === unmoved))) return;
    this.#history = history;
    this.#waiting.follow(this.text, follow);
    this.#changed();
  }

  #changed(): void {
    this.#keep();
    if (this.text === this.#base) this.#queue.discard();
    else if (this.#conflict === null) this.#queue.change(this.text);
    this.#tell();
  }

  /** Keeps unsaved work in the browser. */
  #keep(): void {
    if (this.#isUnsaved) this.#kept = this.#work.keep(this.#unsaved());
    else this.#work.forget();
  }

  #unsaved(): Kept {
    const { list: forms, text: formsOf } = this.#waiting;
    const waiting = forms.length === 0 ? {} : { forms, ...(formsOf === this.text ? {} : { formsOf }) };
    return { name: this.#name, text: this.text, base: this.#base, version: this.#version, at: this.#now(), ...waiting };
  }

  #takeBack(work: Kept, loaded: LoadedScript, place: string): void {
    const { forms = [], formsOf = work.text } = work;
    const typed = work.text !== work.base && work.text !== loaded.text;
    if (typed) {
      this.#history = record(this.#history, work.text, null, this.#now());
      if (work.version !== loaded.version && work.base !== loaded.text) {
        this.#base = work.base;
        this.#version = work.version;
        this.#conflict = { theirs: loaded.text, version: loaded.version };
      }
    }
    if (typed || forms.length > 0 || this.#conflict !== null) {
      this.#restoredFrom = work.at;
      this.#waiting.restore(forms, formsOf);
      this.#waiting.follow(this.text);
      this.#changed();
      // The old place is given up only if the new one has the work.
      if (!this.#kept) return;
    }
    this.#work.forget(place);
  }

  async #save(text: string): Promise<void> {
    try {
      this.#saved(text, await this.#put(text, this.#version, !this.#isMerged));
    } catch (error) {
      if (error instanceof ApiError && error.isUnreachable) this.#sent = text;
      const conflict = error instanceof ApiError && error.code === "not_found" ? REMOVED : conflictOf(error);
      if (conflict === null) throw error;
      // The write had arrived, and only its answer was lost.
      if (conflict.theirs === text) {
        this.#saved(text, conflict.version);
        return;
      }
      if (conflict.theirs !== null && conflict.theirs === this.#sent) {
        this.#saved(conflict.theirs, conflict.version);
        return this.#save(text);
      }
      this.#conflict = conflict;
      this.#keep();
      throw error;
    }
  }

  #saved(text: string, version: number): void {
    this.#base = text;
    this.#version = version;
    this.#sent = null;
    this.#isMerged = false;
    this.#keep();
    // The text may have gone back meanwhile to an earlier one.
    if (this.text !== text) this.#queue.change(this.text);
  }

  #look(): ScriptSnapshot {
    return {
      ...this.#queue.status(),
      text: this.text,
      version: this.#version,
      published: this.#published,
      canUndo: this.#history.past.length > 0,
      canRedo: this.#history.future.length > 0,
      conflict: this.#conflict,
      restoredFrom: this.#restoredFrom,
      kept: this.#kept,
      waiting: this.#waiting.list,
    };
  }

  #tell(): void {
    this.#snapshot = this.#look();
    this.#listeners.forEach((listener) => listener());
  }
}

const REMOVED: Conflict = { theirs: null, version: 0 };

function conflictOf(error: unknown): Conflict | null {
  if (!(error instanceof ApiError) || error.code !== "changed_meanwhile") return null;
  const present = error.problem["present"] as { yaml?: unknown; version?: unknown } | null | undefined;
  return typeof present?.yaml === "string" && typeof present.version === "number"
    ? { theirs: present.yaml, version: present.version }
    : REMOVED;
}
