// Engine in the browser: the smaller module, without prompts and dialogues.
import engine from "../wasm/decoder.mjs";

await engine({ module_or_path: new URL("../wasm/decoder.wasm", import.meta.url) });

export default engine;
