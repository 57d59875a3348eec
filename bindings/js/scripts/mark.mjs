// Makes `dist/cjs` a folder of CommonJS modules. They have a scope of their own, in which the names of the package's
// own imports are unknown; only Node reads them.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const folder = new URL("../dist/cjs/", import.meta.url);
for (const name of readdirSync(folder).filter((name) => name.endsWith(".js"))) {
  const path = new URL(name, folder);
  const text = readFileSync(path, "utf8");
  const linked = text.replace(/require\("#(?:prompt-)?engine"\)/g, 'require("../../loaders/node.cjs")');
  if (linked !== text) writeFileSync(path, linked);
}
writeFileSync(new URL("package.json", folder), '{ "type": "commonjs" }\n');
