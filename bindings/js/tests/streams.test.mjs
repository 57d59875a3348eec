// Sources that throw, are broken off or wait: everything is closed, nothing is lost, nothing hangs.
import assert from "node:assert/strict";
import { test } from "node:test";

import { decode, decodeInto, decodeStream } from "@tambour/core";
import * as openai from "@tambour/core/openai";

const PLAIN = { dialect: "plain" };
const answer = (events) => events.filter((event) => event.event === "final_delta").map((event) => event.data.text).join("");

/** Events of a reader until its end, and what it threw. */
async function collect(reader) {
  const events = [];
  try {
    for await (const event of reader) events.push(event);
  } catch (error) {
    return { events, error };
  }
  return { events, error: undefined };
}

/** Stream as `fetch` gives one, with a log of what happens to it. */
function openStream(chunks, { ends = true, signal } = {}) {
  const log = { pulls: 0, cancelled: undefined };
  log.whenCancelled = new Promise((resolve) => (log.resolve = resolve));
  const left = [...chunks];
  const stream = new ReadableStream(
    {
      start(controller) {
        signal?.addEventListener("abort", () => controller.error(signal.reason));
      },
      pull(controller) {
        log.pulls += 1;
        if (left.length > 0) controller.enqueue(left.shift());
        else if (ends) controller.close();
        // Without an end the stream waits for ever.
        else return new Promise(() => undefined);
      },
      cancel(reason) {
        log.cancelled = { reason };
        log.resolve(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return { stream, log };
}

/** A stream in a browser whose streams are not iterable. */
const hideIterator = (stream) => ({ getReader: () => stream.getReader() });

/** Source with a log whether it was closed, in both kinds. */
function logged(chunks) {
  const log = { closed: 0, read: 0 };
  const step = (items) => ({ ...items, return: () => ((log.closed += 1), { done: true, value: undefined }) });
  const next = () => ({ done: log.read >= chunks.length, value: chunks[log.read++] });
  const sync = { [Symbol.iterator]: () => step({ next }) };
  const async = { [Symbol.asyncIterator]: () => step({ next: async () => next() }) };
  return { log, sync, async };
}

test("the events of asynchronous sources are those of synchronous ones", async () => {
  const chunks = ["<think>2 + 2</thi", "nk>It is", " 4."];
  const expected = [...decode(chunks, PLAIN)];
  for (const stream of [openStream(chunks).stream, hideIterator(openStream(chunks).stream)]) {
    assert.deepEqual((await collect(decode(stream, PLAIN))).events, expected);
  }
});

test("J-037: text comes before the next chunk is there", async () => {
  let goOn;
  const gate = new Promise((resolve) => (goOn = resolve));
  async function* source() {
    yield "It is";
    await gate;
    yield " 4.";
  }
  const reader = decode(source(), PLAIN);
  let step;
  do step = await reader.next();
  while (step.value.event !== "final_delta");
  assert.equal(step.value.data.text, "It is");
  goOn();
  const { events } = await collect(reader);
  assert.equal(answer(events), " 4.");
  assert.equal(events.at(-1).event, "completed");
});

test("J-035: what a source throws comes behind an `error` event", async () => {
  const thrown = new RangeError("the line is down");
  function* sync() {
    yield "It is";
    throw thrown;
  }
  async function* async() {
    yield* sync();
  }
  const failing = () => {
    const items = sync();
    return new ReadableStream({ pull: (controller) => controller.enqueue(items.next().value) }, { highWaterMark: 0 });
  };
  for (const source of [sync(), async(), failing(), hideIterator(failing())]) {
    const reader = decode(source, PLAIN);
    const { events, error } = await collect(reader);
    assert.equal(error, thrown);
    assert.equal(answer(events), "It is");
    const data = { code: "input_failed", message: "RangeError: the line is down", retryable: false };
    assert.deepEqual(events.at(-1), { event: "error", data });
    assert.deepEqual(reader.outcome.failure, data);
    assert.deepEqual(await collect(reader), { events: [], error: undefined });
  }
});

test("a source may throw anything", async () => {
  const untold = Object.create(null);
  const broken = new Error("a");
  Object.defineProperty(broken, "message", { get: () => assert.fail("read") });
  for (const thrown of [undefined, null, 5, "text", Symbol("s"), untold, broken, "\ud83d", new Proxy({}, {})]) {
    async function* source() {
      yield "It is";
      throw thrown;
    }
    const reader = decode(source(), PLAIN);
    const events = [];
    await assert.rejects(
      async () => {
        for await (const event of reader) events.push(event);
      },
      (error) => Object.is(error, thrown) || thrown === undefined,
    );
    assert.equal(events.at(-1).event, "error");
    assert.equal(typeof events.at(-1).data.message, "string");
  }
});

test("a source that threw is not closed again, and an error of closing hides no other", async () => {
  for (const kind of ["iterator", "asyncIterator"]) {
    let closed = 0;
    const wrap = (value) => (kind === "iterator" ? value() : Promise.resolve().then(value));
    const make = (next) => ({
      [Symbol[kind]]: () => ({
        next: () => wrap(next),
        return: () => {
          closed += 1;
          throw new Error("closing failed");
        },
      }),
    });
    const thrown = new Error("down");
    const throwing = make(() => {
      throw thrown;
    });
    assert.equal((await collect(decode(throwing, PLAIN))).error, thrown);
    assert.equal(closed, 0);
    // A wrong chunk is a fault of the reply, so the source is closed.
    const { events, error } = await collect(decode(make(() => ({ done: false, value: 5 })), PLAIN));
    assert.ok(error instanceof TypeError, String(error));
    assert.equal(events.at(-1).data.code, "input_failed");
    assert.equal(closed, 1);
  }
});

test("a wrong chunk closes the stream of events and the source", async () => {
  const { stream, log } = openStream(["It is", 5, " 4."]);
  const { events, error } = await collect(decode(stream, PLAIN));
  assert.ok(error instanceof TypeError);
  assert.equal(answer(events), "It is");
  assert.equal(events.at(-1).event, "error");
  assert.ok(log.cancelled);
});

test("a loop that is left closes its source", async () => {
  for (const kind of ["sync", "async"]) {
    const { log, [kind]: source } = logged(["It is", "b", "c"]);
    const reader = decode(source, PLAIN);
    for await (const event of reader) if (event.event === "final_delta") break;
    assert.deepEqual(log, { closed: 1, read: 1 });
    assert.deepEqual((await collect(reader)).events, []);
    await reader.return();
    assert.equal(log.closed, 1);
  }
  for (const hide of [(stream) => stream, hideIterator]) {
    const { stream, log } = openStream(["It is"], { ends: false });
    for await (const event of decode(hide(stream), PLAIN)) if (event.event === "final_delta") break;
    assert.ok(log.cancelled);
    assert.equal(stream.locked, false);
  }
});

test("an exception of the consumer closes the source, and comes through", async () => {
  const thrown = new Error("no more");
  for (const kind of ["sync", "async"]) {
    const { log, [kind]: source } = logged(["It is", "b", "c"]);
    await assert.rejects(
      async () => {
        for await (const event of decode(source, PLAIN)) if (event.event === "final_delta") throw thrown;
      },
      (error) => error === thrown,
    );
    assert.deepEqual(log, { closed: 1, read: 1 });
  }
});

test("`return` before the first `next` closes the source as well", async () => {
  const chunk = { choices: [{ delta: { content: "a" } }] };
  for (const open of [
    (source) => decode(source, PLAIN),
    (source) => openai.decode(source, PLAIN),
    (source) => decodeInto({ type: "object" }, source),
  ]) {
    for (const kind of ["sync", "async"]) {
      const { log, [kind]: source } = logged([chunk]);
      const reader = open(source);
      assert.deepEqual(await reader.return(), { done: true, value: undefined });
      assert.deepEqual(log, { closed: 1, read: 0 });
      assert.deepEqual(await reader.next(), { done: true, value: undefined });
      await reader.return();
      assert.equal(log.closed, 1);
    }
    for (const hide of [(stream) => stream, hideIterator]) {
      const { stream, log } = openStream([chunk], { ends: false });
      await open(hide(stream)).return();
      assert.ok(log.cancelled);
      assert.equal(log.pulls, 0);
    }
  }
});

test("an aborted request ends a loop that waits", async () => {
  for (const hide of [(stream) => stream, hideIterator]) {
    const abort = new AbortController();
    const { stream } = openStream(["It is"], { ends: false, signal: abort.signal });
    const reader = decode(hide(stream), PLAIN);
    const events = [];
    await assert.rejects(
      async () => {
        for await (const event of reader) {
          events.push(event);
          if (event.event === "final_delta") abort.abort();
        }
      },
      { name: "AbortError" },
    );
    assert.equal(answer(events), "It is");
    assert.equal(events.at(-1).data.code, "input_failed");
    assert.equal(reader.outcome.failure.code, "input_failed");
  }
});

test("a source is read no further than events are asked for", async () => {
  const { stream, log } = openStream(["a ", "b ", "c ", "d "]);
  const reader = decode(stream, PLAIN);
  let step;
  do step = await reader.next();
  while (step.value.event !== "final_delta");
  assert.equal(log.pulls, 1);
  await reader.return();
});

test("a stream of events reads its source no further than its queue", async () => {
  const { stream, log } = openStream(Array.from({ length: 100 }, (_, at) => `${at} `));
  const events = stream.pipeThrough(decodeStream(PLAIN)).getReader();
  // Everything that can run without the consumer does so in these turns.
  for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
  const before = log.pulls;
  assert.ok(before <= 3, `${before}`);
  for (let seen = 0; seen < 10; ) if ((await events.read()).value.event === "final_delta") seen += 1;
  for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
  assert.ok(log.pulls >= 9 && log.pulls <= 14, `${log.pulls}`);
  await events.cancel("enough");
  assert.equal(await log.whenCancelled, "enough");
});

test("a stream of events that is aborted cancels its source and has no further events", async () => {
  const abort = new AbortController();
  const { stream, log } = openStream(["It is"], { ends: false });
  const seen = [];
  const through = decodeStream(PLAIN);
  const piping = stream.pipeThrough(through, { signal: abort.signal }).pipeTo(
    new WritableStream({
      write(event) {
        seen.push(event);
        if (event.event === "final_delta") abort.abort(new Error("stop"));
      },
    }),
  );
  await assert.rejects(piping, /stop/);
  assert.match(String(await log.whenCancelled), /stop/);
  assert.equal(seen.at(-1).event, "final_delta");
});

test("a sink that fails cancels the source", async () => {
  const { stream, log } = openStream(["It is", " 4."], { ends: false });
  const sink = new WritableStream({
    write(event) {
      if (event.event === "final_delta") throw new Error("disk full");
    },
  });
  await assert.rejects(stream.pipeThrough(decodeStream(PLAIN)).pipeTo(sink), /disk full/);
  assert.match(String(await log.whenCancelled), /disk full/);
});

test("a stream of events passes on the error of its source", async () => {
  const thrown = new Error("down");
  const source = new ReadableStream({ pull: (controller) => controller.error(thrown) });
  const { error } = await collect(source.pipeThrough(decodeStream(PLAIN)));
  assert.equal(error, thrown);
  const wrong = new ReadableStream({ start: (controller) => controller.enqueue(5) });
  assert.ok((await collect(wrong.pipeThrough(decodeStream(PLAIN)))).error instanceof TypeError);
});

test("many streams at once", async () => {
  const read = async (number) => {
    const chunks = [`<think>${number}</think>`, ...Array(20).fill(`${number} `)];
    return answer((await collect(decode(openStream(chunks).stream, PLAIN))).events);
  };
  const results = await Promise.all(Array.from({ length: 200 }, (_, number) => read(number)));
  results.forEach((text, number) => assert.equal(text, `${number} `.repeat(20).trim()));
});

test("a source that reads from its own reader gets an error, and nothing hangs", () => {
  let reader;
  function* source() {
    yield "a";
    reader.next();
  }
  reader = decode(source(), PLAIN);
  assert.throws(() => [...reader], TypeError);
});

test("values of a schema: a broken source has none, a left loop closes its source", async () => {
  const schema = { type: "object", properties: { name: { type: "string" } } };
  async function* source() {
    yield '{"name": "a';
    throw new Error("down");
  }
  const { error } = await collect(decodeInto(schema, source()));
  assert.match(error.message, /down/);
  for (const hide of [(stream) => stream, hideIterator]) {
    const { stream, log } = openStream(['{"name": "a', '"}'], { ends: false });
    const reader = decodeInto(schema, hide(stream));
    for await (const value of reader) {
      assert.deepEqual(value, { name: "a" });
      break;
    }
    assert.ok(log.cancelled);
    assert.deepEqual(await reader.next(), { done: true, value: undefined });
    assert.throws(() => reader.result, { code: "not_ended" });
  }
});
