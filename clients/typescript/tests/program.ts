/**
 * The test program of this client: it carries out what the contract's runner asks for.
 *
 *     program.js node-redis|ioredis
 *
 * clients/contract/README.md describes the conversation.
 */

import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import {
  after,
  type Client,
  chain,
  executed,
  type Flow,
  flowOf,
  group,
  JSON_CODEC,
  type Later,
  Queue,
  RAW,
  type Step,
  step,
  Topic,
  unwrapped,
  Worker,
  wrapped,
} from "../src/index.ts";
import { MSGPACK } from "../src/msgpack.ts";
import { connected, type Library, pipelineOf, putRaw, raw } from "./clients.ts";
import { Scripts } from "./scripted.ts";
import {
  argumentsIn,
  errorOut,
  methodOf,
  payloadIn,
  type Raw,
  replyOut,
  valueIn,
  valueOut,
} from "./values.ts";

const CODECS = { json: JSON_CODEC, raw: RAW, msgpack: MSGPACK };

interface Call {
  readonly command: string;
  readonly arguments: Raw;
  readonly key?: string | readonly string[];
  readonly words?: readonly string[];
}
interface Shards {
  readonly name: string;
  readonly shards: number;
  readonly before?: Shards;
}
interface Work {
  readonly queues?: Record<string, number>;
  readonly topic?: Shards;
  readonly schedules?: readonly Raw[];
  readonly hooks?: boolean;
  readonly concurrency?: number;
  readonly ttr?: number;
  readonly grace?: number;
}

let client: Client;
const scripts = new Scripts(tell);

// ---- requests ------------------------------------------------------------------------------------

const requests: Record<string, (request: never) => unknown> = {
  async connect(told: { url: string; protocol: 2 | 3; cluster?: boolean }) {
    client = await connected(process.argv[2] as Library, told.url, told);
    return true;
  },

  async call(call: Call) {
    return replyOut(
      call.command,
      await asked(new Queue(client, keyOf(call), { codec: RAW }), call),
    );
  },

  async raw({ words }: { words: readonly string[] }) {
    return valueOut(await raw(client, encoded(words)));
  },

  async batch({ calls, transaction }: { calls: readonly Call[]; transaction: boolean }) {
    const pipeline = pipelineOf(client, transaction);
    const later = calls.map((call) => {
      if (call.words !== undefined) return putRaw(pipeline, encoded(call.words));
      return asked(new Queue(client, keyOf(call), { codec: RAW }).on(pipeline), call);
    });
    const replies = await executed(pipeline, { transaction });
    return calls.map(({ command }, at) =>
      batched(command, later[at] as Later<unknown>, replies, at),
    );
  },

  topic({ name, shards, ids }: Shards & { ids: readonly string[] }) {
    const topic = new Topic(client, name, shards);
    const of = ids.map((id) => [id, topic.queueOf(id).name]);
    return { queues: topic.queues.map((queue) => queue.name), queue_of: Object.fromEntries(of) };
  },

  encode: ({ codec, value }: { codec: keyof typeof CODECS; value: unknown }) =>
    valueOut(CODECS[codec].encode(valueIn(value))),

  decode: ({ codec, bytes }: { codec: keyof typeof CODECS; bytes: unknown }) =>
    valueOut(CODECS[codec].decode(payloadIn(bytes))),

  wrap: ({ body, headers }: { body: unknown; headers: Record<string, string> }) =>
    valueOut(wrapped(payloadIn(body), headers)),

  unwrap({ payload }: { payload: unknown }) {
    const { body, headers } = unwrapped(payloadIn(payload));
    return { body: valueOut(body), headers };
  },

  flow({ flow }: { flow: Raw }) {
    const { steps, last } = flowOf(flowIn(flow));
    return { adds: steps.map(([{ id }, before]) => [id, before]), last };
  },

  async on_topic(told: { topic: Shards; command: string; arguments: Raw }) {
    return replyOut(told.command, await asked(topicIn(told.topic), told));
  },

  work(told: Work) {
    const { queues = {}, topic, schedules = [], hooks, ...settings } = told;
    const weights = Object.entries(queues).map(
      ([name, weight]) => [new Queue(client, name), weight] as const,
    );
    const worker = new Worker(topic ? topicIn(topic) : weights, scripts.play, {
      ...settings,
      before: hooks ? [scripts.before] : [],
      after: hooks ? [scripts.after] : [],
    });
    for (const declared of schedules) {
      const [id, body, options] = argumentsIn("add", declared);
      worker.schedule(id as string, body, options as object);
    }
    serve(worker);
    return true;
  },

  go({ name }: { name: string }) {
    scripts.go(name);
    return true;
  },
};

function keyOf({ key = "" }: Call): string {
  return typeof key === "string" ? key : (key[0] as string);
}

/** Calls the method of a command. */
function asked(target: object, { command, key, arguments: told }: Call): unknown {
  const given = argumentsIn(command, told);
  if (command === "mpop") given.splice(-1, 0, (key ?? []).slice(1));
  const methods = target as Record<string, (...given: unknown[]) => unknown>;
  return methods[methodOf(command, told)]?.(...given);
}

function batched(
  command: string,
  later: Later<unknown> | undefined,
  replies: readonly unknown[],
  at: number,
): Raw {
  try {
    if (later !== undefined) return { reply: replyOut(command, later.of(replies)) };
    if (replies[at] instanceof Error) throw replies[at];
    return { reply: valueOut(replies[at]) };
  } catch (error) {
    return { error: errorOut(error) };
  }
}

function encoded(words: readonly string[]): Buffer[] {
  return words.map((word) => Buffer.from(word, "latin1"));
}

function topicIn({ name, shards, before }: Shards): Topic {
  return new Topic(client, name, shards, { before: before && topicIn(before) });
}

function flowIn(told: Raw): Flow | Step {
  if ("step" in told) return step(null, told.step as string);
  const parts = () => ((told.chain ?? told.group) as Raw[]).map(flowIn);
  if ("chain" in told) return chain(...(parts() as [Flow]));
  if ("group" in told) return group(...parts());
  return after(told.after as string[], flowIn(told.of as Raw));
}

// ---- a worker ------------------------------------------------------------------------------------

async function serve(worker: { run(): Promise<void> }): Promise<void> {
  process.once("SIGTERM", () => {
    tell({ event: "stopping" });
  });
  try {
    await worker.run();
  } catch (error) {
    tell({ event: "stopping" });
    tell({ event: "failed", ...errorOut(error) });
    process.exit(1);
  }
  process.exit(0);
}

// ---- the conversation ----------------------------------------------------------------------------

/** At once, so that nothing is lost when the program exits. */
function tell(line: Raw): void {
  const data = Buffer.from(`${JSON.stringify(line)}\n`);
  for (let at = 0; at < data.length; ) at += written(data, at);
}

function written(data: Buffer, at: number): number {
  try {
    return writeSync(1, data, at);
  } catch (error) {
    // The pipe is full.
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return 0;
    throw error;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { do: what, ...request } = JSON.parse(line);
  try {
    tell({ reply: (await requests[what]?.(request as never)) ?? null });
  } catch (error) {
    tell({ error: errorOut(error) });
  }
}
process.exit(0);
