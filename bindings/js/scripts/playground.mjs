// Writes the playground into a folder, `dist/playground` or the one that is named: a page, a stylesheet, an icon, and one
// classic script with the WebAssembly module in it, so that the page also works from `file://`, where browsers load
// neither modules nor other files. Needs `npm run build` and `wasm/decoder.wasm` before.
import { copyFile, mkdir, readFile, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = new URL("../", import.meta.url);
const source = new URL("playground/", root);
const engine = fileURLToPath(new URL("engine.js", source));

const SETTINGS = {
  bundle: true,
  format: "iife",
  charset: "utf8",
  target: ["chrome109", "firefox113", "safari16.4"],
  minify: true,
  legalComments: "none",
  logLevel: "warning",
};

/** Gives the page the script of its thread, that one the engine of the page, and this one the compressed module. */
const embedding = {
  name: "embedding",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^#engine$/ }, () => ({ path: engine }));
    onResolve({ filter: /^packed-/ }, ({ path }) => ({ path, namespace: "packed" }));
    onLoad({ filter: /^packed-module$/, namespace: "packed" }, async () => {
      const module = await readFile(new URL("wasm/decoder.wasm", root));
      return { contents: gzipSync(module, { level: 9 }), loader: "binary" };
    });
    onLoad({ filter: /^packed-worker$/, namespace: "packed" }, async () => {
      const entry = fileURLToPath(new URL("worker.js", source));
      const { outputFiles } = await build({ ...SETTINGS, entryPoints: [entry], write: false, plugins: [embedding] });
      return { contents: outputFiles[0].text, loader: "text" };
    });
  },
};

/** Writes the finished playground into a folder, which is emptied before. */
export async function writePlayground(folder) {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await build({
    entryPoints: [fileURLToPath(new URL("main.js", source))],
    outfile: fileURLToPath(new URL("playground.js", folder)),
    ...SETTINGS,
    plugins: [embedding],
  });
  for (const name of ["index.html", "playground.css", "favicon.svg"]) await copyFile(new URL(name, source), new URL(name, folder));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const given = process.argv[2];
  const folder = given === undefined ? new URL("dist/playground/", root) : new URL(`${given}/`, `file://${process.cwd()}/`);
  await writePlayground(folder);
  console.log(fileURLToPath(folder));
}
