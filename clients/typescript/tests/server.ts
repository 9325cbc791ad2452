/** A server for all tests of a file, and a client of each library. */

import { after, before, beforeEach } from "node:test";
import type { Client } from "../src/index.ts";
import { DQServer } from "../src/testing.ts";
import { close, connected, LIBRARIES, type Library } from "./clients.ts";

export interface Used {
  readonly url: string;
  client(library: Library): Client;
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
