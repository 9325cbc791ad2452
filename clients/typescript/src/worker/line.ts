/** A worker's own connections: duplicates of the client that the program made. */

import type { Command } from "../commands/base.ts";
import { passes } from "../errors.ts";
import { type Client, call, isCluster, isIORedis } from "../seam.ts";
import { pauses } from "./gate.ts";
import type { Net, Outage } from "./net.ts";

/** A command waits for a second at most: a server that says nothing for longer has vanished. */
const SILENCE_MS = 10_000;
/** Of a cluster, another node may answer at the next try. */
const OPENING_MS = 5_000;

interface Connection {
  connect(): Promise<unknown>;
  on(event: "error", listener: () => void): unknown;
  destroy?(): void;
  disconnect(): unknown;
}

/** One connection, or one for each node of a cluster. It is opened again when it is needed. */
export class Line {
  readonly outage: Outage;
  readonly #net: Net;
  #open: Promise<Connection & Client> | undefined;

  constructor(net: Net, outage: Outage) {
    this.#net = net;
    this.outage = outage;
  }

  /** `sending` is called when the connection is open. */
  async call<T>(command: Command<T>, sending?: () => void): Promise<T> {
    this.#open ??= this.#opened();
    const open = this.#open;
    try {
      return await within(
        SILENCE_MS,
        open.then((client) => {
          sending?.();
          return call(client, command);
        }),
      );
    } catch (error) {
      // The address may lead to another server by now.
      if (passes(error) && this.#open === open) this.close();
      throw error;
    }
  }

  /**
   * The reply, as soon as the server gives one. undefined when `isVain` before that. `sending` is
   * called before each try.
   */
  async ask<T>(
    command: Command<T>,
    isVain: () => boolean,
    sending?: () => void,
  ): Promise<T | undefined> {
    for (const pause of pauses()) {
      try {
        const reply = await this.call(command, sending);
        this.outage.answered(this);
        return reply;
      } catch (error) {
        if (!passes(error)) throw error;
        if (isVain() || this.#net.over.isOpen) return undefined;
        this.outage.failed(this, error);
      }
      await this.#net.over.wait(pause);
    }
    return undefined;
  }

  /** Opens it, if that is possible now. */
  async prepare(): Promise<void> {
    this.#open ??= this.#opened();
    const open = this.#open;
    try {
      await open;
    } catch {
      // Its commands say so.
      if (this.#open === open) this.close();
    }
  }

  close(): void {
    const open = this.#open;
    this.#open = undefined;
    open?.then(closed, () => {});
  }

  async #opened(): Promise<Connection & Client> {
    const made = duplicate(this.#net.client) as Connection & Client;
    made.on("error", () => {}); // its commands tell
    try {
      await within(OPENING_MS, made.connect());
    } catch (error) {
      closed(made);
      throw error;
    }
    this.#net.connected();
    return made;
  }
}

// A wait on the server is no silence: no time limits of the program's own client.
const PATIENT = { commandTimeout: undefined, socketTimeout: undefined };

/** One that doesn't come back by itself: the worker opens another one, with pauses of its own. */
function duplicate(client: Client): unknown {
  if (isIORedis(client)) {
    if (client.isCluster) return duplicateOfIORedisCluster(client);
    const once = { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 };
    return client.duplicate({ ...once, ...PATIENT } as never);
  }
  if (isCluster(client)) return duplicateOfCluster(client);
  const { socket } = (client as { options?: { socket?: object } }).options ?? {};
  return client.duplicate({
    socket: { ...socket, socketTimeout: undefined, reconnectStrategy: false },
  });
}

/** Begun at all nodes that are known by now: the first one may be away. */
function duplicateOfIORedisCluster(client: Client): unknown {
  const { startupNodes = [], nodes } = client as unknown as {
    readonly startupNodes?: readonly unknown[];
    nodes(): readonly { readonly options: { readonly host?: string; readonly port?: number } }[];
  };
  const known = nodes.call(client).map(({ options: { host, port } }) => ({ host, port }));
  const overrides = {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    // It asks any node, also one that says nothing.
    enableReadyCheck: false,
    // For slots that move. It would take other errors several seconds.
    maxRedirections: 3,
    redisOptions: PATIENT,
  };
  return client.duplicate(...([[...startupNodes, ...known], overrides] as never[]));
}

interface Node {
  readonly host: string;
  readonly port: number;
}

function duplicateOfCluster(client: Client): unknown {
  const { _self, masters, replicas } = client as unknown as {
    readonly _self?: { readonly _options?: { rootNodes?: object[]; defaults?: Defaults } };
    readonly masters: readonly Node[];
    readonly replicas: readonly Node[];
  };
  const { rootNodes = [], defaults } = _self?._options ?? {};
  const known = [...masters, ...replicas].map(({ host, port }) => ({ socket: { host, port } }));
  const socket = { ...defaults?.socket, socketTimeout: undefined, reconnectStrategy: false };
  const overrides = { minimizeConnections: true, defaults: { ...defaults, socket } };
  if (rootNodes.length === 0) return client.duplicate(overrides as never);
  return client.duplicate({ ...overrides, rootNodes: [...rootNodes, ...known] } as never);
}

interface Defaults {
  readonly socket?: object;
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
