import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Proxy to a server whose connections can be cut. */
export class Proxy {
  readonly url: string;
  readonly #sockets: Set<Socket>;
  readonly #stop: () => Promise<void>;
  readonly #block: (blocked: boolean) => void;

  private constructor(url: string, sockets: Set<Socket>, block: (blocked: boolean) => void, stop: () => Promise<void>) {
    this.url = url;
    this.#sockets = sockets;
    this.#block = block;
    this.#stop = stop;
  }

  static async to(target: string): Promise<Proxy> {
    const port = Number(new URL(target).port);
    const sockets = new Set<Socket>();
    let blocked = false;
    const server = createServer((near) => {
      if (blocked) {
        near.destroy();
        return;
      }
      const far = connect(port, "127.0.0.1");
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          sockets.delete(socket);
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far);
      far.pipe(near);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const stop = () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        sockets.forEach((socket) => socket.destroy());
      });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return new Proxy(url, sockets, (now) => (blocked = now), stop);
  }

  /** Cuts all connections, and refuses new ones until `mend`. */
  cut(): void {
    this.#block(true);
    this.#sockets.forEach((socket) => socket.destroy());
  }

  mend(): void {
    this.#block(false);
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}
