// Durable Streams: the published client reads messages while they grow, and the published conformance suite runs against the server for
// what a read-only stream has.
//
// node durable_streams.mjs PATH/TO/tambour
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stream } from "@durable-streams/client";
import { assertEqual, check, finishChecks, recordFailure, recordPass } from "./checks.mjs";
import { leftOut } from "./durable_streams.left_out.mjs";
import { startServer } from "./tambour.mjs";

const [binary] = process.argv.slice(2);

/** Model whose calls are held open: `calls` has the response of each by the name of the model. */
const calls = new Map();
const arrivals = new Map();
const model = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (text) => (body += text));
  request.on("end", () => {
    const name = JSON.parse(body).model;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    calls.set(name, response);
    arrivals.get(name)?.();
  });
});
const listen = (server) => new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${server.address().port}`)));
const frame = (delta, finish_reason = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const sendText = (name, text) => calls.get(name).write(frame({ content: text }));
const endReply = (name) => calls.get(name).end(`${frame({}, "stop")}data: [DONE]\n\n`);

const modelUrl = await listen(model);
const { base, folder, stop } = await startServer(binary, `${modelUrl}/v1`, {
  // Short long polls, and messages that continue without readers.
  TAMBOUR_HEARTBEAT_MS: "500",
  TAMBOUR_GRACE_MS: "600000",
  TAMBOUR_CORS_ORIGINS: "https://example.com",
});

let names = 0;

/** Starts a message whose model call is held open. Returns the name of the call and the URL of the stream. */
async function startMessage(fields) {
  const name = `call-${(names += 1)}`;
  const arrival = new Promise((resolve) => arrivals.set(name, resolve));
  const response = await fetch(`${base}/api/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: "x", model: name, dialect: "plain", ...fields }),
  });
  const { message_id } = await response.json();
  await arrival;
  return { name, url: `${base}/api/v1/messages/${message_id}/stream` };
}

/** Waits until the text of a message is so long, or the message has ended. Returns the response that said so. */
async function waitText(url, length, isClosed = false) {
  const start = Date.now();
  let offset = "-1", text = "";
  for (;;) {
    if (Date.now() - start > 15_000) throw new Error(`the stream has ${text.length} characters and not ${length}`);
    const response = await fetch(`${url}?view=text&live=long-poll&offset=${offset}`);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    offset = response.headers.get("stream-next-offset");
    text += await response.text();
    if (isClosed ? response.headers.get("stream-closed") : text.length >= length) return response;
  }
}

// The published client.

const words = Array.from({ length: 40 }, (_, number) => `word${number} `);

/**
 * Collects the events of a stream to its end. `cuts` is how many connections are cut after their second control event, between frames: a
 * client that has data without the control event behind it reads that data again.
 */
async function collectEvents(url, live, cuts) {
  const events = [];
  let connections = 0;
  const cutConnection = (body) => {
    let text = "";
    return body.pipeThrough(new TextDecoderStream()).pipeThrough(new TransformStream({
      transform(piece, controller) {
        text += piece;
        const control = [...text.matchAll(/event: control\n.*\n\n/g)].at(1);
        if (control) controller.enqueue(text.slice(0, control.index + control[0].length));
        if (control) controller.terminate();
      },
    })).pipeThrough(new TextEncoderStream());
  };
  const cutting = async (input, init) => {
    const response = await fetch(input, init);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    connections += 1;
    const { status, headers } = response;
    return connections <= cuts ? new Response(cutConnection(response.body), { status, headers }) : response;
  };
  const response = await stream({ url, offset: "-1", live, fetch: cutting, json: true, sseResilience: { minConnectionDuration: 0 } });
  const end = new Promise((resolve) => {
    response.subscribeJson(async ({ items }) => {
      events.push(...items);
      if (events.some(({ event }) => event === "completed" || event === "error")) resolve();
    });
  });
  return { events, end, connections: () => connections };
}

for (const [live, cuts] of [["long-poll", 0], ["sse", 0], ["sse", 5], [true, 0]]) {
  await check(`client, ${live}, ${cuts} connections lost`, async () => {
    const { name, url } = await startMessage({ output_protocol: "jsonseq_v1" });
    const { events, end, connections } = await collectEvents(url, live, cuts);
    let length = 0;
    for (const word of words) {
      sendText(name, word);
      length += word.length;
      // The first words one by one, so that the reader is at the tail.
      if (length < 140) await waitText(url, length);
    }
    endReply(name);
    await end;
    assertEqual("end", events.at(-1).event, "completed");
    const text = events.filter(({ event }) => event === "final_delta").map(({ data }) => data.text).join("");
    assertEqual("answer", text, words.join("").trimEnd());
    assertEqual("whole", events, await (await fetch(url)).json());
    if (cuts && connections() <= cuts) throw new Error(`${connections()} connections`);
  });
}

await check("client, catch-up", async () => {
  const { name, url } = await startMessage({ output_protocol: "jsonseq_v1" });
  sendText(name, "It is ");
  await waitText(url, 6);
  const first = await stream({ url: `${url}?view=text`, offset: "-1", live: false });
  assertEqual("text", [await first.text(), first.upToDate, first.streamClosed], ["It is ", true, false]);
  sendText(name, "2.");
  endReply(name);
  await waitText(url, 8, true);
  const rest = await stream({ url: `${url}?view=text`, offset: first.offset, live: false });
  assertEqual("rest", [await rest.text(), rest.upToDate, rest.streamClosed], ["2.", true, true]);
  const whole = await stream({ url, offset: "-1", live: false });
  assertEqual("events", (await whole.json()).at(-1).event, "completed");
});

