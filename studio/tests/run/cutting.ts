import { createServer, request } from "node:http";
import { type AddressInfo } from "node:net";
import { type Studio } from "../support/server.ts";

/** Proxy to a studio that cuts once, after so many bytes of the stream of a turn. */
export async function cutting(studio: Studio, bytes: number) {
  let cuts = 0;
  let follows = 0;
  const server = createServer((asked, answer) => {
    const target = new URL(asked.url ?? "/", studio.url);
    if (/\/turns\/[^/]+\/events$/.test(target.pathname)) follows += 1;
    const headers = { ...asked.headers, host: target.host };
    delete headers.origin;
    const sent = request(target, { method: asked.method, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      let gone = 0;
      got.on("data", (part: Buffer) => {
        gone += part.length;
        answer.write(part);
        if (cuts > 0 || gone < bytes || !target.pathname.endsWith("/input")) return;
        cuts += 1;
        answer.socket?.destroy();
        sent.destroy();
      });
      got.on("end", () => answer.end());
      got.on("error", () => answer.destroy());
    });
    sent.on("error", () => answer.destroy());
    asked.pipe(sent);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    cuts: () => cuts,
    follows: () => follows,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
