// Model behind the server: sends a prepared reply in pieces of any size, and can be held in the middle.
import { createServer } from "node:http";

/** Replies by key. */
export const replies = new Map();
/** Gates of held replies, by key. */
const gates = new Map();

/** Lets a held reply continue. */
export function release(key) {
  gates.get(key)?.open();
}

/** Holds the reply of that key in its middle until it is released. */
export function hold(key) {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  gates.set(key, { opened, open });
}

/** Starts the upstream and returns its base URL. Models are called `KEY@CHARACTERS`, with `0` for a single piece. */
export function start() {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text) => (body += text));
    request.on("end", () => answer(JSON.parse(body).model, response));
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve({ base: `http://127.0.0.1:${server.address().port}/v1`, server }));
  });
}

async function answer(model, response) {
  const at = model.lastIndexOf("@");
  const [key, size] = [model.slice(0, at), Number(model.slice(at + 1))];
  const reply = replies.get(key);
  if (!reply) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": "text/event-stream" });
  const characters = [...reply.text];
  const pieces = [];
  for (let from = 0; from < characters.length; from += size || characters.length) {
    pieces.push(characters.slice(from, from + (size || characters.length)).join(""));
  }
  const frame = (delta, finish_reason = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const gate = gates.get(key);
  for (const [number, piece] of pieces.entries()) {
    if (gate && number === Math.floor(pieces.length / 2)) await gate.opened;
    // One write for each piece, so that pieces arrive as they were cut.
    if (!response.write(frame({ content: piece }))) await new Promise((resolve) => response.once("drain", resolve));
  }
  response.write(frame({}, reply.finish ?? "stop"));
  response.end("data: [DONE]\n\n");
}
