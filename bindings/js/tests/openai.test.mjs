// Streams of the package `openai`: as plain objects, and from its own client over HTTP.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import OpenAI from "openai";

import { State, StateError } from "@tambour/core";
import { decode } from "@tambour/core/openai";

import { CallCollector } from "../dist/esm/calls.js";

const TOOLS = [{ type: "function", function: { name: "add", parameters: { type: "object", required: ["a"] } } }];

const chunk = (delta, { finish = null, usage = null, index = 0 } = {}) => ({
  id: "c",
  created: 1,
  model: "m",
  object: "chat.completion.chunk",
  choices: delta === undefined ? [] : [{ index, delta, finish_reason: finish }],
  usage,
});
const USAGE = { completion_tokens: 2, prompt_tokens: 3, total_tokens: 5 };

const pick = (events, name) => events.filter((event) => event.event === name).map((event) => event.data);
const answer = (events) => pick(events, "final_delta").map((data) => data.text).join("");
const thoughts = (events) => pick(events, "phase_delta").map((data) => data.text).join("");
const calls = (events) => pick(events, "tool_call").map(({ name, args }) => [name, args]);
const read = (stream, dialect = "plain") => [...decode(stream, { dialect, tools: dialect === "plain" ? undefined : TOOLS })];

const CHAT = [
  chunk({ role: "assistant", content: "" }),
  chunk({ reasoning_content: "2 + 2 " }),
  chunk({ reasoning: "is 4." }),
  chunk({ content: "It is" }),
  chunk({ content: "another choice" }, { index: 1 }),
  chunk({ content: " 4." }),
  chunk({}, { finish: "stop" }),
  chunk(undefined, { usage: USAGE }),
];

function assertChat(events) {
  assert.equal(answer(events), "It is 4.");
  assert.equal(thoughts(events), "2 + 2 is 4.");
  const { data } = events.at(-1);
  assert.equal(data.finish_reason, "stop");
  assert.equal(data.metadata.truncated, false);
  assert.equal(data.usage.total_tokens, 5);
}

const functionCall = (name, text, fields = {}) => ({ tool_calls: [{ function: { name, arguments: text }, ...fields }] });
const toolChunks = (finish) => [
  chunk(functionCall("add", "", { index: 0, id: "x", type: "function" })),
  chunk(functionCall(undefined, '{"a"', { index: 0 })),
  chunk(functionCall("add", '{"a": 2}', { index: 1, id: "y" })),
  chunk(functionCall(undefined, ": 1}", { index: 0 })),
  ...(finish === undefined ? [] : [chunk({}, { finish })]),
];

test("chat: text, reasoning and usage", async () => {
  assertChat(read(CHAT));
  const stream = new ReadableStream({
    start(controller) {
      for (const item of CHAT) controller.enqueue(item);
      controller.close();
    },
  });
  const reader = decode(stream, { dialect: "plain" });
  const events = [];
  for await (const event of reader) events.push(event);
  assertChat(events);
  assert.equal(reader.dialect, "plain");
});

test("chat: calls act only in a complete reply", () => {
  const events = read(toolChunks("tool_calls"), "toolcall");
  assert.deepEqual(calls(events), [["add", { a: 1 }], ["add", { a: 2 }]]);
  assert.equal(events.at(-1).data.finish_reason, "tool_calls");
  for (const finish of ["length", "content_filter", "", undefined]) {
    const cut = read(toolChunks(finish), "toolcall");
    assert.deepEqual(calls(cut), [], String(finish));
    assert.equal(cut.at(-1).data.metadata.truncated, true, String(finish));
  }
});

test("chat: calls are told apart", () => {
  const pairs = [
    [{}, {}],
    [{ id: "x" }, { id: "y" }],
    [{ index: 0, id: "x" }, { index: 0, id: "y" }],
    [{ index: 0 }, { index: 1 }],
    [{ index: null, id: "" }, { index: null, id: "" }],
  ];
  for (const [first, second] of pairs) {
    const deltas = [functionCall("add", '{"a": 1}', first), functionCall("add", '{"a": 2}', second)];
    const events = read([...deltas.map((delta) => chunk(delta)), chunk({}, { finish: "tool_calls" })], "toolcall");
    assert.deepEqual(calls(events), [["add", { a: 1 }], ["add", { a: 2 }]], JSON.stringify([first, second]));
  }
});

test("chat: pieces of calls are joined", () => {
  const cases = [
    // Name and id may be repeated in each piece.
    [[functionCall("add", '{"a"', { index: 0, id: "x" }), functionCall("add", ": 1}", { index: 0, id: "x" })], 1],
    // Without number and id a name begins the next call; arguments may be an object.
    [[functionCall("add", '{"a"'), functionCall(undefined, ": 1}"), functionCall("add", { a: 1 })], 2],
    // The field from before there were several calls.
    [[{ function_call: { name: "add", arguments: '{"a"' } }, { function_call: { arguments: ": 1}" } }], 1],
  ];
  for (const [deltas, count] of cases) {
    const events = read([...deltas.map((delta) => chunk(delta)), chunk({}, { finish: "function_call" })], "toolcall");
    assert.deepEqual(calls(events), Array(count).fill(["add", { a: 1 }]));
  }
});

