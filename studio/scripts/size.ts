/** Size of the first load: the page, its scripts and styles, without lazy chunks. A build fails above the limit. */
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const LIMIT_KB = 300;
const dist = new URL("../dist/", import.meta.url);
const page = await readFile(new URL("index.html", dist), "utf8");
const files = [...page.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((match) => match[1] ?? "");
let sum = gzipSync(page).length;
for (const file of new Set(files)) sum += gzipSync(await readFile(new URL(file, dist))).length;
const kb = Math.round(sum / 1000);
console.log(`first load: ${kb} kB gzip in ${files.length} files, at most ${LIMIT_KB} kB`);
if (kb > LIMIT_KB) process.exit(1);
