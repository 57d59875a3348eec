// Runs the examples of the page for clients unchanged against a server that plays recorded replies.
//
// node snippets.mjs PATH/TO/tambour docs/clients.md PATH/TO/python
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

// Absolute paths, because the examples run in other folders.
const [binary, page, python] = process.argv.slice(2).map((path) => resolve(path));
const folder = mkdtempSync(join(tmpdir(), "tambour-snippets-"));
const server = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--data", folder], {
  cwd: folder,
  stdio: ["ignore", "pipe", "ignore"],
});
const base = await new Promise((resolve, reject) => {
  createInterface({ input: server.stdout }).once("line", (line) => resolve(line.replace("listening on ", "")));
  server.once("exit", () => reject(new Error("the server did not start")));
});

// JavaScript finds packages next to its file.
symlinkSync(join(import.meta.dirname, "node_modules"), join(folder, "node_modules"), "junction");
/** File and command for a block, by language. */
const runners = {
  python: (file) => [`${folder}/${file}.py`, python, "-W", "error"],
  js: (file) => [`${folder}/${file}.mjs`, process.execPath],
  sh: (file) => [`${folder}/${file}.sh`, "sh", "-e"],
  toml: (file) => [`${folder}/${file}.toml`, binary, "serve", "--print-config", "--config"],
};
const blocks = [...readFileSync(page, "utf8").matchAll(/^```(\w+)\n(.*?)^```$/gms)];
let passed = 0;
const failures = [];
for (const [number, [, language, text]] of blocks.entries()) {
  const runner = runners[language];
  if (!runner) continue;
  const [file, program, ...args] = runner(`snippet-${number}`);
  // Upstreams for examples of a configuration that refer to them.
  const preamble = language === "toml" && !text.includes("[upstreams.") ? "[upstreams.local]\nkind = \"demo\"\n[upstreams.claude]\nkind = \"demo\"\n[upstreams.demo]\nkind = \"demo\"\n" : "";
  writeFileSync(file, preamble + text.replaceAll("http://127.0.0.1:8787", base));
  const result = spawnSync(program, [...args, file], { encoding: "utf8", timeout: 60_000 });
  rmSync(file);
  // An example prints its answer or its events.
  if (result.status === 0 && result.stdout.trim() && !result.stderr.trim().match(/error|warning/i)) passed += 1;
  else failures.push(`block ${number + 1} (${language}) ended with ${result.status}:\n${text}${result.stdout}${result.stderr}`);
}
if (passed < 8) failures.push(`only ${passed} blocks were found`);
for (const failure of failures) console.log(failure);
server.kill("SIGTERM");
await new Promise((resolve) => server.once("exit", resolve));
rmSync(folder, { recursive: true });
console.log(`test result: ${failures.length ? "FAILED" : "ok"}. ${passed} passed; ${failures.length} failed;`);
process.exit(failures.length ? 1 : 0);
