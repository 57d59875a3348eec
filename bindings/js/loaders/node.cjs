// Engine in Node: the addon of this system, or WebAssembly where there is none.
"use strict";

const { existsSync } = require("node:fs");
const { join } = require("node:path");

/** Names of the packages with addons for this system, the likely one first. */
function addonPackages() {
  const { platform, arch } = process;
  const libraries = platform === "linux" ? ["-gnu", "-musl"] : platform === "win32" ? ["-msvc"] : [""];
  return libraries.map((library) => `@tambour/core-${platform}-${arch}${library}`);
}

function loadAddon() {
  // An addon beside this file is one that was built here.
  const local = join(__dirname, "tambour.node");
  if (existsSync(local)) return require(local);
  for (const name of addonPackages()) {
    try {
      return require(name);
    } catch {
      // Not installed, or built for another C library.
    }
  }
  return undefined;
}

const engine = loadAddon() ?? require("./file.cjs");

if (engine.version() !== require("../package.json").version) {
  const message = `@tambour/core has version ${require("../package.json").version}, its addon ${engine.version()}`;
  throw new Error(`${message}; install both in the same version`);
}

module.exports = engine;