test("chat: finish reasons", () => {
  for (const [finish, reason, truncated] of [
    ["stop", "stop", false],
    ["eos", "stop", false],
    ["max_tokens", "length", true],
    ["content_filter", "content_filter", true],
    ["", "length", true],
  ]) {
    const { data } = read([chunk({ content: "It is 4." }, { finish })]).at(-1);
    assert.deepEqual([data.finish_reason, data.metadata.truncated], [reason, truncated], finish);
  }
});

test("errors in the stream", () => {
  const events = read([chunk({ content: "It" }), { error: { code: "overloaded", message: "later" } }]);
  assert.deepEqual(events.at(-1).data, { code: "overloaded", message: "later", retryable: true });
  const without = read([{ error: "broken" }]).at(-1).data;
  assert.equal(without.code, "upstream_failed");
});

const RESPONSE = [
  { type: "response.created", response: { status: "in_progress" } },
  { type: "response.reasoning_text.delta", delta: "2 + 2" },
  { type: "response.output_text.delta", delta: "It is" },
  { type: "response.output_text.delta", delta: " 4." },
];
const CALL_DONE = {
  type: "response.output_item.done",
  item: { type: "function_call", name: "add", arguments: '{"a": 1}', call_id: "x" },
};
const completed = { type: "response.completed", response: { status: "completed", usage: { total_tokens: 5 } } };

test("responses", () => {
  const events = read([...RESPONSE, completed]);
  assert.equal(answer(events), "It is 4.");
  assert.equal(thoughts(events), "2 + 2");
  assert.deepEqual(events.at(-1).data.usage, { total_tokens: 5 });
  assert.equal(events.at(-1).data.finish_reason, "stop");
  const called = read([CALL_DONE, completed], "toolcall");
  assert.deepEqual(calls(called), [["add", { a: 1 }]]);
  assert.equal(called.at(-1).data.finish_reason, "tool_calls");
  for (const [details, reason] of [["max_output_tokens", "length"], ["content_filter", "content_filter"]]) {
    const response = { status: "incomplete", incomplete_details: { reason: details } };
    const cut = read([CALL_DONE, { type: "response.incomplete", response }], "toolcall");
    assert.deepEqual(calls(cut), []);
    assert.equal(cut.at(-1).data.finish_reason, reason);
  }
  assert.equal(read(RESPONSE).at(-1).data.metadata.truncated, true);
  const failure = { code: "server_error", message: "oh" };
  for (const end of [{ type: "response.failed", response: { error: failure } }, { type: "error", ...failure }]) {
    assert.deepEqual(read([...RESPONSE, end]).at(-1).data, { ...failure, retryable: true });
  }
});

test("usage of an unknown form is left out", () => {
  const cycle = {};
  cycle.cycle = cycle;
  for (const usage of [cycle, { n: 1n }, 5, "x"]) {
    const { data } = read([{ usage }, chunk({ content: "a" }, { finish: "stop" })]).at(-1);
    assert.equal(data.usage, null);
    assert.equal(data.metadata.truncated, false);
  }
});

test("objects of other kinds are passed over", () => {
  const stream = [null, undefined, 5, {}, [], { type: 7 }, { choices: "x" }, { choices: [null, 3, { delta: 5 }] }];
  const events = read(stream);
  assert.equal(answer(events).includes("x"), false);
  assert.equal(events.at(-1).data.metadata.truncated, true);
  for (const text of ["x", new Uint8Array(1)]) assert.throws(() => read([text]), { name: "TypeError", message: /`stream: true`/ });
});

test("arguments of calls are bounded", () => {
  function* source() {
    yield chunk(functionCall("add", '{"a": "', { index: 0 }));
    for (let at = 0; at < 10_000; at += 1) yield chunk(functionCall(undefined, "x".repeat(100), { index: 0 }));
    yield chunk({}, { finish: "tool_calls" });
  }
  for (const name of ["limits.input", "limits_input"]) {
    const events = [...decode(source(), { dialect: "toolcall", tools: TOOLS, [name]: 1000 })];
    assert.equal(events.at(-1).data.code, "input_too_large");
  }
  // Calls that are left out are not kept either.
  for (const options of [{ "limits.input": 1000 }, { limits_input: 1000 }]) {
    const collector = new CallCollector(options);
    for (let at = 0; at < 10_000; at += 1) collector.add(0, "", "add", "x".repeat(100));
    const pushed = [];
    collector.pushAll({ pushCall: (...call) => (pushed.push(call), []) });
    assert.equal(pushed.length, 1);
    assert.equal(pushed[0].join("").length, 1001);
  }
  const many = Array.from({ length: 3000 }, (_, index) => chunk(functionCall("add", '{"a": 1}', { index })));
  const events = read([...many, chunk({}, { finish: "tool_calls" })], "toolcall");
  assert.ok(calls(events).length <= 1024);
});

