import { type WaitingForm } from "./waiting.ts";

/** Unsaved work, as the browser keeps it. */
export type Kept = {
  /** Name of the script. */
  readonly name?: string;
  readonly text: string;
  /** Text that the work is based on, and its version. */
  readonly base: string;
  readonly version: number;
  /** Time in milliseconds. */
  readonly at: number;
  /** Invalid forms. */
  readonly forms?: readonly WaitingForm[];
  /** Text that the paths of the forms belong to, if it is another one. */
  readonly formsOf?: string;
};

type Storage = Pick<globalThis.Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

const PREFIX = "tambour.script.";

/** Unsaved work on one script. Each open page has a place of its own, so that two tabs never share one. */
export class KeptWork {
  readonly #storage: Storage | null;
  readonly #script: string;
  readonly #place: string;

  constructor(storage: Storage | null, script: string, page: string) {
    this.#storage = storage;
    this.#script = script;
    this.#place = `${PREFIX}${script}.${page}`;
  }

  /** Name that tells other tabs that this page is open. */
  get place(): string {
    return this.#place;
  }

  /** Keeps work; false if the browser refuses it. */
  keep(work: Kept): boolean {
    try {
      this.#storage?.setItem(this.#place, JSON.stringify(work));
      return this.#storage !== null;
    } catch {
      return false;
    }
  }

  forget(place: string = this.#place): void {
    try {
      this.#storage?.removeItem(place);
    } catch {
      // Work that cannot be removed is offered again, and nothing is lost.
    }
  }

  /** Work of pages that are no longer open, newest first. */
  left(open: ReadonlySet<string>): { readonly place: string; readonly work: Kept }[] {
    const found: { place: string; work: Kept }[] = [];
    const storage = this.#storage;
    for (let index = 0; storage !== null && index < storage.length; index += 1) {
      const place = storage.key(index) ?? "";
      if (!place.startsWith(`${PREFIX}${this.#script}.`) || open.has(place) || place === this.#place) continue;
      const work = read(storage.getItem(place));
      if (work !== null) found.push({ place, work });
    }
    return found.sort((a, b) => b.work.at - a.work.at);
  }
}

function read(stored: string | null): Kept | null {
  try {
    const value = JSON.parse(stored ?? "null") as Partial<Kept> | null;
    const { name, text, base, version, at, forms, formsOf } = value ?? {};
    if (typeof text !== "string" || typeof base !== "string" || typeof version !== "number" || typeof at !== "number") return null;
    return {
      ...(typeof name === "string" ? { name } : {}),
      ...{ text, base, version, at },
      ...(Array.isArray(forms) ? { forms: (forms as unknown[]).filter(isWaitingForm) } : {}),
      ...(typeof formsOf === "string" ? { formsOf } : {}),
    };
  } catch {
    return null;
  }
}

function isWaitingForm(value: unknown): value is WaitingForm {
  const { part, title, form, values, base } = (value ?? {}) as Partial<Record<keyof WaitingForm, unknown>>;
  const isMap = (one: unknown) => typeof one === "object" && one !== null;
  return (part === null || typeof part === "string") && typeof title === "string" && typeof form === "string" && isMap(values) && isMap(base);
}

/** Storage of the browser; null if it is switched off. */
export function browserStorage(): Storage | null {
  try {
    return globalThis.localStorage;
  } catch {
    return null;
  }
}

/** Places of the pages open now, in any tab. */
export async function openPlaces(): Promise<Set<string>> {
  const held = await locks()?.query();
  return new Set((held?.held ?? []).map(({ name }) => name ?? ""));
}

/** Tells other tabs that a page is open, until the returned function is called or the tab is closed. */
export function holdPlace(place: string): () => void {
  const stop = new AbortController();
  const held = () => new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
  void locks()?.request(place, held);
  return () => stop.abort();
}

/** Locks of the browser; absent outside a secure context. */
const locks = (): LockManager | undefined => (navigator as { locks?: LockManager }).locks;
