// Programs of the pages run as printed.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import ts from "typescript";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const PAGES = ["README.md", "../../docs/javascript.md"];

/** Programs of a page in order, but for those that say that they are not run. */
function programs(page) {
  const text = readFileSync(join(PACKAGE, page), "utf8").replace(/<!-- not run[^>]*-->\s*```ts\n[^]*?```/g, "");
  return [...text.matchAll(/```ts\n([^]*?)```/g)].map(([, program]) => program);
}

for (const page of PAGES) {
  test(`the programs of ${page} print what they say`, (context) => {
    // Within the package, so that its own name and those of its tools are known.
    const folder = mkdtempSync(join(PACKAGE, "tests/.docs-"));
    context.after(() => rmSync(folder, { recursive: true }));
    const all = programs(page);
    assert.ok(all.length > 0, page);
    for (const program of all) {
      const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, removeComments: true };
      const path = join(folder, "program.mjs");
      writeFileSync(path, ts.transpileModule(program, { compilerOptions: options }).outputText);
      const expected = [...program.matchAll(/\/\/ prints (.*)/g)].map(([, line]) => `${line}\n`).join("");
      const { stdout, stderr } = spawnSync(process.execPath, [...process.execArgv, path], { encoding: "utf8" });
      assert.equal(stdout, expected, `${program}\n${stderr}`);
    }
  });
}
