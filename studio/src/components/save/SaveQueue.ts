import { ApiError, isAbort } from "../../api/errors.ts";

export type SaveState = "saved" | "unsaved" | "saving" | "failed" | "offline";

export type SaveStatus = { readonly state: SaveState; readonly error: Error | null };

type SaveQueueOptions = {
  /** Idle time before a change is saved, in milliseconds. */
  delayMs: number;
};

/**
 * Saves the last of many changes, one write at a time: changes during a write are written after it. A change whose
 * write failed stays until a retry or until another replaces it.
 */
export class SaveQueue<T> {
  #save: (value: T) => Promise<void>;
  readonly #delayMs: number;
  readonly #listeners = new Set<() => void>();
  #status: SaveStatus = { state: "saved", error: null };
  #pending: { value: T } | null = null;
  #writing: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(save: (value: T) => Promise<void>, { delayMs }: SaveQueueOptions) {
    this.#save = save;
    this.#delayMs = delayMs;
  }

  /** Sets the function for later writes. */
  writeWith(save: (value: T) => Promise<void>): void {
    this.#save = save;
  }

  readonly status = (): SaveStatus => this.#status;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** True if closing the page now would lose something. */
  get isDirty(): boolean {
    return this.#pending !== null || this.#writing !== null;
  }

  /** Accepts a change, and saves it when no other follows for a while. */
  change(value: T): void {
    this.#pending = { value };
    if (this.#writing === null) this.#become("unsaved");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), this.#delayMs);
  }

  /** Discards a change that was not written yet. */
  discard(): void {
    clearTimeout(this.#timer);
    this.#pending = null;
    if (this.#writing === null) this.#become("saved");
  }

  /** Saves pending changes at once; true when nothing is left unsaved. */
  async flush(): Promise<boolean> {
    clearTimeout(this.#timer);
    while (this.#writing !== null) await this.#writing;
    const pending = this.#pending;
    if (pending === null) return true;
    this.#pending = null;
    this.#become("saving");
    this.#writing = this.#write(pending);
    await this.#writing;
    if (this.#status.error !== null) return false;
    return !this.isDirty || this.flush();
  }

  async #write(pending: { value: T }): Promise<void> {
    try {
      await this.#save(pending.value);
      this.#writing = null;
      this.#become(this.#pending === null ? "saved" : "unsaved");
    } catch (error) {
      this.#writing = null;
      // A newer change replaces the one that failed.
      this.#pending ??= pending;
      clearTimeout(this.#timer);
      const offline = error instanceof ApiError && error.isUnreachable;
      const known = error instanceof Error && !isAbort(error) ? error : new Error(String(error));
      this.#become(offline ? "offline" : "failed", known);
    }
  }

  #become(state: SaveState, error: Error | null = null): void {
    this.#status = { state, error };
    this.#listeners.forEach((listener) => listener());
  }
}
