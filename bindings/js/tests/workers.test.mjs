// Threads: each has an engine of its own, and results are plain objects that threads can pass on.
import assert from "node:assert/strict";
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { test } from "node:test";

import { decode, Pipeline, State, TambourError } from "@tambour/core";
import { renderPrompt } from "@tambour/core/prompts";

const REPLY = `<think>${"2 + 2 ".repeat(200)}</think>${"It is *4*. ".repeat(2000)}`;
const CHUNKS = REPLY.match(/.{1,37}/gs);

function work() {
  const events = [...decode(CHUNKS, { dialect: "plain" })];
  const state = new State({ trust: 5 });
  state.apply([["ADD", "trust", 3]], { message: "m" });
  const { text } = renderPrompt({ blocks: [{ tag: "a", text: "{{ b }}" }] }, { b: "c" });
  return { events, state: state.save(), text };
}

/** Message and exit code of a worker. */
async function run(task) {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  let message;
  worker.on("message", (value) => (message = value));
  const [code] = await once(worker, "exit");
  return { message, code };
}

const tasks = {
  work: () => parentPort.postMessage(work()),
  // Bytes that were moved here.
  bytes: () => {
    parentPort.once("message", (bytes) => {
      parentPort.postMessage([...decode(bytes, { dialect: "plain" })]);
    });
  },
  // An object that is left in the middle when its thread ends.
  leave: () => {
    globalThis.pipeline = new Pipeline({ dialect: "plain", state: new State() });
    globalThis.pipeline.push("It is");
    globalThis.reader = decode(CHUNKS, { dialect: "plain" });
    globalThis.reader.next();
    process.exit(7);
  },
  fail: () => {
    try {
      new Pipeline({ dialect: "plane" });
    } catch (error) {
      parentPort.postMessage({ error, isOurs: error instanceof TambourError });
    }
  },
};

if (!isMainThread && typeof workerData === "string" && workerData in tasks) {
  tasks[workerData]();
} else {
  test("threads give equal results", async () => {
    const expected = structuredClone(work());
    const results = await Promise.all(Array.from({ length: 4 }, () => run("work")));
    for (const { message, code } of results) {
      assert.deepEqual(message, expected);
      assert.equal(code, 0);
    }
  });

  test("bytes that are moved to a thread", async () => {
    const worker = new Worker(new URL(import.meta.url), { workerData: "bytes" });
    const bytes = new TextEncoder().encode(REPLY);
    const reply = once(worker, "message");
    worker.postMessage(bytes, [bytes.buffer]);
    assert.equal(bytes.length, 0);
    const [events] = await reply;
    const text = (list) => list.filter((event) => event.event === "final_delta").map((event) => event.data.text).join("");
    assert.equal(text(events), text([...decode(REPLY, { dialect: "plain" })]));
    await worker.terminate();
  });

  test("a thread that ends in the middle of a reply leaves the others alone", async () => {
    const pipeline = new Pipeline({ dialect: "plain" });
    pipeline.push("It is");
    for (let round = 0; round < 5; round += 1) {
      assert.equal((await run("leave")).code, 7);
    }
    const worker = new Worker(new URL(import.meta.url), { workerData: "bytes" });
    await once(worker, "online");
    await worker.terminate();
    assert.equal(pipeline.push(" 4.").at(-1).event, "final_delta");
    assert.equal(pipeline.finish().at(-1).event, "completed");
  });

  test("errors cross to the main thread", async () => {
    const { message } = await run("fail");
    assert.equal(message.isOurs, true);
    assert.match(message.error.message, /plane/);
  });
}
