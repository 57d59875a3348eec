// Reading of golden replies in chunks, and comparison of what comes out.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { Pipeline } from "@tambour/core";

/** True if the engine is WebAssembly, which takes longer for each call. */
export const isWasm = process.execArgv.includes("--conditions=deno");

const JOINED = new Set(["final_delta", "phase_delta", "draft_delta"]);

/** Text of bytes, with a byte order mark if it has one; `undefined` if they are not UTF-8. */
function readText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Replies with the events and findings that the library gives in Rust (`cargo xtask bindings golden`). */
export function loadGolden() {
  const path = process.env.TAMBOUR_GOLDEN;
  assert.ok(path, "TAMBOUR_GOLDEN is the path of the file that `cargo xtask bindings golden` writes");
  const rows = readFileSync(path, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
  for (const row of rows) {
    row.input = new Uint8Array(Buffer.from(row.input, "base64"));
    row.text = readText(row.input);
  }
  assert.ok(rows.length > 2000);
  return rows;
}

/** Pieces of text or bytes that end at these offsets. */
export function cut(data, cuts) {
  return [...cuts, data.length].map((end, index) => data.slice(index === 0 ? 0 : cuts[index - 1], end));
}

/** Source of whole numbers below a bound (mulberry32); the same seed gives the same. */
export function randomSource(seed) {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

/** Offsets in ascending order. */
export function randomCuts(length, seed) {
  const next = randomSource(seed);
  const count = Math.min(length, [1, 3, 9, 40][next(4)]);
  return Array.from({ length: count }, () => next(length + 1)).sort((a, b) => a - b);
}

/** Events with neighbouring deltas of one text joined. */
export function joinDeltas(events) {
  const joined = [];
  for (const { event, data } of events) {
    const last = joined.at(-1);
    const isText = JOINED.has(event) || (event === "aside" && data.kind === "thought");
    if (isText && last?.event === event && last.data.id === data.id && last.data.kind === data.kind) {
      last.data.text += data.text;
    } else {
      joined.push({ event, data: { ...data } });
    }
  }
  return joined;
}

/** Ends the pipeline of a row. */
function finish(pipeline, reason) {
  switch (reason) {
    case "failed":
      return pipeline.fail("the connection broke");
    case "unknown":
      return pipeline.finish(null);
    case "incomplete":
      return pipeline.finish("stop", { incomplete: true });
    default:
      return pipeline.finish(reason);
  }
}

/** Events and findings of a row, read with a pipeline. */
export function read(row, chunks) {
  const pipeline = new Pipeline({ dialect: row.dialect, ...row.options });
  const events = row.reasoning === null ? [] : pipeline.pushReasoning(row.reasoning);
  for (const chunk of chunks) {
    for (const event of pipeline.push(chunk)) events.push(event);
  }
  events.push(...finish(pipeline, row.finish));
  const { findings } = pipeline;
  pipeline.close();
  return { events: joinDeltas(events), findings };
}

/** Fails if two JSON values differ, with the place where they do. */
export function assertEqual(actual, expected, place) {
  // Texts are compared first, since that is much faster.
  if (JSON.stringify(actual) !== JSON.stringify(expected)) assert.deepStrictEqual(actual, expected, place);
}

/** Fails with the first difference between a reading and the golden one. */
export function assertReading({ events, findings }, row, how) {
  for (let at = 0; at < Math.min(events.length, row.events.length); at += 1) {
    assertEqual(events[at], row.events[at], `${row.name}, ${how}: event ${at}`);
  }
  assert.equal(events.length, row.events.length, `${row.name}, ${how}: number of events`);
  assertEqual(findings, row.findings, `${row.name}, ${how}: findings`);
}

/** Reads a row in chunks, and compares. */
export function assertSame(row, chunks, how) {
  assertReading(read(row, chunks), row, how);
}

/** Settings of `decode` for a row; `undefined` if its end is none that a source can have. */
export function decodeSettings(row) {
  if (row.reasoning !== null || row.finish === "failed") return undefined;
  const end = {
    unknown: { finish: null },
    incomplete: { finish: "stop", incomplete: true },
  }[row.finish] ?? { finish: row.finish };
  return { dialect: row.dialect, ...row.options, ...end };
}
