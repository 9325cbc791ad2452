/**
 * Between a command and the client library that sends it: node-redis or ioredis, one server,
 * Sentinel or a cluster. Nothing of a library is imported here.
 */

import type { Command } from "./commands/base.ts";
import { NoModule, refusal, type Subject } from "./errors.ts";
import { sent, text, type Word } from "./words.ts";

/** `createClient()` of node-redis. */
export interface NodeRedis {
  readonly options?: unknown;
  sendCommand(words: string[], options?: object): Promise<unknown>;
  duplicate(overrides?: object): unknown;
}

/** `createCluster()` of node-redis. */
export interface NodeRedisCluster {
  readonly slots: unknown;
  nodeClient(node: never): unknown;
  sendCommand(
    key: string | undefined,
    isReadonly: boolean | undefined,
    words: string[],
    options?: object,
  ): Promise<unknown>;
  duplicate(overrides?: object): unknown;
}

/** `new Redis()` or `new Cluster()` of ioredis. */
export interface IORedis {
  readonly isCluster: boolean;
  callBuffer(command: string, ...words: Word[]): Promise<unknown>;
  duplicate(...overrides: never[]): unknown;
}

export type Client = NodeRedis | NodeRedisCluster | IORedis;

/** `client.multi()` or `client.pipeline()`. It is executed by the program that made it. */
export type Pipeline =
  | { sendCommand(words: string[], options?: never): unknown; execAsPipeline(): unknown }
  | IORedisPipeline;

interface IORedisPipeline {
  readonly length: number;
  callBuffer(command: string, ...words: never[]): unknown;
}

/** How many commands a MULTI of node-redis has got since it is looked at. */
interface Count {
  number: number;
}

export function isIORedis(client: object): client is IORedis {
  return "callBuffer" in client;
}

export function isCluster(client: Client): boolean {
  return isIORedis(client) ? client.isCluster : isNodeRedisCluster(client);
}

function isNodeRedisCluster(client: object): client is NodeRedisCluster {
  return "nodeClient" in client;
}

/** Throws a TypeError, with what to do, for what would take commands and never send them. */
export function checkClient(client: unknown): void {
  const { then, sendCommand, acquire } = Object(client) as Record<string, unknown>;
  if (typeof then === "function") throw new TypeError("this client is a promise: await it");
  if (isPipeline(client)) {
    throw new TypeError(
      "this is a pipeline, which only collects commands: make the queue with the client, " +
        "and put commands on the pipeline by queue.on(pipeline)",
    );
  }
  if (typeof sendCommand !== "function") {
    throw new TypeError("a queue needs a client: createClient() or new Redis()");
  }
  if (typeof acquire === "function") {
    throw new TypeError(
      "createSentinel() can't send DQ's commands: take new Redis({ sentinels, name }) of ioredis",
    );
  }
}

/** The same for what would send commands at once. */
export function checkPipeline(pipeline: unknown): void {
  if (isPipeline(pipeline)) return;
  throw new TypeError("queue.on needs client.multi() or client.pipeline(), not a client");
}

function isPipeline(given: unknown): boolean {
  const { execAsPipeline, isPipeline: isOne } = Object(given) as Record<string, unknown>;
  return execAsPipeline !== undefined || isOne === true;
}

// ---- one command ---------------------------------------------------------------------------------

// Bulk strings as bytes, and maps as names and values in turn: RESP_TYPES of node-redis.
const AS_BYTES = { typeMapping: { 36: Buffer, 37: Array } };

export async function call<T>(client: Client, command: Command<T>): Promise<T> {
  let reply: unknown;
  try {
    reply = await send(client, command);
  } catch (error) {
    throw refusal(error, subjectOf(command)) ?? error;
  }
  if (isQueued(reply) && !command.words.includes("QUEUED")) {
    throw new TypeError("the client is inside a MULTI: put commands on it by queue.on(pipeline)");
  }
  return command.parse(reply);
}

function subjectOf({ key, adds }: Command<unknown>): Subject | undefined {
  if (key === undefined || adds === undefined) return undefined;
  return { queue: key, ids: adds.map((id) => text(sent(id))) };
}

function isQueued(reply: unknown): boolean {
  const isText = reply instanceof Uint8Array || typeof reply === "string";
  return isText && reply.length === 6 && String(reply) === "QUEUED";
}

function send(client: Client, { words, key }: Command<unknown>): Promise<unknown> {
  if (isIORedis(client)) return sendByIORedis(client, words, key) as Promise<unknown>;
  // Its types know no bytes in raw commands, which it sends all the same.
  const sendable = words as string[];
  if (isNodeRedisCluster(client)) return client.sendCommand(key, false, sendable, AS_BYTES);
  return client.sendCommand(sendable, AS_BYTES);
}

/** It looks for keys only in commands that it knows: a cluster would ask any node. */
function sendByIORedis(
  target: { callBuffer(command: string, ...words: never[]): unknown },
  words: readonly Word[],
  key: string | undefined,
): unknown {
  const [name, ...others] = words as never[];
  const keyed = Object.create(target, {
    sendCommand: {
      value: (ioredisCommand: object) =>
        (target as unknown as { sendCommand(command: object): unknown }).sendCommand(
          Object.assign(ioredisCommand, { keys: key === undefined ? [] : [key] }),
        ),
    },
    shouldUseAutoPipelining: { value: false },
  }) as typeof target;
  return keyed.callBuffer(name as unknown as string, ...others);
}

