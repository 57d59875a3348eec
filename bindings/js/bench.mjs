// Speed of the package beside peers, in one run: node bench.mjs [BYTES] [ROUNDS]
//
// Medians of interleaved rounds. Build with a release profile first: `cargo build --release -p tambour-node`, and copy the
// library to loaders/tambour.node. `node --conditions=deno bench.mjs` measures WebAssembly.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

import { parsePartialJson } from "ai";

import { decode, decodeInto, decodeStream, loads } from "@tambour/core";

const [bytes = 1 << 20, rounds = 5] = process.argv.slice(2).map(Number);
const CHUNK = 64;

/** JSON reply of about a size, in pieces. */
function makeReply(size) {
  const items = [];
  for (let length = 0; length < size; length += 370) {
    const text = `Item ${items.length}: a sentence of a model, with "quotes" and a line\nbreak. `.repeat(5);
    items.push({ id: items.length, name: `name ${items.length % 97}`, tags: ["a", "b"], text, price: 12.5 });
  }
  const text = JSON.stringify({ items });
  const chunks = [];
  for (let at = 0; at < text.length; at += CHUNK) chunks.push(text.slice(at, at + CHUNK));
  return chunks;
}

function source(chunks) {
  return ReadableStream.from(chunks);
}

async function count(stream) {
  let items = 0;
  for await (const _ of stream) items += 1;
  return items;
}

const chunks = makeReply(bytes);
const small = makeReply(bytes / 16);
const dialect = "json_value";

/** Work, by name. */
const works = {
  "events through decodeStream": () => count(source(chunks).pipeThrough(decodeStream({ dialect }))),
  "partial values through decodeInto": () => count(decodeInto({}, source(chunks))),
  "the stream alone": () => count(source(chunks).pipeThrough(new TransformStream())),
  "parsePartialJson of the AI SDK, a sixteenth of the reply": async () => {
    // Its own way: the text so far is parsed again at each chunk.
    let text = "";
    for await (const chunk of source(small)) {
      text += chunk;
      await parsePartialJson(text);
    }
  },
  "decode of 4-character chunks": () => {
    const text = chunks.join("").slice(0, bytes / 4);
    const pieces = text.match(/[^]{1,4}/g);
    for (const _ of decode(pieces, { dialect: "plain" }));
  },
  "a loop over 4-character chunks": () => {
    const text = chunks.join("").slice(0, bytes / 4);
    let length = 0;
    for (const piece of text.match(/[^]{1,4}/g)) length += piece.length;
    return length;
  },
  "loads of 4 KB with faults": () => {
    const broken = `Sure:\n\`\`\`json\n${chunks.join("").slice(0, 4096)}\n\`\`\``.replace(/"id"/g, "id");
    for (let round = 0; round < 100; round += 1) loads(broken);
  },
};

const times = new Map(Object.keys(works).map((name) => [name, []]));
for (let round = 0; round < rounds; round += 1) {
  for (const [name, work] of Object.entries(works)) {
    const start = performance.now();
    await work();
    times.get(name).push(performance.now() - start);
  }
}
const median = (name) => times.get(name).sort((a, b) => a - b)[rounds >> 1];
for (const name of Object.keys(works)) console.log(`${name}: ${median(name).toFixed(1)} ms`);

// The peer's work grows with the square of the reply, so a whole reply takes 256 times as long as a sixteenth.
const peer = median("parsePartialJson of the AI SDK, a sixteenth of the reply");
const partial = median("partial values through decodeInto");
console.log(`beside the AI SDK: ${((peer * 16) / partial).toFixed(1)} x if it were linear, ${((peer * 256) / partial).toFixed(0)} x as it is`);
for (const name of ["decoder", "full"]) {
  try {
    const module = readFileSync(new URL(`wasm/${name}.wasm`, import.meta.url));
    console.log(`${name}.wasm: ${module.length >> 10} KiB, ${gzipSync(module, { level: 9 }).length >> 10} KiB after gzip`);
  } catch {
    console.log(`${name}.wasm: not built`);
  }
}
