// All fixtures give the same events and findings as in Rust, however they are cut.
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  check,
  decode,
  DecodeError,
  decodeInto,
  decodeStream,
  loads,
  loadsWithFindings,
  repair,
  TambourError,
} from "@tambour/core";

import {
  assertEqual,
  assertReading,
  assertSame,
  cut,
  decodeSettings,
  isWasm,
  joinDeltas,
  loadGolden,
  randomCuts,
  randomSource,
  read,
} from "./reading.mjs";

const MAX_SMALL = 4096;

const golden = loadGolden();
const replies = golden.filter((row) => row.events !== undefined);
/** Ways of cutting, or sources, of a row: all of them, or some where the engine is WebAssembly. */
const thin = (ways, index) => (isWasm ? [ways[index % ways.length]] : ways);
const small = replies.filter((row) => row.input.length <= MAX_SMALL);

test("J-038: a whole reply, as bytes and as text", () => {
  for (const [index, row] of replies.entries()) {
    for (const data of thin([row.input, row.text ?? row.input], index)) assertSame(row, [data], "whole");
  }
});

test("J-038: byte by byte", () => {
  assert.ok(small.length > 3000);
  for (const row of small) {
    assertSame(row, Array.from(row.input, (_, at) => row.input.subarray(at, at + 1)), "byte by byte");
  }
});

test("J-038: character by character", () => {
  for (const row of small) {
    if (row.text !== undefined) assertSame(row, [...row.text], "character by character");
  }
});

test("J-038: UTF-16 unit by unit, cut within surrogate pairs", () => {
  let pairs = 0;
  for (const row of small) {
    if (row.text === undefined) continue;
    const hasPair = /[\u{10000}-\u{10ffff}]/u.test(row.text);
    pairs += Number(hasPair);
    // Without pairs units are characters.
    if (hasPair) assertSame(row, row.text.split(""), "unit by unit");
  }
  assert.ok(pairs > 20, `${pairs}`);
});

test("J-038: random cuts of bytes and of text", () => {
  replies.forEach((row, index) => {
    const data = [row.input, row.input, row.text ?? row.input];
    thin([0, 1, 2], index).forEach((way) => {
      const cuts = randomCuts(data[way].length, 10_000 * way + index);
      assertSame(row, cut(data[way], cuts), `${way === 2 ? "text " : ""}cut at ${cuts}`);
    });
  });
});

test("J-038: chunks of text and of bytes in turn", () => {
  const encoder = new TextEncoder();
  replies.forEach((row, index) => {
    if (row.text === undefined) return;
    const next = randomSource(index);
    // Text may be followed by bytes only at the end of a character.
    const characters = [...row.text];
    const pieces = cut(characters, randomCuts(characters.length, index)).map((piece) => piece.join(""));
    assertSame(row, pieces.map((piece) => (next(2) === 0 ? piece : encoder.encode(piece))), "text and bytes");
  });
});

async function* later(chunks) {
  for (const chunk of chunks) {
    await undefined;
    yield chunk;
  }
}

