// A server of the tests, with a data folder of its own.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Starts the server with an upstream at `upstream`. Returns its address, a folder that `stop` removes, and `stop`. */
export async function startServer(binary, upstream, env = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tambour-clients-"));
  const server = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--data", folder, "--upstream", `openai=${upstream}`], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, ...env },
  });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const base = await new Promise((resolve, reject) => {
    createInterface({ input: server.stdout }).once("line", (line) => resolve(line.replace("listening on ", "")));
    server.once("exit", () => reject(new Error("the server did not start")));
  });
  const stop = async () => {
    server.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true });
  };
  return { base, folder, stop };
}
