// Engine in the browser for prompts and dialogues.
import engine from "../wasm/full.mjs";

await engine({ module_or_path: new URL("../wasm/full.wasm", import.meta.url) });

export default engine;