// ---- pipelines -----------------------------------------------------------------------------------

/** The reply of a command on a pipeline, once that is executed. */
export class Later<T> {
  readonly #command: Command<T>;
  readonly #reply: (replies: readonly unknown[]) => unknown;

  constructor(command: Command<T>, reply: (replies: readonly unknown[]) => unknown) {
    this.#command = command;
    this.#reply = reply;
  }

  /** The reply among those that `executed` gives. An error of this command is thrown. */
  of(replies: readonly unknown[]): T {
    const reply = this.#reply(replies);
    if (reply instanceof Error) throw refusal(reply, subjectOf(this.#command)) ?? reply;
    return this.#command.parse(reply);
  }
}

export function put<T>(pipeline: Pipeline, command: Command<T>): Later<T> {
  if (isIORedis(pipeline)) return putOnIORedis(pipeline as unknown as IORedisPipeline, command);
  const multi = pipeline as Extract<Pipeline, { execAsPipeline(): unknown }>;
  const count = counted(multi);
  const place = count.number;
  multi.sendCommand(command.words as string[], { firstKey: command.key } as never);
  // From the end: no reply tells how many stood there before it was counted.
  return new Later(command, (replies) => replies[replies.length - count.number + place]);
}

function putOnIORedis<T>(pipeline: IORedisPipeline, command: Command<T>): Later<T> {
  // MULTI is the first of its commands, and has no reply of its own.
  const { _transactions: open = 0 } = pipeline as { _transactions?: number };
  const place = pipeline.length - (open > 0 ? 1 : 0);
  sendByIORedis(pipeline, command.words, command.key);
  return new Later(command, (replies) => replies[place]);
}

const COUNTS = new WeakMap<object, Count>();

function counted(multi: object): Count {
  const known = COUNTS.get(multi);
  if (known !== undefined) return known;
  const count = { number: 0 };
  COUNTS.set(multi, count);
  const methods = multi as Record<string, (...given: unknown[]) => unknown>;
  for (const name of ["addCommand", "sendCommand", "SELECT", "select"]) {
    const own = methods[name];
    if (own === undefined) continue;
    methods[name] = (...given) => {
      // One of them may be made of another.
      const before = count.number;
      const said = own.apply(multi, given);
      count.number = before + 1;
      return said;
    };
  }
  return count;
}

/**
 * Executes a pipeline of either library, as a transaction if it is one of ioredis' `multi()` or of
 * node-redis. The reply of a command that failed is its error; where node-redis executes without a
 * transaction, it tells the first error alone, which is thrown.
 */
export async function executed(
  pipeline: Pipeline,
  { transaction = true }: { readonly transaction?: boolean } = {},
): Promise<unknown[]> {
  const { exec, execAsPipeline } = pipeline as unknown as Record<string, () => Promise<unknown[]>>;
  try {
    if (isIORedis(pipeline)) {
      const replies = (await exec?.call(pipeline)) as [Error | null, unknown][];
      return replies.map(([error, reply]) => error ?? reply);
    }
    return (await (transaction ? exec : execAsPipeline)?.call(pipeline)) ?? [];
  } catch (error) {
    // MultiErrorReply of node-redis; EXECABORT of ioredis
    const { replies, previousErrors = [] } = error as Record<string, unknown[]>;
    if (replies !== undefined) return replies;
    for (const each of previousErrors) if (refusal(each) instanceof NoModule) throw refusal(each);
    throw refusal(error) ?? error;
  }
}

/** Where its server is, for a line of the log. */
export function addressOf(client: Client): string {
  const {
    startupNodes,
    masters = startupNodes,
    options,
  } = client as unknown as {
    readonly startupNodes?: readonly unknown[];
    readonly masters?: readonly unknown[];
    readonly options?: unknown;
  };
  return isCluster(client) ? (masters ?? []).map(placeOf).join(", ") : placeOf(options);
}

function placeOf(given: unknown): string {
  if (typeof given === "string" || typeof given === "number") return String(given);
  const { url, socket, sentinels, ...own } = Object(given) as Record<string, unknown>;
  if (typeof url === "string") return new URL(url).host;
  if (Array.isArray(sentinels)) return `${own.name} of ${sentinels.map(placeOf).join(", ")}`;
  const { path, host = "localhost", port = 6379 } = Object(socket ?? own) as typeof own;
  return path ? String(path) : `${host}:${port}`;
}

/** A transaction of a client, whose replies are bytes. */
export function transactionOf(client: Client, key: string): Pipeline {
  const typed = client as unknown as {
    withTypeMapping?(mapping: object): { multi(routing?: string): Pipeline };
    multi(routing?: string): Pipeline;
  };
  if (isIORedis(client)) return typed.multi();
  const mapped = typed.withTypeMapping?.(AS_BYTES.typeMapping) ?? typed;
  return isNodeRedisCluster(client) ? mapped.multi(key) : mapped.multi();
}
