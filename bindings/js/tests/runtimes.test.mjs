// The installed package in Deno and Bun, which run it as WebAssembly.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const PROGRAM = join(PACKAGE, "tests/runtimes/program.mjs");

/** Number of replies that each runtime reads; Node reads all. */
const REPLIES = 400;

/** Program of a runtime, in the package of this platform; `undefined` if there is none. */
function find(scope, path) {
  const folder = join(PACKAGE, "node_modules", scope);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.map((name) => join(folder, name, path)).find((program) => existsSync(program));
}

const RUNTIMES = [
  ["Deno", find("@deno", "deno"), ["run", "--no-remote", "--node-modules-dir=manual", "--allow-read"]],
  ["Bun", find("@oven", "bin/bun"), ["run", "--no-install"]],
];

const HAS_MODULES = existsSync(join(PACKAGE, "wasm/full.wasm"));

let folder;

before(() => {
  if (!HAS_MODULES) return;
  folder = mkdtempSync(join(tmpdir(), "tambour-runtimes-"));
  for (const part of ["dist", "loaders", "wasm", "package.json"]) {
    const options = { recursive: true, filter: (path) => !path.endsWith(".node") };
    cpSync(join(PACKAGE, part), join(folder, "node_modules/@tambour/core", part), options);
  }
  cpSync(PROGRAM, join(folder, "program.mjs"));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  const rows = readFileSync(process.env.TAMBOUR_GOLDEN, "utf8").trim().split("\n");
  const readable = rows.filter((line) => {
    const { events, reasoning, finish } = JSON.parse(line);
    return events !== undefined && reasoning === null && finish === "stop";
  });
  const step = Math.ceil(readable.length / REPLIES);
  writeFileSync(join(folder, "replies.jsonl"), readable.filter((_, index) => index % step === 0).join("\n"));
});

after(() => HAS_MODULES && rmSync(folder, { recursive: true, force: true }));

for (const [name, program, words] of RUNTIMES) {
  const missing = HAS_MODULES ? `${name} has no package for this platform` : "the WebAssembly modules are not built";
  const skip = (program === undefined || !HAS_MODULES) && missing;
  test(`${name} reads replies as Rust does (J-038)`, { skip }, () => {
    const { stdout, stderr } = spawnSync(program, [...words, "program.mjs", "replies.jsonl"], {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: process.env.PATH, HOME: folder, NO_COLOR: "1" },
    });
    assert.notEqual(stdout, "", stderr);
    const { read, ...rest } = JSON.parse(stdout);
    assert.ok(read > REPLIES / 2, `${read} replies`);
    assert.deepEqual(rest, {
      answer: "It is 4.",
      state: { trust: 8 },
      value: { a: 1 },
      macro: "{{ user }}",
      problem: "ScriptError",
    });
  });
}
