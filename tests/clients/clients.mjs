// Published clients of other protocols read every recorded reply through the server, for any cutting of the model's stream, without a
// warning, and resume after a lost connection where their protocol can.
//
// node clients.mjs PATH/TO/tambour FOLDER_OF_FIXTURES
import { join } from "node:path";
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { DefaultChatTransport, readUIMessageStream } from "ai";
import { HttpAgent } from "@ag-ui/client";
import { assertEqual, check, finishChecks, recordFailure } from "./checks.mjs";
import { authored, recorded } from "./recorded.mjs";
import { startServer } from "./tambour.mjs";
import { hold, release, replies, start } from "./upstream.mjs";

const [binary, fixtures] = process.argv.slice(2);
const upstream = await start();
const { base, stop } = await startServer(binary, upstream.base);
const warnings = [];
for (const level of ["warn", "error"]) console[level] = (...words) => warnings.push(words.join(" "));

const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: base, apiKey: "none", maxRetries: 0 });

/** Record of a message as the server stores it. */
async function fetchRecord(model, dialect) {
  const response = await fetch(`${base}/api/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: "x", model, dialect, wait: true }),
  });
  return response.json();
}

/** Answer as clients of other protocols see it: without the server's own sentences beside calls or in place of a failure. */
const visibleAnswer = (record) => (record.status === "failed" || (hasCalls(record) && record.metadata?.fallback_reason) ? "" : record.answer);

const hasCalls = (record) => record.events.some(({ event }) => event === "tool_call");

const clients = {
  async "chat, stream"(ask, record) {
    const stream = await openai.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } });
    let text = "", finish, usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    assertEqual("answer", text, visibleAnswer(record));
    assertEqual("finish", finish, record.finish_reason === "length" ? "length" : hasCalls(record) ? "tool_calls" : "stop");
    if (!(usage.total_tokens >= 0)) throw new Error("no usage");
  },
  async "chat, helper"(ask, record) {
    const runner = openai.chat.completions.stream(ask);
    const whole = await runner.finalChatCompletion();
    assertEqual("answer", whole.choices[0].message.content, visibleAnswer(record));
  },
  async "chat, whole"(ask, record) {
    const whole = await openai.chat.completions.create(ask);
    assertEqual("answer", whole.choices[0].message.content, visibleAnswer(record));
  },
  async "responses, helper"(ask, record) {
    const stream = openai.responses.stream({ model: ask.model, input: "x", tambour: ask.tambour });
    const whole = await stream.finalResponse();
    assertEqual("answer", whole.output_text, visibleAnswer(record));
    const again = await openai.responses.retrieve(whole.id);
    // The helper of the SDK adds fields.
    const bare = ({ parsed_arguments, ...item }) => ({ ...item, content: item.content?.map(({ parsed, ...part }) => part) });
    assertEqual("output", again.output.map(bare), whole.output.map(bare));
    // Resuming after each number gives the rest.
    const events = async (starting_after) => {
      const list = [];
      for await (const event of await openai.responses.retrieve(whole.id, { stream: true, starting_after })) list.push(event);
      return list;
    };
    const all = await events(undefined);
    for (const cut of [0, 1, Math.floor(all.length / 2), all.length - 2]) {
      assertEqual(`events after ${cut}`, await events(cut), all.slice(cut + 1));
    }
  },
  async "responses, stream"(ask, record) {
    const whole = await openai.responses.stream({ model: ask.model, input: "x", tambour: ask.tambour }).finalResponse();
    assertEqual("answer", whole.output_text, visibleAnswer(record));
  },
  async "responses, whole"(ask, record) {
    const whole = await openai.responses.create({ model: ask.model, input: "x", tambour: ask.tambour });
    assertEqual("answer", whole.output_text, visibleAnswer(record));
  },
  async "anthropic, helper"(ask, record) {
    const stream = anthropic.messages.stream({ ...ask, max_tokens: 100 });
    const whole = await stream.finalMessage();
    const text = whole.content.filter((block) => block.type === "text").map((block) => block.text).join("");
    assertEqual("answer", text, visibleAnswer(record));
    assertEqual("stop", whole.stop_reason, record.finish_reason === "length" ? "max_tokens" : hasCalls(record) ? "tool_use" : "end_turn");
  },
  async "anthropic, whole"(ask, record) {
    const whole = await anthropic.messages.create({ ...ask, max_tokens: 100 });
    const text = whole.content.filter((block) => block.type === "text").map((block) => block.text).join("");
    assertEqual("answer", text, visibleAnswer(record));
  },
  async "ai sdk"(ask, record) {
    const transport = new DefaultChatTransport({ api: `${base}/api/chat`, body: { model: ask.model, tambour: ask.tambour } });
    const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "x" }] }];
    const chatId = `chat-${Math.random()}`;
    const stream = await transport.sendMessages({ chatId, messages, trigger: "submit-message" });
    let last, failed;
    for await (const message of readUIMessageStream({ stream, onError: (error) => (failed = error) })) last = message;
    if (failed) throw failed;
    const text = last.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
    assertEqual("answer", text, visibleAnswer(record));
    const open = last.parts.filter((part) => part.state === "streaming");
    assertEqual("open parts", open, []);
    assertEqual("resume", await transport.reconnectToStream({ chatId }), null);
  },
  async "ag-ui"(ask, record) {
    const agent = new HttpAgent({ url: `${base}/ag-ui`, threadId: `thread-${Math.random()}` });
    agent.messages = [{ id: "1", role: "user", content: "x" }];
    const result = await agent.runAgent({ forwardedProps: { model: ask.model, tambour: ask.tambour } });
    const text = result.newMessages.filter((message) => message.role === "assistant").map((message) => message.content).join("");
    assertEqual("answer", text, visibleAnswer(record));
  },
};

/** Builds a request for a reply whose stream is cut after so many characters. */
const requestFor = ({ key, dialect }, size) => ({
  model: `openai/${key}@${size}`,
  messages: [{ role: "user", content: "x" }],
  tambour: { dialect },
});

// Recorded replies, cut into characters and whole, with every client; authored ones with two of the streaming clients, cut in one of four
// sizes, so that each client reads some of them in each size.
const STREAMING = ["chat, stream", "responses, stream", "anthropic, helper", "ai sdk", "ag-ui"];
const work = [];
for (const reply of recorded(join(fixtures, "recorded"))) {
  for (const size of [1, 0]) work.push({ reply, size, names: size === 0 ? Object.keys(clients) : STREAMING });
}
authored(fixtures).forEach((reply, place) => {
  const names = [place, place + 2].map((at) => STREAMING[at % STREAMING.length]);
  work.push({ reply, size: [1, 3, 11, 0][place % 4], names });
});
for (const { reply } of work) replies.set(reply.key, reply);

const expected = new Map();
async function worker() {
  for (let job; (job = work.pop()); ) {
    const { reply, size, names } = job;
    if (!expected.has(reply.key)) expected.set(reply.key, fetchRecord(`${reply.key}@0`, reply.dialect));
    const record = await expected.get(reply.key);
    for (const name of names) {
      await check(`${name}, ${reply.key}, cut after ${size}`, async () => {
        try {
          await clients[name](requestFor(reply, size), record);
        } catch (error) {
          // A failure carries the message of the server.
          if (record.status !== "failed" || !String(error?.message).includes(record.error.message)) throw error;
        }
      });
    }
  }
}
await Promise.all(Array.from({ length: 8 }, worker));

// Connections lost in the middle of a reply.
const long = [...replies.values()].find(({ dialect, text }) => dialect === "thinkingml" && text.includes("</final>") && text.length > 200);
const record = await fetchRecord(`${long.key}@0`, long.dialect);

await check("responses, connection lost", async () => {
  hold(long.key);
  const ask = requestFor(long, 1);
  const events = [];
  const stream = await openai.responses.create({ model: ask.model, input: "x", tambour: ask.tambour, stream: true });
  for await (const event of stream) {
    events.push(event);
    if (events.length === 5) break;
  }
  const again = await openai.responses.retrieve(events[0].response.id, { stream: true, starting_after: events.at(-1).sequence_number });
  release(long.key);
  for await (const event of again) events.push(event);
  assertEqual("numbers", events.map((event) => event.sequence_number), events.map((_, number) => number));
  assertEqual("answer", events.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta).join(""), visibleAnswer(record));
  assertEqual("end", events.at(-1).type, "response.completed");
});

await check("responses, results of calls", async () => {
  const tools = [{ type: "function", name: "add", strict: false, parameters: { type: "object", properties: { a: { type: "integer" } } } }];
  replies.set("calls", { text: '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>' });
  replies.set("tells", { text: "It is 2." });
  const first = await openai.responses.create({ model: "openai/calls@3", input: "1 + 1?", tools });
  const call = first.output.find(({ type }) => type === "function_call");
  assertEqual("arguments", JSON.parse(call.arguments), { a: 1 });
  const result = { type: "function_call_output", call_id: call.call_id, output: "2" };
  const second = await openai.responses.create({ model: "openai/tells@3", previous_response_id: first.id, input: [result], tools });
  assertEqual("answer", second.output_text, "It is 2.");
  const items = [];
  for await (const item of openai.responses.inputItems.list(second.id, { order: "asc", limit: 1 })) items.push(item.type);
  assertEqual("items", items, ["message", "function_call", "function_call_output"]);
  await openai.responses.delete(second.id);
  const deletedStatus = await openai.responses.retrieve(second.id).catch(({ status }) => status);
  assertEqual("status of a deleted one", deletedStatus, 404);
});

await check("responses, in the background", async () => {
  let whole = await openai.responses.create({ model: "openai/tells@3", input: "1 + 1?", background: true });
  for (let tries = 0; whole.status === "in_progress" && tries < 500; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    whole = await openai.responses.retrieve(whole.id);
  }
  assertEqual("answer", [whole.status, whole.output_text], ["completed", "It is 2."]);
});

await check("anthropic, tokens", async () => {
  const { input_tokens } = await anthropic.messages.countTokens({ model: "openai/tells@0", messages: [{ role: "user", content: "1 + 1?" }] });
  if (!(input_tokens > 0)) throw new Error(`${input_tokens} tokens`);
});

await check("errors of the upstream", async () => {
  const error = await openai.chat.completions.create({ model: "openai/none@0", messages: [{ role: "user", content: "x" }] }).catch((error) => error);
  assertEqual("status", error.status, 404);
});

await check("ai sdk, connection lost", async () => {
  hold(long.key);
  const ask = requestFor(long, 1);
  const transport = new DefaultChatTransport({ api: `${base}/api/chat`, body: { model: ask.model, tambour: ask.tambour } });
  const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "x" }] }];
  const chatId = `chat-${Math.random()}`;
  const connection = new AbortController();
  const stream = await transport.sendMessages({ chatId, messages, trigger: "submit-message", abortSignal: connection.signal });
  const reader = stream.getReader();
  for (let chunks = 0; chunks < 3; chunks += 1) await reader.read();
  connection.abort();
  const again = await transport.reconnectToStream({ chatId });
  release(long.key);
  let last;
  for await (const message of readUIMessageStream({ stream: again })) last = message;
  assertEqual("answer", last.parts.filter((part) => part.type === "text").map((part) => part.text).join(""), visibleAnswer(record));
  assertEqual("open parts", last.parts.filter((part) => part.state === "streaming"), []);
});

await check("own events, connection lost", async () => {
  hold(long.key);
  const ask = requestFor(long, 1);
  const response = await fetch(`${base}/api/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: "x", model: `${long.key}@1`, dialect: long.dialect, output_protocol: "jsonseq_v1" }),
  });
  const { message_id } = await response.json();
  const frames = async (after, limit) => {
    const response = await fetch(`${base}/api/v1/messages/${message_id}/events`, { headers: after ? { "last-event-id": after } : {} });
    let text = "";
    const found = () => [...text.matchAll(/^id: (\d+)\nevent: (\S+)\ndata: (.*)\n\n/gm)].map(([, id, event, data]) => ({ id, event, data: JSON.parse(data) }));
    for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
      text += bytes;
      if (found().length >= limit) break;
    }
    return found().slice(0, limit);
  };
  const before = await frames(undefined, 4);
  release(long.key);
  const all = [...before, ...(await frames(before.at(-1).id, Infinity))];
  assertEqual("events", all, await frames(undefined, Infinity));
  assertEqual("end", all.at(-1).event, "completed");
});

if (warnings.length) recordFailure(`warnings: ${warnings.slice(0, 5).join("; ").slice(0, 500)}`);
await stop();
upstream.server.closeAllConnections();
upstream.server.close();
finishChecks();
