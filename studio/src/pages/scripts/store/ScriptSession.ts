import { ApiError } from "../../../api/errors.ts";
import { SaveQueue, type SaveStatus } from "../../../components/save/SaveQueue.ts";
import { beginHistory, type History, record, redo, undo } from "../document/history.ts";
import { type Kept, type KeptWork } from "./kept.ts";

/** A script as it was loaded: its last version. */
export type LoadedScript = {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly version: number;
  readonly published: number | null;
};

/** Somebody else saved meanwhile, or removed the script. */
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
};

type Options = {
  loaded: LoadedScript;
  /** Stores a draft behind a version; the number of the new one. */
  put: (text: string, version: number) => Promise<number>;
  work: KeptWork;
  /** Work of a page that is gone. */
  left?: { readonly place: string; readonly work: Kept } | undefined;
  delayMs?: number;
  now?: () => number;
};

/** The text of one script while it is edited: history, saving, conflicts, and what the browser keeps. */
export class ScriptSession {
  readonly #queue: SaveQueue<string>;
  readonly #put: Options["put"];
  readonly #work: KeptWork;
  readonly #now: () => number;
  readonly #listeners = new Set<() => void>();
  #history: History;
  #base: string;
  #version: number;
  #published: number | null;
  #conflict: Conflict | null = null;
  #restoredFrom: number | null = null;
  #kept = true;
  /** The text of the last write that had no answer. */
  #sent: string | null = null;
  #snapshot: ScriptSnapshot;

  constructor({ loaded, put, work, left, delayMs = 800, now = Date.now }: Options) {
    this.#put = put;
    this.#work = work;
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
    return !this.#kept && this.text !== this.#base;
  }

  /** Takes a text. Changes of one group that follow each other closely are undone together. */
  change(text: string, group: string | null = null): void {
    this.#become(record(this.#history, text, group, this.#now()));
  }

  undo(): void {
    this.#become(undo(this.#history));
  }

  redo(): void {
    this.#become(redo(this.#history));
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
    this.#history = record(this.#history, text, null, this.#now());
    this.#changed();
    void this.flush();
  }

  /** Takes the saved text in place of the work that was put back; `undo` brings that again. */
  discardRestored(): void {
    this.#restoredFrom = null;
    this.change(this.#base);
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

  #become(history: History | null): void {
    if (history === null || history === this.#history) return;
    this.#history = history;
    this.#changed();
  }

  #changed(): void {
    if (this.text === this.#base && this.#conflict === null) {
      this.#work.forget();
      this.#queue.discard();
    } else {
      this.#keep();
      if (this.#conflict === null) this.#queue.change(this.text);
    }
    this.#tell();
  }

  #keep(): void {
    this.#kept = this.#work.keep({ text: this.text, base: this.#base, version: this.#version, at: this.#now() });
  }

  #takeBack(work: Kept, loaded: LoadedScript, place: string): void {
    if (work.text !== loaded.text) {
      this.#restoredFrom = work.at;
      this.#history = record(this.#history, work.text, null, this.#now());
      if (work.version !== loaded.version && work.base !== loaded.text) {
        this.#base = work.base;
        this.#version = work.version;
        this.#conflict = { theirs: loaded.text, version: loaded.version };
      }
      this.#changed();
      // The old place is given up only once the new one has it.
      if (!this.#kept) return;
    }
    this.#work.forget(place);
  }

  async #save(text: string): Promise<void> {
    try {
      this.#saved(text, await this.#put(text, this.#version));
    } catch (error) {
      if (error instanceof ApiError && error.isUnreachable) this.#sent = text;
      const conflict = conflictOf(error);
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
    if (this.text === text) this.#work.forget();
    else this.#keep();
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
    };
  }

  #tell(): void {
    this.#snapshot = this.#look();
    this.#listeners.forEach((listener) => listener());
  }
}

function conflictOf(error: unknown): Conflict | null {
  if (!(error instanceof ApiError) || error.code !== "changed_meanwhile") return null;
  const present = error.problem["present"] as { yaml?: unknown; version?: unknown } | null | undefined;
  return typeof present?.yaml === "string" && typeof present.version === "number"
    ? { theirs: present.yaml, version: present.version }
    : { theirs: null, version: 0 };
}
