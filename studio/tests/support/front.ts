import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const DIST = join(import.meta.dirname, "../../dist");

const KINDS: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

const OF_SERVER = /^\/(?:api|v1|ag-ui|healthz|readyz|metrics|openapi\.json|docs)\b/;

const policyOf = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");

/** Serves the built studio as the server does, and passes everything else on to it. */
export async function serveStudio(api: () => string): Promise<{ url: string; close: () => Promise<void> }> {
  if (!existsSync(join(DIST, "index.html"))) throw new Error("the studio is not built: run `npm run build`");
  const server = createServer((asked, answer) => {
    const path = new URL(asked.url ?? "/", "http://localhost").pathname;
    if (OF_SERVER.test(path)) passOn(api(), asked, answer);
    else serveFile(path, answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

function serveFile(path: string, answer: ServerResponse): void {
  const file = join(DIST, normalize(path));
  const found = path !== "/" && file.startsWith(DIST) && extname(file) !== "" && existsSync(file);
  const nonce = randomBytes(16).toString("base64");
  const name = found ? file : join(DIST, "index.html");
  answer.setHeader("content-type", KINDS[extname(name)] ?? "application/octet-stream");
  answer.setHeader("content-security-policy", policyOf(nonce));
  answer.end(found ? readFileSync(name) : readFileSync(name, "utf8").replace("__CSP_NONCE__", nonce));
}

function passOn(api: string, asked: IncomingMessage, answer: ServerResponse): void {
  const { host, port } = new URL(api);
  const headers = { ...asked.headers, host };
  delete headers.origin;
  const sent = request({ host: "127.0.0.1", port, path: asked.url, method: asked.method, headers }, (got) => {
    answer.writeHead(got.statusCode ?? 502, got.headers);
    got.pipe(answer);
    got.on("error", () => answer.destroy());
  });
  sent.on("error", () => {
    if (!answer.headersSent) answer.writeHead(502);
    answer.end();
  });
  answer.on("close", () => sent.destroy());
  asked.pipe(sent);
}
