// Reading of a reply in small portions of time, so that newer text is heard meanwhile.
import { check, Pipeline, repair, TambourError } from "../dist/esm/index.js";
import { AnswerModel } from "./answer.js";
import { MOST_EVENTS } from "./limits.js";

/** Milliseconds of work before newer text is heard. */
const PORTION = 50;
/** Characters that the pipeline gets at once; it cuts long pieces of text itself. */
const LONGEST_PIECE = 16_384;

/** Turns of others between portions of work; rejects when a newer reading has begun. */
class Turns {
  #due = performance.now() + PORTION;

  constructor(signal) {
    this.signal = signal;
  }

  /** True when it is the turn of others. */
  get isOver() {
    return performance.now() >= this.#due;
  }

  async give() {
    await new Promise((resolve) => setTimeout(resolve));
    this.signal.throwIfAborted();
    this.#due = performance.now() + PORTION;
  }
}

/**
 * Reads a reply.
 *
 * @param input - `text`, `dialect`, `profile`, `finish` (`null` for none), `chunk` (characters a piece, 0 for one piece)
 *   and `options` by their public names.
 * @param signal - Ends the reading when there is a newer one.
 * @param onProgress - Called with the part that is read, from 0 to 1.
 * @returns `dialect`, `passed`, `findings`, the first events with the number of characters `read` when they came, the
 *   `count` of all, the `answer`, and `repaired`: a `text`, or a `problem`.
 * @throws TambourError for an option that is unknown or does not accept its value.
 */
export async function read(input, signal, onProgress) {
  const { text, dialect, profile, finish, chunk } = input;
  const options = { profile, ...input.options };
  const turns = new Turns(signal);
  const events = [];
  const answer = new AnswerModel();
  let count = 0;
  const take = (batch, read) => {
    for (const event of batch) {
      count += 1;
      if (events.length < MOST_EVENTS) events.push({ ...event, read });
      answer.add(event);
    }
  };

  const pipeline = new Pipeline({ ...options, dialect });
  try {
    const size = chunk === 0 ? LONGEST_PIECE : chunk;
    for (let start = 0; start < text.length; start += size) {
      const end = Math.min(start + size, text.length);
      take(pipeline.push(text.slice(start, end)), end);
      if (turns.isOver) {
        onProgress(end / text.length);
        await turns.give();
      }
    }
    take(pipeline.finish(finish), text.length);
    await turns.give();
    const verdict = check(text, { ...options, contract: dialect });
    await turns.give();
    const findings = joinFindings(verdict.findings, finish === "stop" ? [] : pipeline.findings);
    const repaired = rewrite(text, dialect, finish, input.options);
    await turns.give();
    const passed = findings.every(({ severity }) => severity !== "error");
    return { dialect: verdict.contract, passed, findings, events, count, answer, repaired };
  } finally {
    pipeline.close();
  }
}

/** Adds findings on the end of the reply, which the check does not know, to those of the check. */
function joinFindings(checked, further) {
  const keyOf = ({ code, span }) => `${code} ${span.start} ${span.end}`;
  const known = new Set(checked.map(keyOf));
  return [...checked, ...further.filter((finding) => !known.has(keyOf(finding)))];
}

function rewrite(text, dialect, finish, options) {
  try {
    return repair(text, { ...options, dialect, finish });
  } catch (error) {
    if (error instanceof TambourError && error.code !== "internal") return { problem: error.message };
    throw error;
  }
}
