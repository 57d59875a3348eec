// Reader in a thread of its own, which leaves the page free to answer. A newer text ends the reading of the one before.
import { loadEngine } from "./engine.js";

let reading = new AbortController();

/** Loads the engine and then what needs it. */
const reader = loadEngine().then(() => import("./reader.js"));
reader.then(
  () => postMessage({ kind: "ready" }),
  (error) => postMessage({ kind: "broken", message: error.message }),
);

addEventListener("message", async ({ data: { number, input } }) => {
  reading.abort();
  reading = new AbortController();
  const { signal } = reading;
  const { read } = await reader;
  try {
    const onProgress = (part) => postMessage({ kind: "progress", number, part });
    const result = await read(input, signal, onProgress);
    postMessage({ kind: "result", number, result });
  } catch (error) {
    if (signal.aborted) return;
    const isRefusal = error.name === "TambourError" && error.code !== "internal";
    postMessage({ kind: "error", number, message: isRefusal ? error.message : null });
  }
});
