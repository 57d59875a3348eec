// The modules for pages: loaded as a browser and its bundlers load them, with the results of the other engines.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "node:test";

const run = promisify(execFile);
const child = fileURLToPath(new URL("page.mjs", import.meta.url));

/** Results of the child process with the conditions of an environment. */
async function use(part, ...conditions) {
  const { stdout } = await run(process.execPath, [...conditions.map((name) => `--conditions=${name}`), child, part]);
  const { loaded, ...results } = JSON.parse(stdout);
  return { loaded, results };
}

const hasAddon = existsSync(new URL("../loaders/tambour.node", import.meta.url));

test("a page that reads replies loads the smaller engine alone", async () => {
  const { loaded, results } = await use("decoder", "browser");
  assert.deepEqual(loaded, ["decoder.wasm"]);
  assert.deepEqual(results, (await use("decoder")).results);
  assert.deepEqual(results.value, { city: "Lyon", days: 3 });
  assert.deepEqual(results.error[0], true);
  assert.equal(results.events.at(-1).event, "completed");
});

test("a page with prompts loads the larger engine as well", async () => {
  const { loaded, results } = await use("full", "browser");
  assert.deepEqual(loaded, ["decoder.wasm", "full.wasm"]);
  assert.deepEqual(results, (await use("full")).results);
  assert.equal(results.prompt.tokens, results.prompt.text.length);
  assert.equal(results.turn.ai_message, "Hi!");
});

test("Deno and Bun read the engine from its file", async () => {
  const expected = (await use("full")).results;
  for (const condition of ["deno", "bun"]) {
    const { loaded, results } = await use("full", condition);
    assert.deepEqual(loaded, []);
    assert.deepEqual(results, expected);
  }
});

test("WebAssembly takes the place of a missing addon", { skip: !hasAddon && "there is no addon here" }, async () => {
  const preload = `data:text/javascript,${encodeURIComponent(
    'import fs from "node:fs"; import { syncBuiltinESMExports } from "node:module"; const { existsSync } = fs;' +
      'fs.existsSync = (path) => !String(path).endsWith("tambour.node") && existsSync(path); syncBuiltinESMExports();' +
      'process.on("exit", () => { if (process.report?.getReport().sharedObjects.some((path) => path.endsWith("tambour.node"))) process.exitCode = 3; });',
  )}`;
  const { stdout } = await run(process.execPath, ["--import", preload, child, "full"]);
  const { loaded, ...results } = JSON.parse(stdout);
  assert.deepEqual(loaded, []);
  assert.deepEqual(results, (await use("full")).results);
});
