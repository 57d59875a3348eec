// Memory stays flat: a leak of 1 kB an object would be seen.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "node:test";

import { isWasm } from "./reading.mjs";

const child = fileURLToPath(new URL("memory.mjs", import.meta.url));
const run = promisify(execFile);

/**
 * Kinds of objects, with their number a round, for the addon and for WebAssembly, which takes longer. Each is made of
 * several.
 */
const KINDS = [
  ["pipeline", 2000, 900],
  ["iterator", 1500, 250],
  ["asyncIterator", 1500, 250],
  ["state", 1500, 350],
  ["dialogue", 1000, 125],
];

const ROUNDS = 6;

/** Growth between the round after the first, which warms up, and the last one, in bytes. */
const growth = (sizes) => sizes.at(-1) - sizes[1];

async function measure(kind, count) {
  const parameters = ["--expose-gc", ...process.execArgv.filter((name) => name.startsWith("--conditions")), child];
  const { stdout } = await run(process.execPath, [...parameters, kind, `${count}`, `${ROUNDS}`]);
  return JSON.parse(stdout);
}

/** Largest growth of the process: half of what a leak of 1 kB an object would be, or what the heap itself varies by. */
const bound = (count) => Math.max(512 * count * (ROUNDS - 2), 3.5 * 2 ** 20);

for (const [kind, ofAddon, ofWasm] of KINDS) {
  const count = isWasm ? ofWasm : ofAddon;
  test(`${ROUNDS * count} of ${kind}`, async () => {
    const { resident, wasm } = await measure(kind, count);
    // The memory of a module grows by pages of 64 kB, and only if what is free does not suffice.
    if (isWasm) assert.equal(growth(wasm), 0, `module: ${wasm}`);
    else assert.deepEqual(wasm, Array(ROUNDS).fill(0));
    assert.ok(growth(resident) < bound(count), `process: ${resident}`);
  });
}

test("a leak would be seen", async () => {
  const { resident } = await measure("leak", 2000);
  assert.ok(growth(resident) > bound(2000), `${resident}`);
});
