// The published clients of other protocols read every recorded reply through the server, without a warning.
//
// node clients.mjs PATH/TO/tambour FOLDER_OF_RECORDINGS
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { DefaultChatTransport, readUIMessageStream } from "ai";
import { HttpAgent } from "@ag-ui/client";

const [binary, recordings] = process.argv.slice(2);
const files = readdirSync(recordings).filter((name) => name.endsWith(".jsonl")).sort();
const lines = files.map((name) => readFileSync(join(recordings, name), "utf8")).join("\n").split("\n").filter(Boolean);
const records = lines.map((line) => JSON.parse(line));

const folder = mkdtempSync(join(tmpdir(), "tambour-clients-"));
writeFileSync(join(folder, "recordings.jsonl"), lines.join("\n"));
const server = spawn(
  binary,
  ["serve", "--listen", "127.0.0.1:0", "--data", folder, "--upstream", `replay=${join(folder, "recordings.jsonl")}`],
  { stdio: ["ignore", "pipe", "ignore"] },
);
const ended = new Promise((resolve) => server.once("exit", resolve));
const base = await new Promise((resolve, reject) => {
  createInterface({ input: server.stdout }).once("line", (line) => resolve(line.replace("listening on ", "")));
  server.once("exit", () => reject(new Error("the server did not start")));
});
const warnings = [];
for (const level of ["warn", "error"]) console[level] = (...words) => warnings.push(words.join(" "));
let passed = 0;
const failures = [];

const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: base, apiKey: "none", maxRetries: 0 });

/** The answer and the end as the server's own record has them. */
async function wanted(model, dialect) {
  const response = await fetch(`${base}/api/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: "x", model, dialect, wait: true }),
  });
  return response.json();
}

function same(name, got, expected) {
  if (JSON.stringify(got) !== JSON.stringify(expected)) {
    throw new Error(`${name}: ${JSON.stringify(got)?.slice(0, 300)} instead of ${JSON.stringify(expected)?.slice(0, 300)}`);
  }
}

const called = (record) => record.events.some(({ event }) => event === "tool_call");

const clients = {
  async "chat, stream"(ask, record) {
    const stream = await openai.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } });
    let text = "", finish, usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    same("answer", text, record.answer);
    same("finish", finish, record.finish_reason === "length" ? "length" : called(record) ? "tool_calls" : "stop");
    if (!(usage.total_tokens >= 0)) throw new Error("no usage");
  },
  async "chat, helper"(ask, record) {
    const runner = openai.chat.completions.stream(ask);
    const whole = await runner.finalChatCompletion();
    same("answer", whole.choices[0].message.content, record.answer);
  },
  async "chat, whole"(ask, record) {
    const whole = await openai.chat.completions.create(ask);
    same("answer", whole.choices[0].message.content, record.answer);
  },
  async "responses, helper"(ask, record) {
    const stream = openai.responses.stream({ model: ask.model, input: "x", tambour: ask.tambour });
    const whole = await stream.finalResponse();
    same("answer", whole.output_text, record.answer);
    const again = await openai.responses.retrieve(whole.id);
    // The helper adds fields of its own.
    const bare = ({ parsed_arguments, ...item }) => ({ ...item, content: item.content?.map(({ parsed, ...part }) => part) });
    same("output", again.output.map(bare), whole.output.map(bare));
    // From each number on, the rest.
    const events = async (starting_after) => {
      const seen = [];
      for await (const event of await openai.responses.retrieve(whole.id, { stream: true, starting_after })) seen.push(event);
      return seen;
    };
    const all = await events(undefined);
    for (const cut of [0, 1, Math.floor(all.length / 2), all.length - 2]) {
      same(`events after ${cut}`, await events(cut), all.slice(cut + 1));
    }
  },
  async "responses, whole"(ask, record) {
    const whole = await openai.responses.create({ model: ask.model, input: "x", tambour: ask.tambour });
    same("answer", whole.output_text, record.answer);
  },
  async "anthropic, helper"(ask, record) {
    const stream = anthropic.messages.stream({ ...ask, max_tokens: 100 });
    const whole = await stream.finalMessage();
    const text = whole.content.filter((block) => block.type === "text").map((block) => block.text).join("");
    same("answer", text, record.answer);
    same("stop", whole.stop_reason, record.finish_reason === "length" ? "max_tokens" : called(record) ? "tool_use" : "end_turn");
  },
  async "anthropic, whole"(ask, record) {
    const whole = await anthropic.messages.create({ ...ask, max_tokens: 100 });
    const text = whole.content.filter((block) => block.type === "text").map((block) => block.text).join("");
    same("answer", text, record.answer);
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
    same("answer", text, record.answer);
    const open = last.parts.filter((part) => part.state === "streaming");
    same("open parts", open, []);
    same("resume", await transport.reconnectToStream({ chatId }), null);
  },
  async "ag-ui"(ask, record) {
    const agent = new HttpAgent({ url: `${base}/ag-ui`, threadId: `thread-${Math.random()}` });
    agent.messages = [{ id: "1", role: "user", content: "x" }];
    const result = await agent.runAgent({ forwardedProps: { model: ask.model, tambour: ask.tambour } });
    const said = result.newMessages.filter((message) => message.role === "assistant").map((message) => message.content).join("");
    same("answer", said, record.answer);
  },
};

for (const { id, protocol } of records) {
  const model = `replay/${id}`;
  const record = await wanted(id, protocol ?? "auto");
  const ask = { model, messages: [{ role: "user", content: "x" }], tambour: { dialect: protocol ?? "auto" } };
  for (const [name, run] of Object.entries(clients)) {
    warnings.length = 0;
    try {
      await run(ask, record);
      if (warnings.length) throw new Error(`warnings: ${warnings.join("; ").slice(0, 300)}`);
      passed += 1;
    } catch (error) {
      failures.push(`${name}, ${id}: ${error?.stack?.split("\n").slice(0, 3).join(" | ") ?? error}`);
    }
  }
}
for (const failure of failures) console.log(failure);
server.kill("SIGTERM");
await ended;
rmSync(folder, { recursive: true });
console.log(`test result: ${failures.length ? "FAILED" : "ok"}. ${passed} passed; ${failures.length} failed;`);
process.exit(failures.length ? 1 : 0);
