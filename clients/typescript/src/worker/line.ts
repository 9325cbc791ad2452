/** A worker's own connections: duplicates of the client that the program made. */

import type { Command } from "../commands/base.ts";
import { passes } from "../errors.ts";
import { type Client, call, isCluster, isIORedis } from "../seam.ts";
import { type Gate, pauses } from "./gate.ts";

/** What all lines of a worker share. */
export interface Net {
  readonly client: Client;
  /** Open when the worker has ended. */
  readonly over: Gate;
  warn(what: string, error: unknown): void;
}

/** A command waits for a second at most: a server that says nothing for longer has vanished. */
const SILENCE_MS = 10_000;

interface Connection {
  connect(): Promise<unknown>;
  on(event: "error", listener: () => void): unknown;
  destroy?(): void;
  disconnect(): unknown;
}

/** One connection, or one for each node of a cluster. It is opened when it is needed. */
export class Line {
  readonly #net: Net;
  #open: Promise<Connection & Client> | undefined;

  constructor(net: Net) {
    this.#net = net;
  }

  async call<T>(command: Command<T>): Promise<T> {
    this.#open ??= opened(this.#net.client);
    const open = this.#open;
    try {
      return await within(
        SILENCE_MS,
        open.then((client) => call(client, command)),
      );
    } catch (error) {
      // The address may lead to another server by now.
      if (passes(error) && this.#open === open) this.close();
      throw error;
    }
  }

  /** The reply, as soon as the server gives one. undefined when `isVain` before that. */
  async ask<T>(command: Command<T>, isVain: () => boolean): Promise<T | undefined> {
    for (const pause of pauses()) {
      try {
        return await this.call(command);
      } catch (error) {
        if (!passes(error)) throw error;
        if (isVain() || this.#net.over.isOpen) return undefined;
        this.#net.warn("the server doesn't answer", error);
      }
      await this.#net.over.waitFor(pause);
    }
    return undefined;
  }

  close(): void {
    const open = this.#open;
    this.#open = undefined;
    open?.then(closed, () => {});
  }
}

async function opened(client: Client): Promise<Connection & Client> {
  const made = duplicate(client) as Connection & Client;
  made.on("error", () => {}); // its commands tell
  try {
    await within(SILENCE_MS, made.connect());
  } catch (error) {
    closed(made);
    throw error;
  }
  return made;
}

/** One that doesn't come back by itself: the worker opens another one, with pauses of its own. */
function duplicate(client: Client): unknown {
  if (isIORedis(client)) {
    const overrides = { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 };
    const { isCluster: many } = client;
    return many
      ? client.duplicate(...([[], { lazyConnect: true }] as never[]))
      : client.duplicate(overrides as never);
  }
  if (isCluster(client)) return client.duplicate({ minimizeConnections: true });
  const { socket } = (client as { options?: { socket?: object } }).options ?? {};
  return client.duplicate({ socket: { ...socket, reconnectStrategy: false } });
}

function closed(connection: Connection): void {
  try {
    if (connection.destroy) connection.destroy();
    else connection.disconnect();
  } catch {
    // it is closed already
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Error(`no reply within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, silence]);
  } finally {
    clearTimeout(timer);
  }
}