test("a chunk with very many events", () => {
  const line = '{"event":"final_delta","data":{"text":"x"}}\n';
  const text = `{"event":"thinking_start","data":{}}\n{"event":"thinking_end","data":{}}\n${line.repeat(200_000)}`;
  const events = read([chunk({ content: text }, { finish: "stop" })], "jsonseq");
  assert.equal(answer(events).length, 200_000);
});

test("characters that a service cut between two chunks", () => {
  const deltas = [
    { reasoning_content: "a \ud83d" },
    { reasoning_content: "\ude00 b" },
    { content: "It \ud83d" },
    { content: "\ude00 is \ud83d" },
    functionCall("add", '{"a": "\ud83d"}', { index: 0 }),
  ];
  const stream = [...deltas.map((delta) => chunk(delta)), chunk({}, { finish: "tool_calls" })];
  const reader = decode(stream, { dialect: "toolcall", tools: TOOLS });
  const events = [...reader];
  assert.equal(thoughts(events), "a \u{1f600} b");
  assert.ok(answer(events).startsWith("It \u{1f600} is"));
  assert.deepEqual(calls(events), [["add", { a: "\ufffd" }]]);
  assert.ok(reader.findings.some((finding) => finding.code === "not_utf8"));
});

test("an object that cannot be read closes the stream", async () => {
  const hostile = {
    get choices() {
      throw new RangeError("broken");
    },
  };
  async function* later() {
    yield* [chunk({ content: "It is" }), hostile];
  }
  for (const source of [[chunk({ content: "It is" }), hostile], later()]) {
    const events = [];
    await assert.rejects(async () => {
      for await (const event of decode(source, { dialect: "plain" })) events.push(event);
    }, /broken/);
    assert.equal(answer(events), "It is");
    assert.equal(events.at(-1).data.code, "input_failed");
  }
});

test("updates that do not fit lose no event", () => {
  const state = new State({ trust: 5 });
  const content = '<content>She smiles.</content><state_update>[["ADD", "trust", 3]]</state_update>';
  function* source() {
    yield chunk({ content }, { finish: "stop" });
    state.apply([["SET", "trust", "high"]]);
  }
  const events = [];
  assert.throws(() => {
    for (const event of decode(source(), { dialect: "filament", state })) events.push(event);
  }, StateError);
  assert.equal(events.at(-1).event, "completed");
});

/** Serves one answer as Server-Sent Events; without `[DONE]` the connection is broken off. */
async function serve(items, use, { breaks = false, named = false } = {}) {
  const server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const item of items) {
      const name = named ? `event: ${item.type}\n` : "";
      response.write(`${name}data: ${JSON.stringify(item)}\n\n`);
    }
    // Sent first what was written, so that the client has it before the connection breaks.
    if (breaks) response.write("\n", () => response.destroy());
    else response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
  try {
    return await use(new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 }));
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const request = { model: "m", messages: [{ role: "user", content: "2 + 2?" }], stream: true };

test("the client of the package: chat completions", async () => {
  await serve(CHAT, async (client) => {
    const reader = decode(await client.chat.completions.create(request), { dialect: "plain" });
    const events = [];
    for await (const event of reader) events.push(event);
    assertChat(events);
  });
  await serve(toolChunks("tool_calls"), async (client) => {
    const events = [];
    const stream = await client.chat.completions.create({ ...request, tools: TOOLS });
    for await (const event of decode(stream, { dialect: "toolcall", tools: TOOLS })) events.push(event);
    assert.deepEqual(calls(events), [["add", { a: 1 }], ["add", { a: 2 }]]);
  });
});

test("the client of the package: responses", async () => {
  const use = async (client) => {
    const stream = await client.responses.create({ model: "m", input: "2 + 2?", stream: true });
    const events = [];
    for await (const event of decode(stream, { dialect: "plain" })) events.push(event);
    assert.equal(answer(events), "It is 4.");
    assert.equal(events.at(-1).data.usage.total_tokens, 5);
  };
  await serve([...RESPONSE, completed], use, { named: true });
});

test("the client of the package: a connection that breaks, a loop that is left", async () => {
  const use = async (client) => {
    const events = [];
    await assert.rejects(async () => {
      const stream = await client.chat.completions.create(request);
      for await (const event of decode(stream, { dialect: "plain" })) events.push(event);
    });
    assert.equal(answer(events), "It is 4.");
    assert.equal(events.at(-1).data.code, "input_failed");
  };
  await serve(CHAT.slice(0, 6), use, { breaks: true });
  await serve(CHAT, async (client) => {
    const stream = await client.chat.completions.create(request);
    for await (const event of decode(stream, { dialect: "plain" })) if (event.event === "final_delta") break;
    assert.equal(stream.controller.signal.aborted, true);
  });
});
