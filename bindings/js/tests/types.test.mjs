// Types: the examples in `types` compile as ES module and as CommonJS, and what must not compile does not.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";

const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const path = (name) => fileURLToPath(new URL(`types/${name}`, import.meta.url));

/** Complaints of the compiler. */
const compile = (name) =>
  new Promise((resolve) => {
    execFile(process.execPath, [compiler, "-p", path(name), "--pretty", "false"], (_, stdout) => resolve(stdout.trim()));
  });

// The same example as a module of the other kind.
before(() => copyFileSync(path("example.mts"), path("example.cts")));
after(() => rmSync(path("example.cts")));

for (const [name, about] of [
  ["tsconfig.json", "Node and a page"],
  ["tsconfig.server.json", "Node alone"],
  ["tsconfig.bundler.json", "a bundler"],
  ["tsconfig.declarations.json", "the declarations of the package, checked themselves"],
]) {
  test(about, async () => assert.equal(await compile(name), ""));
}
