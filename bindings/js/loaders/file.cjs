// Engine as WebAssembly from a file: Deno, Bun, and Node where there is no addon.
"use strict";

const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const engine = require("../wasm/full.cjs");

engine.initSync({ module: readFileSync(join(__dirname, "../wasm/full.wasm")) });

module.exports = engine;
