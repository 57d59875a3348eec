// Functions on whole texts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

import * as core from "@tambour/core";
import { check, contract, DecodeError, loads, loadsWithFindings, repair, sanitize, TambourError } from "@tambour/core";

test("a check and its first error", () => {
  const verdict = check("<final>\nHi.\n</final>", { contract: "thinkingml", first_only: true });
  assert.equal(verdict.passed, false);
  assert.equal(verdict.findings.length, 1);
  assert.deepEqual(verdict.first_error, verdict.findings[0]);
  const { findings } = check("<final>\nHi.\n</final>", { contract: "thinkingml" });
  assert.ok(findings.some((finding) => finding.code === "thinking_missing"));
  assert.equal(check("Hi.", { contract: "plain" }).first_error ?? undefined, undefined);
  assert.equal(check('{"event":"thinking_start","data":{}}\n').contract, "jsonseq");
  assert.throws(() => check("Hi.", { contract: "plane" }), TambourError);
  assert.throws(() => check("Hi.", { nothing: 1 }), /unknown option `nothing`/);
});

test("a check of a stream (J-035)", () => {
  const lines = ["final_end", "final_end"].map((event) => JSON.stringify({ event, data: {} })).join("\n");
  const verdict = check(lines, { contract: "events" });
  assert.equal(verdict.contract, "events");
  assert.equal(verdict.passed, false);
});

test("a repair passes the check, and tells what it did", () => {
  const repaired = repair("<final>Hi", { dialect: "thinkingml", finish: "length" });
  assert.ok(repaired.findings.length > 0);
  assert.equal(repaired.is_fallback, false);
  assert.equal(repaired.dialect, "thinkingml");
  assert.equal(check(repaired.text, { contract: "thinkingml" }).passed, true);
  assert.throws(() => repair("[1]", { dialect: "json_value" }), TambourError);
  assert.throws(() => repair("a", { finish: "end" }), TambourError);
});

test("the JSON value of a text", () => {
  const value = { ok: true, n: 1 };
  for (const text of ["Sure, here you are:\n```json\n{'ok': True, 'n': 1,}\n```", '{"ok":true,"n":1}', '"ok": true, "n": 1']) {
    for (const input of [text, Buffer.from(text), new TextEncoder().encode(text).buffer]) {
      assert.deepEqual(loads(input), value, text);
      assert.deepEqual(loadsWithFindings(input).value, value, text);
    }
  }
  assert.deepEqual(loadsWithFindings('{"a":1}').findings, []);
  assert.ok(loadsWithFindings("{'a':1}").findings.length > 0);
  assert.equal(loads("null"), null);
  assert.deepEqual(loads('\ufeff{"a": 1}'), { a: 1 });
  assert.equal(loads("{'n': 9007199254740993}").n, 9007199254740992);
});

test("a text without a JSON value", () => {
  for (const call of [loads, loadsWithFindings]) {
    assert.throws(
      () => call("there is none"),
      (error) => error instanceof DecodeError && error.code === "json_missing" && Array.isArray(error.findings),
    );
    assert.throws(
      () => call('{"a": 1,}', { strict: true }),
      (error) => error instanceof DecodeError && error.findings[0].line === 1 && error.findings[0].column > 1,
    );
    assert.doesNotThrow(() => call('{"a": 1}', { strict: true }));
  }
});

test("inline HTML", () => {
  assert.equal(sanitize("<b>Hi</b> <img src=x>, 1 < 2"), "<b>Hi</b> &lt;img src=x>, 1 < 2");
  assert.equal(sanitize("<i onclick=x>a</i>", { mode: "strip" }), "<i>a</i>");
  const { text, findings } = core.sanitizeWithFindings("<script>x()</script><b>Hi");
  assert.ok(!text.includes("<script"));
  assert.ok(findings.length > 0);
  assert.throws(() => sanitize("a", { mode: "keep" }), TambourError);
});

test("contracts", () => {
  assert.equal(typeof contract("thinkingml"), "string");
  assert.notEqual(contract("thinkingml"), contract("thinkingml", { text_language: "en" }));
  const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
  const settings = { "json_value.schema": schema };
  const { $comment, ...written } = contract("json_value", { format: "json-schema", ...settings });
  assert.deepEqual(written, schema);
  assert.equal(typeof $comment, "string");
  for (const format of ["lark", "gbnf"]) assert.equal(typeof contract("json_value", { format, ...settings }), "string");
  assert.equal(contract("json_value", { format: "structural-tag", ...settings }).type, "structural_tag");
  assert.throws(() => contract("plain"), /available for/);
  assert.throws(() => contract("aiplan", { format: "yaml" }), /unknown format/);
});

test("errors keep their kind, and their place where there is one", () => {
  const error = new TambourError("a fault", "code", 3, 5);
  assert.deepEqual([error.name, error.message, error.code, error.line, error.column],
    ["TambourError", "a fault (line 3, column 5)", "code", 3, 5]);
  assert.ok(error instanceof Error && error.stack.includes("functions.test.mjs"));
  assert.equal(new DecodeError("a", "b").name, "DecodeError");
  assert.equal(structuredClone(error).message, error.message);
});

test("the package as CommonJS has the same functions", () => {
  const require = createRequire(import.meta.url);
  const common = require("@tambour/core");
  assert.deepEqual(Object.keys(common).sort(), Object.keys(core).sort());
  assert.deepEqual(common.loads("{'a': 1}"), { a: 1 });
  const state = new common.State({ trust: 5 });
  const reply = '<content>Hm.</content><state_update>[["ADD", "trust", 3]]</state_update>';
  assert.equal([...common.decode(reply, { dialect: "filament", state })].at(-1).event, "completed");
  assert.deepEqual(state.value, { trust: 8 });
  for (const name of ["prompts", "openai", "ai-sdk"]) assert.ok(Object.keys(require(`@tambour/core/${name}`)).length > 0);
  assert.equal(core.version, require("@tambour/core/package.json").version);
  assert.equal(common.version, core.version);
});

/** Modules that a module of the package loads, itself included, and the engines among them. */
function loadedModules(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  if (name.startsWith("#")) return found;
  const text = readFileSync(new URL(`../dist/esm/${name}`, import.meta.url), "utf8");
  for (const { 1: specifier } of text.matchAll(/^(?:import|export)\s(?:.*?\sfrom\s)?"([^"]+)";/gm)) {
    loadedModules(specifier.replace(/^\.\//, ""), found);
  }
  return found;
}

test("a page loads only the engine that its module needs", () => {
  const engines = (name) => [...loadedModules(name)].filter((module) => module.startsWith("#"));
  assert.deepEqual(engines("index.js"), ["#engine"]);
  assert.deepEqual(engines("openai.js"), ["#engine"]);
  assert.deepEqual(engines("ai-sdk.js"), ["#engine"]);
  assert.deepEqual(engines("prompts.js"), ["#prompt-engine"]);
  // No package beside this one.
  for (const name of ["index.js", "prompts.js", "openai.js", "ai-sdk.js"]) {
    assert.ok([...loadedModules(name)].every((module) => /^(#[a-z-]+|[a-z-]+\.js)$/.test(module)), name);
  }
});
