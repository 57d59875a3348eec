/** Packs the files of a build in place of them: the server hands them out as they are where a browser takes gzip. */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

/** Smaller files gain nothing. */
const LEAST = 1000;
const assets = new URL("../dist/assets/", import.meta.url);
for (const name of await readdir(assets)) {
  if (!/\.(?:js|css|svg|wasm)$/.test(name)) continue;
  const content = await readFile(new URL(name, assets));
  if (content.length < LEAST) continue;
  await writeFile(new URL(`${name}.gz`, assets), gzipSync(content, { level: 9 }));
  await rm(new URL(name, assets));
}
