// Child process of leaks.test.mjs: makes many objects, and prints what memory it has after each round.
// Arguments: kind of object, number of objects a round, number of rounds.
import { setImmediate as turn } from "node:timers/promises";

const [kind, count, rounds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

// Memory of WebAssembly modules, if the engine is one.
const memories = [];
const { Instance } = WebAssembly;
WebAssembly.Instance = class extends Instance {
  constructor(...parameters) {
    super(...parameters);
    memories.push(this.exports.memory);
  }
};

const { decode, decodeInto, loads, Pipeline, State } = await import("@tambour/core");
const { Dialogue, Script } = await import("@tambour/core/prompts");

const TOOLS = { add: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] } };
const REPLY = '<think>2 + 2</think>It is 4. <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>{\'a\': 1,}';
const UPDATE = '<content>She smiles.</content><state_update>[["ADD", "trust", 3]]</state_update>';
const SCRIPT =
  "sessions: [{session: s, phases: [{phase: p, steps: [{topic: t, actions: [{type: ai_say, content: Hi.}]}]}]}]";

/** Something that is left behind on purpose, to see that it is noticed. */
const kept = [];

const makers = {
  pipeline(number) {
    const pipeline = new Pipeline({ dialect: "toolcall", tools: TOOLS });
    pipeline.push(REPLY);
    pipeline.push(new Uint8Array(100).fill(120));
    pipeline.finish();
    void [pipeline.findings, pipeline.outcome];
    // Some are closed, some left to the garbage collector, some never read to their end.
    if (number % 2 === 0) pipeline.close();
    new Pipeline({ dialect: "plain" }).push("It is");
    loads(REPLY);
    try {
      new Pipeline({ dialect: "plane" });
    } catch {
      // As expected.
    }
  },
  iterator() {
    for (const _ of decode([REPLY, REPLY], { dialect: "plain" })) break;
    for (const _ of decodeInto({ type: "object" }, ['{"a": "b', '"}'])) break;
    decode([REPLY]);
  },
  async asyncIterator() {
    async function* source() {
      for (;;) yield REPLY;
    }
    for await (const _ of decode(source(), { dialect: "plain" })) break;
    const stream = new ReadableStream({ pull: (controller) => controller.enqueue(REPLY) });
    for await (const _ of decode(stream, { dialect: "plain" })) break;
  },
  state(number) {
    const state = new State({ trust: 5 });
    const pipeline = new Pipeline({ dialect: "filament", state, message: "m" });
    pipeline.push(UPDATE);
    if (number % 3 !== 0) pipeline.finish();
    state.rollback();
  },
  dialogue() {
    const dialogue = new Dialogue(new Script(SCRIPT, { language: "en" }), { "ai_say.role": "Coach" });
    dialogue.input();
    dialogue.next();
    const reader = dialogue.reader();
    reader.push('{"response": {"Coach": "Hi!"}}');
    reader.finish();
    dialogue.accept(reader);
    dialogue.save();
  },
  leak: () => kept.push(new Uint8Array(1024).fill(1)),
};

async function collect() {
  // Finalizers run in turns of their own.
  for (let at = 0; at < 4; at += 1) {
    globalThis.gc();
    await turn();
  }
}

const resident = [];
const wasm = [];
for (let round = 0; round < rounds; round += 1) {
  for (let number = 0; number < count; number += 1) {
    await makers[kind](number);
    if (number % 100 === 99) await collect();
  }
  await collect();
  resident.push(process.memoryUsage.rss());
  wasm.push(memories.reduce((sum, memory) => sum + memory.buffer.byteLength, 0));
}
console.log(JSON.stringify({ resident, wasm }));
