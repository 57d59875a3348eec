// Child process of pages.test.mjs: uses the package as a page would, and prints what came out.
// Argument: `decoder` for the smaller engine, `full` for both.
import { readFileSync } from "node:fs";

// Pages load modules of WebAssembly over HTTP; `fetch` of Node reads no files.
const loaded = [];
globalThis.fetch = async (address) => {
  const url = new URL(address);
  loaded.push(url.pathname.split("/").at(-1));
  return new Response(readFileSync(url), { headers: { "content-type": "application/wasm" } });
};

const core = await import("@tambour/core");
const results = { version: core.version, loaded };

const stream = new ReadableStream({
  start(controller) {
    for (const byte of new TextEncoder().encode("<think>2 + 2</think>It is **4** \u{1f600}.")) {
      controller.enqueue(Uint8Array.of(byte));
    }
    controller.close();
  },
});
results.events = [];
for await (const event of core.decode(stream, { dialect: "plain" })) results.events.push(event);

const state = new core.State({ trust: 5 });
const reply = '<content>She smiles.</content><state_update>[["ADD", "trust", 3]]</state_update>';
results.filament = [...core.decode(reply, { dialect: "filament", state })];
results.state = state.save();
results.value = core.decodeInto({ type: "object" }, [..."Sure: {'city': 'Lyon', days: 3,}"]).final();
results.verdict = core.check("<final>\nHi.\n</final>", { contract: "thinkingml" });
try {
  new core.Pipeline({ dialect: "plane" });
} catch (error) {
  results.error = [error instanceof core.TambourError, error.message];
}

if (process.argv[2] === "full") {
  const { Dialogue, renderPrompt, Script } = await import("@tambour/core/prompts");
  const skein = { blocks: [{ tag: "a", text: "{{ b }}" }] };
  results.prompt = renderPrompt(skein, { b: "c" }, { countTokens: (text) => text.length });
  const text =
    "sessions: [{session: s, phases: [{phase: p, steps: [{topic: t, actions: [{type: ai_say, content: Hi.}]}]}]}]";
  const dialogue = new Dialogue(new Script(text, { language: "en" }), { "ai_say.role": "Coach" });
  dialogue.input();
  dialogue.next();
  dialogue.reply('{"response": {"Coach": "Hi!"}}');
  results.turn = dialogue.turn;
}
console.log(JSON.stringify(results));
