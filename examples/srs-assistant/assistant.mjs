// An assistant that writes requirements documents: four tools as a webhook, and a client that asks and shows what happens.
// Node alone; nothing is installed. `node assistant.mjs --help` says more.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: "string", default: process.env.TAMBOUR_URL ?? "http://127.0.0.1:8787" },
    key: { type: "string", default: process.env.TAMBOUR_KEY ?? "" },
    prompt: { type: "string" },
    yes: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (given.help) {
  console.log(`node assistant.mjs [--server URL] [--key KEY] [--prompt FILE] [--yes] [WHAT YOU WANT]

--prompt FILE   system prompt, such as the output of \`tambour contract show aiplan\`
--yes           allow every edit without asking`);
  process.exit(0);
}
const wanted = positionals.join(" ") || "创建电商平台SRS，检查质量并修复问题";

// ---- The four tools. They keep their document in memory.

const document = { name: "", lines: [] };
const args = (more = {}) => ({
  type: "object",
  properties: { userInput: { type: "string" }, projectName: { type: "string" }, ...more },
  required: ["userInput"],
});

const tools = {
  classifyProjectComplexity: {
    about: "分析项目复杂度",
    readOnly: true,
    run: ({ sessionData }) => {
      const features = sessionData?.features ?? [];
      return { complexity: features.length > 3 ? "complex" : "simple", features: features.length };
    },
  },
  createComprehensiveSRS: {
    about: "创建完整的SRS文档",
    run: ({ projectName, sessionData }) => {
      document.name = projectName ?? "SRS";
      const features = sessionData?.features ?? ["核心流程"];
      document.lines = features.map((feature, at) => `FR-${at + 1} ${feature}`);
      return { document: document.name, requirements: document.lines };
    },
  },
  lintSRSDocument: {
    about: "执行SRS质量检查",
    readOnly: true,
    run: () => {
      const missing = document.lines.some((line) => line.startsWith("NFR-")) ? [] : ["没有非功能需求"];
      return { document: document.name, findings: missing };
    },
  },
  editSRSDocument: {
    about: "编辑现有SRS文档",
    confirm: true,
    run: ({ userInput }) => {
      document.lines.push(`NFR-1 ${userInput}`);
      return { document: document.name, requirements: document.lines };
    },
  },
};

// ---- The webhook: checks who calls, and answers a call that comes twice as it did the first time.

const secret = randomBytes(24).toString("hex");
const answered = new Map();

function signed(request, body) {
  const time = request.headers["x-tambour-timestamp"] ?? "";
  const fresh = Math.abs(Date.now() / 1000 - Number(time)) < 300;
  const wantedTag = `sha256=${createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")}`;
  const tag = Buffer.from(String(request.headers["x-tambour-signature"] ?? ""));
  return fresh && tag.length === wantedTag.length && timingSafeEqual(tag, Buffer.from(wantedTag));
}

const webhook = createServer(async (request, response) => {
  const send = (status, value) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  let body = "";
  request.setEncoding("utf8");
  for await (const piece of request) body += piece;
  if (!signed(request, body)) return send(401, { error: "the signature is not ours" });
  const once = request.headers["idempotency-key"];
  if (!answered.has(once)) {
    const call = JSON.parse(body);
    const tool = tools[call.name];
    if (!tool) return send(404, { error: `no tool ${call.name}` });
    answered.set(once, tool.run(call.args));
  }
  send(200, answered.get(once));
});

// ---- The client.

const headers = { "content-type": "application/json" };
if (given.key) headers.authorization = `Bearer ${given.key}`;

async function call(method, path, body) {
  const response = await fetch(new URL(path, given.server), { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${path}: ${(await response.json()).detail}`);
  return response;
}

async function* events(response) {
  let rest = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const frames = (rest + piece).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const line = (name) => frame.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      yield { event: line("event"), data: JSON.parse(line("data")) };
    }
  }
}

async function confirm(message, calls) {
  const confirmations = [];
  for (const { call_id, name } of calls) {
    let allow = given.yes;
    if (!allow) {
      const terminal = createInterface({ input: process.stdin, output: process.stdout });
      allow = /^(y|yes|是)$/i.test((await terminal.question(`\n? may ${name} run [y/N] `)).trim());
      terminal.close();
    }
    confirmations.push({ call_id, allow });
  }
  await call("POST", `/api/v1/messages/${message}/tool_confirmations`, { confirmations });
}

async function converse() {
  const { port } = webhook.address();
  for (const [name, { about, readOnly, confirm }] of Object.entries(tools)) {
    await call("PUT", `/api/v1/tools/${name}`, {
      description: about,
      schema: args({
        sessionData: { type: "object", properties: { features: { type: "array", items: { type: "string" } } } },
      }),
      read_only: readOnly ?? false,
      confirm: confirm ?? false,
      executor: { kind: "http", url: `http://127.0.0.1:${port}/`, timeout_ms: 10000, secret },
    });
  }
  const body = { text: wanted, dialect: "aiplan", output_protocol: "jsonseq_v1", extensions: true, stream: true };
  body.tools = Object.keys(tools);
  if (given.prompt) body.system_prompt = readFileSync(given.prompt, "utf8");
  const show = (text) => process.stdout.write(text);
  for await (const { event, data } of events(await call("POST", "/api/v1/messages", body))) {
    if (event === "phase_start") show("\n· ");
    if (event === "phase_delta") show(data.text);
    if (event === "tool_start") show(`\n> ${data.name}`);
    if (event === "tool_result") show(` ${data.ok ? JSON.stringify(data.result) : `failed: ${data.error.message}`}`);
    if (event === "status" && data.state === "awaiting_confirmation") await confirm(data.message_id, data.calls);
    if (event === "thinking_end") show("\n\n");
    if (event === "final_delta") show(data.text);
    if (event === "completed") show(`\n\n(${data.finish_reason})\n`);
    if (event === "error") throw new Error(`${data.code}: ${data.message}`);
  }
}

webhook.listen(0, "127.0.0.1", async () => {
  try {
    await converse();
  } catch (error) {
    console.error(`\n${error.message}`);
    process.exitCode = 1;
  }
  webhook.close();
  webhook.closeAllConnections();
});
