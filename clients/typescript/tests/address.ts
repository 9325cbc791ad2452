/** An address that leads to a server, and can be cut: an outage of the network. */

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class Address {
  readonly port: number;
  #leadsTo: number | undefined;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, leadsTo: number) {
    this.#server = server;
    this.#leadsTo = leadsTo;
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", (socket) => this.#carry(socket));
  }

  static async to(port: number): Promise<Address> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Address(server, port);
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}/0`;
  }

  cut(): void {
    this.#leadsTo = undefined;
    this.hangUp();
  }

  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  leadTo(port: number): void {
    this.#leadsTo = port;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #carry(here: Socket): void {
    if (this.#leadsTo === undefined) {
      here.destroy();
      return;
    }
    const there = connect(this.#leadsTo, "127.0.0.1");
    for (const [one, other] of [
      [here, there],
      [there, here],
    ] as const) {
      this.#sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}
