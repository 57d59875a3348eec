import { createServer, request } from "node:http";
import { type AddressInfo } from "node:net";
import { type Studio } from "../support/server.ts";

/** Starts a proxy to a studio that cuts one connection, after so many bytes of the stream of a turn. */
export async function startCuttingProxy(studio: Studio, bytes: number) {
  let cuts = 0;
  let follows = 0;
  const server = createServer((incoming, answer) => {
    const target = new URL(incoming.url ?? "/", studio.url);
    if (/\/turns\/[^/]+\/events$/.test(target.pathname)) follows += 1;
    const headers = { ...incoming.headers, host: target.host };
    delete headers.origin;
    const outgoing = request(target, { method: incoming.method, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      let passedBytes = 0;
      reply.on("data", (part: Buffer) => {
        passedBytes += part.length;
        answer.write(part);
        if (cuts > 0 || passedBytes < bytes || !target.pathname.endsWith("/input")) return;
        cuts += 1;
        answer.socket?.destroy();
        outgoing.destroy();
      });
      reply.on("end", () => answer.end());
      reply.on("error", () => answer.destroy());
    });
    outgoing.on("error", () => answer.destroy());
    incoming.pipe(outgoing);
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
