// Middleware of the AI SDK, with its own mock model.
import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, jsonSchema, Output, streamText, tool, wrapLanguageModel } from "ai";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";

import { tambourMiddleware } from "@tambour/core/ai-sdk";

const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 4, text: 4, reasoning: undefined },
};

/** Model that writes a reply in pieces, with further parts before the end. */
function writer(text, { size = 3, parts = [], finish = "stop", settings = {} } = {}) {
  const pieces = [];
  for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
  const finishReason = { unified: finish, raw: finish };
  const model = new MockLanguageModelV4({
    doGenerate: { content: [{ type: "text", text }, ...parts], finishReason, usage, warnings: [] },
    doStream: async () => ({
      stream: convertArrayToReadableStream([
        { type: "stream-start", warnings: [] },
        { type: "text-start", id: "t" },
        ...pieces.map((delta) => ({ type: "text-delta", id: "t", delta })),
        { type: "text-end", id: "t" },
        ...parts,
        ...(finish === undefined ? [] : [{ type: "finish", finishReason, usage }]),
      ]),
    }),
  });
  return wrapLanguageModel({ model, middleware: tambourMiddleware(settings) });
}

const REPLY = "<thinking><phase id='1'><title>Sum</title>2 + 2</phase></thinking><final>It is **4**.";

test("a stream is split into reasoning and answer", async () => {
  let ended;
  const settings = { dialect: "thinkingml", onEnd: (outcome, findings) => (ended = { outcome, findings }) };
  const result = streamText({ model: writer(REPLY, { settings }), prompt: "2 + 2?" });
  const text = [];
  for await (const piece of result.textStream) text.push(piece);
  assert.equal(text.join(""), "It is **4**.");
  assert.ok(text.length > 1);
  assert.equal((await result.reasoning).map((part) => part.text).join(""), "2 + 2");
  assert.equal(await result.finishReason, "stop");
  const { tambour } = await result.providerMetadata;
  assert.equal(tambour.dialect, "thinkingml");
  assert.equal(ended.findings.length, tambour.findings.length);
  assert.ok(ended.findings.length > 0);
});

test("a reply that comes at once is split as well", async () => {
  const result = await generateText({ model: writer(REPLY), prompt: "2 + 2?" });
  assert.equal(result.text, "It is **4**.");
  assert.equal(result.reasoningText, "2 + 2");
});

test("broken JSON becomes the object that was asked for", async () => {
  const schema = jsonSchema({
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city", "days"],
    additionalProperties: false,
  });
  const output = Output.object({ schema });
  const model = () => writer("Sure:\n```json\n{'city': 'Lyon', days: 3,}\n```\nBye");
  assert.deepEqual((await generateText({ model: model(), prompt: "", output })).output, { city: "Lyon", days: 3 });
  const stream = streamText({ model: model(), prompt: "", output });
  assert.deepEqual(await stream.output, { city: "Lyon", days: 3 });
});

const weather = () => {
  const ran = [];
  const inputSchema = jsonSchema({
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  });
  const execute = async (input) => {
    ran.push(input);
    return "sunny";
  };
  return { ran, tools: { weather: tool({ description: "Weather", inputSchema, execute }) } };
};

const CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Lyon"}}</tool_call>';

test("a call in the text runs, and is no text", async () => {
  for (const settings of [{ dialect: "toolcall" }, {}]) {
    const { ran, tools } = weather();
    const result = await generateText({ model: writer(CALL, { settings }), prompt: "", tools });
    assert.equal(result.finishReason, "tool-calls");
    assert.deepEqual(ran, [{ city: "Lyon" }]);
    assert.equal(result.text, "");
    const again = weather();
    const stream = streamText({ model: writer(CALL, { settings }), prompt: "", tools: again.tools });
    await stream.consumeStream();
    assert.equal(await stream.text, "");
    assert.deepEqual(again.ran, [{ city: "Lyon" }]);
  }
});

test("wrong settings are refused when the middleware is made", () => {
  assert.throws(() => tambourMiddleware({ dialect: "thinkml" }), /unknown dialect `thinkml`/);
  assert.throws(() => tambourMiddleware({ nothing: 1 }), /`nothing`/);
});

test("an object that is cut is a DecodeError with its findings", async () => {
  const schema = jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] });
  const model = writer('{"city": "Ly', { finish: "length" });
  await assert.rejects(generateText({ model, prompt: "", output: Output.object({ schema }), maxRetries: 0 }), (error) => {
    assert.equal(error.name, "DecodeError");
    assert.ok(error.findings.length > 0);
    return true;
  });
});

test("calls that are cut, truncated or not valid do not run", async () => {
  const cases = [
    writer(CALL.slice(0, 60), { settings: { dialect: "toolcall" } }),
    writer(CALL, { finish: "length", settings: { dialect: "toolcall" } }),
    writer(CALL.replace("Lyon", "Lyon\", \"x\": \"1"), { settings: { dialect: "toolcall" } }),
  ];
  for (const model of cases) {
    const { ran, tools } = weather();
    const result = streamText({ model, prompt: "", tools, onError: () => undefined });
    await result.consumeStream();
    assert.deepEqual(ran, []);
    assert.notEqual(await result.finishReason, "tool-calls");
  }
});

test("a call that the service sent apart keeps its id, and runs only if it fits its schema", async () => {
  for (const [input, expected] of [['{"city": "Lyon"}', 1], ['{"town": 1}', 0]]) {
    const { ran, tools } = weather();
    const parts = [{ type: "tool-call", toolCallId: "c7", toolName: "weather", input }];
    const result = streamText({
      model: writer("Let me see.", { parts, finish: "tool-calls", settings: { dialect: "plain" } }),
      prompt: "",
      tools,
      onError: () => undefined,
    });
    await result.consumeStream();
    assert.equal(ran.length, expected);
    const calls = await result.toolCalls;
    assert.deepEqual(calls.map((call) => call.toolCallId), expected === 1 ? ["c7"] : []);
  }
});

test("an error of the model stays an error", async () => {
  const parts = [{ type: "error", error: new Error("no more") }];
  const errors = [];
  const result = streamText({
    model: writer("It is", { parts, finish: "error", settings: { dialect: "plain" } }),
    prompt: "",
    onError: ({ error }) => errors.push(error.message),
  });
  await result.consumeStream();
  assert.deepEqual(errors, ["no more"]);
});
