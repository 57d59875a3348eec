import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const ROOT = join(import.meta.dirname, "../../..");

/** Program under test: `TAMBOUR` names another one than the last build. */
export const BINARY = process.env["TAMBOUR"] ?? join(ROOT, "target/debug/tambour");

export type ServerOptions = {
  /** Further arguments of `tambour serve`. */
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** File of recordings to replay, relative to the repository's root; the bundled ones by default. */
  replay?: string;
  /** Replays the bundled recordings at once, instead of at the pace of a model. */
  atOnce?: boolean;
  /** Access key in the configuration of the server. */
  key?: string;
};

/** Server with the studio, on a free port of this machine. */
export class Studio {
  readonly #options: ServerOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "tambour-studio-"));
  #process: ChildProcess | null = null;
  #port = 0;
  /** Address of the server and of the studio. */
  url = "";

  private constructor(options: ServerOptions) {
    this.#options = options;
  }

  static async start(options: ServerOptions = {}): Promise<Studio> {
    if (!existsSync(BINARY)) throw new Error(`${BINARY} is missing: build it, or name another with TAMBOUR`);
    const studio = new Studio(options);
    await studio.startServer();
    return studio;
  }

  /** Writes the bundled recordings of finished replies to a file, and returns its path. */
  #recordings(): string {
    const file = join(this.#folder, "recordings.jsonl");
    const lines = ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament"].flatMap((dialect) =>
      readFileSync(join(ROOT, `fixtures/recorded/${dialect}.jsonl`), "utf8").split("\n"),
    );
    writeFileSync(file, lines.filter((line) => /"finish_reason":\s*"stop"/.test(line)).join("\n"));
    return file;
  }

  /** Starts the server; after `stopServer` with the same address and data. */
  async startServer(): Promise<void> {
    const { args = [], env = {}, replay, atOnce = false, key } = this.#options;
    const upstream = atOnce ? `replay=${this.#recordings()}` : replay === undefined ? "demo" : `replay=${join(ROOT, replay)}`;
    const listen = `127.0.0.1:${this.#port}`;
    const child = spawn(
      BINARY,
      ["serve", "--listen", listen, "--data", this.#folder, "--upstream", upstream, ...args],
      {
        cwd: this.#folder,
        env: { ...process.env, ...(key === undefined ? {} : { TAMBOUR_API_KEY: key }), ...env },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    this.#process = child;
    let errorText = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errorText = (errorText + text).slice(-4000);
    });
    this.url = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", (line) => resolve(line.replace("listening on ", "")));
      child.once("exit", () => reject(new Error(`the server did not start: ${errorText}`)));
    });
    this.#port = Number(new URL(this.url).port);
    const home = await (await fetch(this.url)).text();
    if (!home.includes('id="root"')) throw new Error("the server has no studio: run `npm run build`, then build the server");
  }

  /** Ends the server; its data stays. */
  async stopServer(): Promise<void> {
    const child = this.#process;
    if (child === null) return;
    this.#process = null;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    const killTimer = setTimeout(() => child.kill("SIGKILL"), 5000);
    await ended;
    clearTimeout(killTimer);
  }

  async stop(): Promise<void> {
    await this.stopServer();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Sends a request to the API, to prepare a test or to check its effect. */
  async request(method: string, path: string, body?: unknown): Promise<unknown> {
    const { key } = this.#options;
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`);
    return text === "" ? undefined : JSON.parse(text);
  }
}
