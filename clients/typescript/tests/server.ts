/** A server for all tests of a file, and a client of each library. */

import { after, before, beforeEach } from "node:test";
import type { Client } from "../src/index.ts";
import { DQServer } from "../src/testing.ts";
import { close, connected, LIBRARIES, type Library, raw } from "./clients.ts";

export interface Used {
  readonly url: string;
  readonly port: number;
  client(library: Library): Client;
  /** The server says nothing while `work` goes on. */
  away(work: () => Promise<void>): Promise<void>;
}

export function used(): Used {
  let server: DQServer | undefined;
  const clients = new Map<Library, Client>();
  before(async () => {
    server = await DQServer.start();
    for (const library of LIBRARIES) clients.set(library, await connected(library, server.url));
  });
  beforeEach(() => server?.flush());
  after(async () => {
    for (const client of clients.values()) close(client);
    await server?.stop();
  });
  return {
    get url() {
      return server?.url ?? "";
    },
    get port() {
      return server?.port ?? 0;
    },
    async away(work) {
      const info = await raw(clients.get("node-redis") as Client, [Buffer.from("INFO")]);
      const pid = Number(/process_id:(\d+)/.exec(String(info))?.[1]);
      process.kill(pid, "SIGSTOP");
      try {
        await work();
      } finally {
        process.kill(pid, "SIGCONT");
      }
    },
    client: (library) => clients.get(library) as Client,
  };
}

/** Waits for a condition, half a minute at most. */
export async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`never: ${isSo}`);
    await new Promise((goOn) => setTimeout(goOn, 5));
  }
}
