// The thread that reads, as the page uses it.
import source from "packed-worker";
import { LONGEST_READING } from "./limits.js";

/** Milliseconds that a reading may go on when newer text comes; after them, its thread is replaced. */
const PATIENCE = 500;

/** Reader of replies. Of several texts, only the last one is read to its end. */
export class Reader {
  #address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  #worker = null;
  #number = 0;
  /** Reading in progress: its number, when it began, what it is told, and the timer of its end. */
  #reading = null;

  /** Starts the thread; rejects if there is no WebAssembly, or a policy forbids thread or module. */
  start() {
    return new Promise((resolve, reject) => {
      const worker = new Worker(this.#address);
      this.#worker = worker;
      worker.addEventListener("error", (event) => reject(new Error(event.message ?? "the thread was refused")));
      worker.addEventListener("message", ({ data }) => {
        if (data.kind === "ready") resolve();
        else if (data.kind === "broken") reject(new Error(data.message));
        else this.#hear(data);
      });
    });
  }

  /**
   * Reads a reply; the result is that of `read` in `reader.js`.
   *
   * @returns `{ result }`; `{ problem }` with the message about a setting that was refused; `{ fault: "internal" }` or
   *   `{ fault: "tooLong" }`; `null` if there was a newer text.
   */
  async read(input, onProgress) {
    this.cancel();
    this.#number += 1;
    const number = this.#number;
    if (this.#worker === null) await this.start();
    if (number !== this.#number) return null;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#give(true, { fault: "tooLong" }), LONGEST_READING);
      this.#reading = { number, begin: performance.now(), onProgress, resolve, timer };
      this.#worker.postMessage({ number, input });
    });
  }

  /** Ends the reading in progress. */
  cancel() {
    if (this.#reading !== null) this.#give(performance.now() - this.#reading.begin > PATIENCE, null);
  }

  #hear({ kind, number, part, result, message }) {
    if (number !== this.#reading?.number) return;
    if (kind === "progress") this.#reading.onProgress(part);
    else if (kind === "result") this.#give(false, { result });
    // After a fault, the module cannot go on.
    else this.#give(message === null, message === null ? { fault: "internal" } : { problem: message });
  }

  #give(replaces, answer) {
    const { resolve, timer } = this.#reading;
    clearTimeout(timer);
    this.#reading = null;
    if (replaces) {
      this.#worker.terminate();
      this.#worker = null;
    }
    resolve(answer);
  }
}