function toStream(chunks) {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

/** Sources of a reply in all forms that `decode` takes. */
function sources(row, chunks) {
  return [
    ["bytes", row.input],
    ["buffer", row.input.slice().buffer],
    ["text", row.text ?? row.input],
    ["array", chunks],
    ["generator", chunks.values()],
    ["asynchronous generator", later(chunks)],
    ["stream", toStream(chunks)],
  ];
}

test("J-038: sources of every kind", async () => {
  let checked = 0;
  for (const [index, row] of replies.entries()) {
    const settings = decodeSettings(row);
    if (settings === undefined) continue;
    const chunks = cut(row.input, randomCuts(row.input.length, index));
    for (const [how, source] of thin(sources(row, chunks), index)) {
      const reader = decode(source, settings);
      const events = [];
      for await (const event of reader) events.push(event);
      assertReading({ events: joinDeltas(events), findings: reader.findings }, row, how);
    }
    checked += 1;
  }
  assert.ok(checked > 3000, `${checked}`);
});

test("J-038: a stream of events", async () => {
  for (const [index, row] of replies.entries()) {
    const settings = decodeSettings(row);
    if (settings === undefined) continue;
    const through = decodeStream(settings);
    const events = [];
    const chunks = cut(row.input, randomCuts(row.input.length, index));
    for await (const event of toStream(chunks).pipeThrough(through)) events.push(event);
    assertReading({ events: joinDeltas(events), findings: through.pipeline.findings }, row, "stream of events");
  }
});

/** Last state of a value before its end, the value, and the code of the error if there is none. */
function readValue(chunks) {
  const partials = decodeInto({}, chunks);
  let last;
  try {
    for (;;) {
      const { done, value } = partials.next();
      if (done === true) break;
      last = JSON.stringify(value);
    }
    return { last, value: partials.result };
  } catch (error) {
    assert.ok(error instanceof DecodeError, String(error));
    return { last, code: error.code };
  }
}

test("J-038: values of a schema, and their last states", () => {
  let values = 0;
  for (const [index, row] of golden.entries()) {
    if (row.json === undefined || (isWasm && index % 8 !== 0)) continue;
    const whole = readValue([row.input]);
    values += Number(whole.code === undefined);
    const cuts = [cut(row.input, randomCuts(row.input.length, index)), cut(row.text, randomCuts(row.text.length, index))];
    for (const chunks of thin(cuts, index)) assertEqual(readValue(chunks), whole, row.name);
  }
  assert.ok(values > (isWasm ? 100 : 1000), `${values}`);
});

test("findings as events are those of the list", () => {
  for (const [index, row] of replies.entries()) {
    const settings = decodeSettings(row);
    if (settings === undefined || (isWasm && index % 3 !== 0)) continue;
    const reader = decode(row.input, { ...settings, findings: true });
    const events = [...reader];
    const found = events.filter((event) => event.event === "finding").map((event) => event.data);
    assertEqual(found, reader.findings, row.name);
    assertEqual(joinDeltas(events.filter((event) => event.event !== "finding")), row.events, row.name);
  }
});

test("verdicts", () => {
  let failed = 0;
  for (const [index, row] of golden.entries()) {
    if (row.verdict === undefined) continue;
    for (const text of thin([row.input, row.text ?? row.input], index)) {
      const verdict = check(text, { contract: row.dialect, ...row.options, profile: "strict" });
      assert.equal(verdict.contract, row.verdict.contract, row.name);
      assertEqual(verdict.findings, row.verdict.findings, row.name);
      const error = verdict.findings.find((finding) => finding.severity === "error");
      assert.equal(verdict.passed, error === undefined, row.name);
      assert.deepEqual(verdict.first_error ?? undefined, error, row.name);
      failed += Number(!verdict.passed);
    }
  }
  assert.ok(failed > 1000, `${failed}`);
});

test("repairs", () => {
  let repaired = 0;
  for (const row of golden) {
    if (row.repair === undefined) continue;
    let text = null;
    try {
      ({ text } = repair(row.input, { dialect: row.dialect, finish: row.finish, ...row.options }));
      repaired += 1;
    } catch (error) {
      assert.ok(error instanceof TambourError, row.name);
    }
    assert.equal(text, row.repair, row.name);
  }
  assert.ok(repaired > 1000, `${repaired}`);
});

test("JSON values", () => {
  let found = 0;
  for (const row of golden) {
    if (row.json === undefined) continue;
    const expected = row.json;
    if (expected.value === null) {
      const findings = (error) => error instanceof DecodeError && (assertEqual(error.findings, expected.findings), true);
      assert.throws(() => loads(row.input), findings, row.name);
      assert.throws(() => loadsWithFindings(row.text), findings, row.name);
      continue;
    }
    const { value, findings } = loadsWithFindings(row.input);
    assertEqual(value, JSON.parse(expected.value), row.name);
    assertEqual(findings, expected.findings, row.name);
    assertEqual(loads(row.text), value, row.name);
    found += 1;
  }
  assert.ok(found > 1000, `${found}`);
});

/** Text of bytes with a unit for each byte, so that offsets are those of bytes. */
const latin = (bytes) => Buffer.from(bytes).toString("latin1");

test("invariant 5: no marker word of a damaged reply is lost without a finding", () => {
  let checked = 0;
  for (const [index, row] of golden.entries()) {
    if (row.has_words !== true) continue;
    const { events, findings } = read(row, cut(row.input, randomCuts(row.input.length, index)));
    const isOfRound = row.dialect === "ai_say" || row.dialect === "auto";
    const hasFailed = events.at(-1).event === "error";
    let delivered = JSON.stringify(events);
    if (isOfRound && !hasFailed) {
      // The assessment of a round is in no event but its decision.
      const reader = decode(row.input, { dialect: row.dialect, ...row.options });
      Array.from(reader);
      delivered += JSON.stringify(reader.outcome);
    }
    const input = latin(row.input);
    for (const { 0: word, index: start } of input.matchAll(/wqx\d{4}z/g)) {
      const isCovered = findings.some(({ span }) => span.start < start + word.length && start < span.end);
      const isQuery = hasFailed && input.slice(0, start).includes("queries");
      assert.ok(delivered.includes(word) || isCovered || isQuery || isOfRound, `${row.name}: ${word}`);
      checked += 1;
    }
  }
  assert.ok(checked > 2000, `${checked}`);
});

test("the engine is the one that was asked for", async () => {
  const { default: engine } = await import("#engine");
  assert.equal("initSync" in engine, isWasm);
});
