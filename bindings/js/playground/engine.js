// Engine of the package as the page has it: the smaller module, packed into the script, so that the page needs no
// server. Importing `reader.js` before `loadEngine` has ended fails.
import engine from "../wasm/decoder.mjs";
import packed from "packed-module";

/** Compiles the module. Rejects if the browser has no WebAssembly, or a policy forbids it. */
export async function loadEngine() {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();
  await engine({ module_or_path: bytes });
}

export default engine;
