import { api } from "../../../api/client.ts";
import { ApiError, isAbort } from "../../../api/errors.ts";
import { type Finding } from "../../../api/types.ts";
import { type FromWorker, type ToWorker } from "./protocol.ts";
import { type InspectedRecord, recordOf } from "./record.ts";
import { RecordIndex } from "./RecordIndex.ts";

export type Work = { readonly name: "reading" | "checking"; readonly done: number; readonly of: number };

export type FileView = {
  readonly index: RecordIndex;
  /** Number that differs after each change of the index. */
  readonly version: number;
  readonly work: Work | null;
  readonly error: unknown;
  /** Records of the last check that the server refused, and the error of the first one. */
  readonly refused: { readonly count: number; readonly at: number; readonly error: ApiError } | null;
  /** True if the file was read to its end. */
  readonly whole: boolean;
};

/** Concurrent requests of a check. */
const AT_ONCE = 6;
const MOST_WAITS = 20;

/** File of records, indexed in a worker and read again record by record. */
export class RecordFile {
  readonly file: Blob;
  readonly name: string;
  readonly #index = new RecordIndex();
  readonly #listeners = new Set<() => void>();
  #view: FileView;
  #worker: Worker | null = null;
  #stop: AbortController | null = null;
  #last = 0;

  constructor(file: Blob, name: string) {
    this.file = file;
    this.name = name;
    this.#view = { index: this.#index, version: 0, work: null, error: null, refused: null, whole: false };
  }

  readonly view = (): FileView => this.#view;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #become(change: Partial<FileView>): void {
    this.#view = { ...this.#view, version: this.#view.version + 1, ...change };
    this.#last = performance.now();
    this.#listeners.forEach((listener) => listener());
  }

  /** Reports progress, a few times a second. */
  #progress(work: Work): void {
    if (performance.now() - this.#last > 150) this.#become({ work });
  }

  /** Reads the file in a worker; rows read before a cancellation stay. */
  read(): void {
    if (this.#worker !== null || this.#view.whole) return;
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.#worker = worker;
    this.#become({ work: { name: "reading", done: 0, of: this.file.size } });
    worker.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => {
      if (this.#worker !== worker) return;
      if (data.kind === "rows") {
        for (const row of data.rows) this.#index.add(row);
        this.#progress({ name: "reading", done: data.bytes, of: this.file.size });
      } else {
        this.cancel();
        this.#become(data.kind === "done" ? { whole: true } : { error: data.message });
      }
    });
    worker.addEventListener("error", (event) => {
      this.cancel();
      this.#become({ error: event.message });
    });
    worker.postMessage({ file: this.file } satisfies ToWorker);
  }

  /** Stops reading or checking. */
  cancel(): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#stop?.abort();
    this.#stop = null;
    this.#become({ work: null });
  }

  async record(at: number): Promise<InspectedRecord | null> {
    return recordOf(await this.line(at));
  }

  /** Line of the file, without reading it. */
  part(at: number): Blob {
    const { start, end } = this.#index.placeOf(at);
    return this.file.slice(start, end);
  }

  /** Text of a line of the file, unchanged. */
  line(at: number): Promise<string> {
    return this.part(at).text();
  }

  /** Findings of a record: from the server, or from the record itself. */
  async findings(at: number): Promise<readonly Finding[]> {
    return this.#index.givenOf(at) ?? (await this.record(at))?.findings ?? [];
  }

  /** Checks records on the server, several at once. */
  async check(rows: ArrayLike<number>, profile: "strict" | "lenient"): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    this.#become({ work: { name: "checking", done: 0, of: rows.length }, error: null, refused: null });
    const stopped = () => stop.signal.aborted;
    let next = 0;
    let done = 0;
    const lane = async () => {
      while (next < rows.length && !stopped()) {
        const at = rows[next] ?? 0;
        next += 1;
        await this.#checkOne(at, profile, stop.signal);
        done += 1;
        if (!stopped()) this.#progress({ name: "checking", done, of: rows.length });
      }
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
    } catch (error) {
      stop.abort();
      if (!isAbort(error)) this.#become({ error });
    } finally {
      if (this.#stop === stop) {
        this.#stop = null;
        this.#become({ work: null });
      }
    }
  }

  async #checkOne(at: number, profile: string, signal: AbortSignal): Promise<void> {
    if (this.#index.stateOf(at) === "unreadable") return;
    const record = await this.record(at);
    if (record?.reply === null || record?.reply === undefined) return;
    const contract = this.#index.dialectOf(at);
    const body = { reply: record.reply, profile, ...(contract === "" ? {} : { contract }) };
    for (let wait = 0; ; wait += 1) {
      try {
        const { data } = await api.post("/api/v1/check", body, { signal });
        this.#index.check(at, data.verdict, data.findings);
        return;
      } catch (error) {
        // A busy server is asked again; a record that it refuses stays unchecked.
        if (!(error instanceof ApiError) || error.isUnreachable) throw error;
        if (error.status !== 429 || wait >= MOST_WAITS) {
          const before = this.#view.refused;
          // Refusals are reported with the progress: there may be as many as records.
          this.#view = { ...this.#view, refused: { at, error, ...before, count: (before?.count ?? 0) + 1 } };
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    }
  }
}