// The conformance suite writes to the server below, which passes what is written on as the reply of a model and forwards what is read.

/** Streams of the suite by path: call, URL, content type, length of its text, and whether it is closed. */
const streams = new Map();
/** Writes to a stream in order. */
const queues = new Map();

async function write(entry, text, closes) {
  if (text) {
    sendText(entry.name, text);
    entry.length += text.length;
    await waitText(entry.url, entry.length);
  }
  if (closes && !entry.isClosed) {
    entry.isClosed = true;
    endReply(entry.name);
    await waitText(entry.url, entry.length, true);
  }
}

async function answerWrite(request, path, body) {
  const closes = request.headers["stream-closed"] === "true";
  let entry = streams.get(path);
  if (request.method === "POST" && !entry) return [404];
  const isNew = !entry;
  if (isNew) {
    // In this protocol white space before the first word is shown at once.
    const message = await startMessage({ output_protocol: "legacy", max_reasks: 0 });
    entry = { ...message, type: request.headers["content-type"] ?? "text/plain", length: 0, isClosed: false };
    streams.set(path, entry);
  } else if (request.method === "POST" && entry.isClosed && body) {
    return [409, { "stream-closed": "true" }];
  }
  if (isNew || request.method === "POST") await write(entry, body, closes);
  const head = await fetch(`${entry.url}?view=text`, { method: "HEAD" });
  const headers = { "stream-next-offset": head.headers.get("stream-next-offset") };
  if (entry.isClosed) headers["stream-closed"] = "true";
  if (isNew) headers.location = `${adapterUrl}${path}`;
  return [isNew ? 201 : request.method === "PUT" ? 200 : 204, headers];
}

async function forwardRead(request, path, search, response) {
  const entry = streams.get(path);
  const url = entry?.url ?? `${base}/api/v1/messages/msg_0/stream`;
  const abort = new AbortController();
  response.once("close", () => abort.abort());
  const { host, connection, ...headers } = request.headers;
  const query = `?view=text${search.replace(/^\?/, "&")}`;
  const answer = await fetch(`${url}${query}`, { method: request.method, headers, signal: abort.signal });
  const answerHeaders = Object.fromEntries(answer.headers);
  // The suite compares the whole header.
  if (answerHeaders["content-type"]?.startsWith("text/plain")) answerHeaders["content-type"] = entry.type;
  delete answerHeaders["content-encoding"];
  response.writeHead(answer.status, answerHeaders);
  response.flushHeaders();
  for await (const bytes of answer.body ?? []) response.write(bytes);
  response.end();
}

const adapter = createServer((request, response) => {
  const [path, query] = request.url.split(/\?(.*)/s);
  let body = "";
  request.setEncoding("utf8").on("data", (text) => (body += text));
  request.on("end", async () => {
    try {
      if (request.method !== "PUT" && request.method !== "POST") {
        return await forwardRead(request, path, query ? `?${query}` : "", response);
      }
      const result = (queues.get(path) ?? Promise.resolve()).then(() => answerWrite(request, path, body));
      queues.set(path, result.catch(() => {}));
      const [status, headers] = await result;
      response.writeHead(status, { "x-content-type-options": "nosniff", ...headers }).end();
    } catch (error) {
      if (!response.headersSent && error.name !== "AbortError") response.writeHead(500).end(String(error));
      else response.destroy();
    }
  });
});
const adapterUrl = await listen(adapter);

const report = join(folder, "report.json");
const runner = spawn(
  process.execPath,
  [
    join(import.meta.dirname, "node_modules/vitest/vitest.mjs"), "run", "durable_streams.suite.mjs", "--root", import.meta.dirname,
    "--config", "vitest.config.mjs", "--reporter=json", `--outputFile=${report}`,
    "--testNamePattern", `^(?!.*(${leftOut.flatMap(({ tests }) => tests).map((test) => test.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")}))`,
  ],
  { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, CONFORMANCE_TEST_URL: adapterUrl } },
);
await new Promise((resolve) => runner.once("exit", resolve));
const results = JSON.parse(readFileSync(report, "utf8")).testResults.flatMap(({ assertionResults }) => assertionResults);
const skipped = [];
for (const { fullName, status, failureMessages } of results) {
  if (status === "passed") recordPass();
  else if (status === "failed") recordFailure(`suite, ${fullName}: ${failureMessages.join(" | ").slice(0, 500)}`);
  else skipped.push(fullName);
}
const ran = results.length - skipped.length;
if (ran < 93) recordFailure(`only ${ran} tests of the suite ran`);
// The list must not name what the suite no longer has.
for (const test of leftOut.flatMap(({ tests }) => tests)) {
  if (!skipped.some((name) => name.includes(test))) recordFailure(`the suite has no test \`${test}\` to leave out`);
}

console.log(`${ran} tests of the conformance suite ran, ${skipped.length} are left out`);
await stop();
for (const http of [model, adapter]) {
  http.closeAllConnections();
  http.close();
}
finishChecks();
