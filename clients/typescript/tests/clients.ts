/** Clients of both libraries. */

import { Cluster, Redis } from "ioredis";
import { createClient, createCluster } from "redis";
import type { Client, Pipeline } from "../src/index.ts";

export type Library = "node-redis" | "ioredis";
export const LIBRARIES: readonly Library[] = ["node-redis", "ioredis"];

interface Settings {
  readonly protocol?: 2 | 3;
  readonly cluster?: boolean;
  /** Of the library: of its client, and of a connection. */
  readonly given?: object;
  readonly socket?: object;
}

export async function connected(
  library: Library,
  url: string,
  { protocol = 3, cluster = false, given, socket }: Settings = {},
): Promise<Client> {
  if (library === "ioredis") {
    if (!cluster) return new Redis(url, { protocol, ...given });
    const { hostname, port } = new URL(url);
    return new Cluster([{ host: hostname, port: Number(port) }], { redisOptions: { protocol } });
  }
  if (cluster) {
    const many = createCluster({ rootNodes: [{ url }], RESP: protocol });
    many.on("error", () => {});
    await many.connect();
    return many;
  }
  const one = createClient({ url, RESP: protocol, ...given, socket: { ...socket } });
  one.on("error", () => {});
  await one.connect();
  return one;
}

export function close(client: Client): void {
  const { destroy, disconnect } = client as unknown as Record<string, () => void>;
  (destroy ?? disconnect)?.call(client);
}

/** Words that are no command of DQ, too. */
export function raw(client: Client, words: readonly Buffer[]): Promise<unknown> {
  if ("callBuffer" in client) {
    const [name, ...others] = words;
    return client.callBuffer(String(name), ...others);
  }
  const many = words as unknown as string[];
  const typed = { typeMapping: { 36: Buffer, 37: Array } };
  if ("nodeClient" in client) return client.sendCommand(undefined, false, many, typed);
  return client.sendCommand(many, typed);
}

export function pipelineOf(client: Client, transaction: boolean): Pipeline {
  const any = client as unknown as {
    pipeline?(): Pipeline;
    withTypeMapping?(mapping: object): { multi(): Pipeline };
    multi(): Pipeline;
  };
  if (any.pipeline && !transaction) return any.pipeline();
  const mapped = any.withTypeMapping?.({ 36: Buffer, 37: Array }) ?? any;
  return mapped.multi();
}

export function putRaw(pipeline: Pipeline, words: readonly Buffer[]): void {
  if ("callBuffer" in pipeline) {
    pipeline.callBuffer(...([String(words[0]), ...words.slice(1)] as unknown as [string]));
  } else {
    pipeline.sendCommand(words as unknown as string[]);
  }
}
