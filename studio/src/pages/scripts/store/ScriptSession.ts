import { ApiError } from "../../../api/errors.ts";
import { SaveQueue, type SaveStatus } from "../../../components/save/SaveQueue.ts";
import { type Follow, unmoved } from "../document/follow.ts";
import { beginHistory, type History, record, redo, undo } from "../document/history.ts";
import { type Kept, type KeptWork } from "./kept.ts";
import { type WaitingForm, WaitingForms } from "./waiting.ts";

/** A script as it was loaded: its last version. */
export type LoadedScript = {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly version: number;
  readonly published: number | null;
};

/** Text that somebody else saved meanwhile; null where the script was removed. */
export type Conflict = { readonly theirs: string | null; readonly version: number };

export type ScriptSnapshot = SaveStatus & {
  readonly text: string;
  readonly version: number;
  readonly published: number | null;
  readonly canUndo: boolean;
  readonly canRedo: boolean;
  readonly conflict: Conflict | null;
  /** Time of the work that was found in the browser and put back. */
  readonly restoredFrom: number | null;
  /** Whether the browser keeps unsaved work. */
  readonly kept: boolean;
  /** Forms that are not valid, and so not in the text. */
  readonly waiting: readonly WaitingForm[];
};

type Options = {
  loaded: LoadedScript;
  /** Stores a draft behind a version, or in its place where it may be replaced; the number of the new one. */
  put: (text: string, version: number, replaces: boolean) => Promise<number>;
  work: KeptWork;
  /** Work of a page that is gone. */
  left?: { readonly place: string; readonly work: Kept } | undefined;
  /** Set when the script is not there any more. */
  gone?: boolean | undefined;
  delayMs?: number;
  now?: () => number;
};

/** The text of one script while it is edited: history, saving, conflicts, and what the browser keeps. */
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
  /** Set when the last version is another's that was merged, and has to stay. */
  #isMerged = false;
  /** The text of the last write that had no answer. */
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

  /** The text that the unsaved work began from. */
  get base(): string {
    return this.#base;
  }

  /** Whether closing the page would lose something. */
  get wouldLose(): boolean {
    return !this.#kept && this.#isUnsaved;
  }

  get #isUnsaved(): boolean {
    return this.text !== this.#base || this.#conflict !== null || this.#waiting.list.length > 0;
  }

  /**
   * Takes a text. Changes of one group that follow each other closely are undone together; `follow` tells where the parts are now, which is
   * found out from the texts without it.
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

  /** Keeps what was typed in a form that is not valid. */
  readonly hold = (form: WaitingForm): void => this.#wait(() => this.#waiting.put(form));

  readonly letGo = (form: WaitingForm): void => this.#wait(() => this.#waiting.remove(form));

  #wait(act: () => void): void {
    act();
    this.#keep();
    this.#tell();
  }

  /** Saves at once what waits. */
  flush = (): Promise<boolean> =>
    this.#conflict === null ? this.#queue.flush() : Promise.resolve(false);

  /** Ends a conflict with the text that was made of both. */
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
   * Takes what a refusal tells of another's work, when nothing was to be stored: their text where nothing is unsaved here (`shown`), else a
   * conflict. Null when the error is another one.
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

  /** Hands what is not saved over to the script that the text was saved as. */
  moveTo(work: KeptWork, version: number): void {
    if (this.#waiting.list.length > 0) work.keep({ ...this.#unsaved(), base: this.text, version });
    this.#work.forget();
  }

  /** Gives up what is not saved. */
  abandon(): void {
    this.#waiting.clear();
    this.#work.forget();
  }

  /** Takes the saved text in place of the work that was put back; `undo` brings that again. */
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
    // Two parts that are the same may change places.
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

  /** Has the browser keep what the server has not got. */
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
      // The old place is given up only once the new one has it.
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
    // It may have gone back meanwhile to what it was before.
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
