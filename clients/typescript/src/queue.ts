/** A queue: its commands as methods. */

import type { Codec } from "./codec.ts";
import { type Command, Key, type State, type Tracing } from "./commands/base.ts";
import { commands } from "./commands/index.ts";
import type { ScanOptions } from "./commands/look.ts";
import { type Flow, flowOf, type Step } from "./flow.ts";
import type { Added, Group, Job } from "./replies.ts";
import {
  type Client,
  call,
  checkClient,
  checkPipeline,
  type Later,
  type Pipeline,
  put,
} from "./seam.ts";
import { started } from "./starting.ts";
import type { Id } from "./words.ts";

type Build<Args extends unknown[], T> = (key: Key, ...args: Args) => Command<T>;
type Methods = {
  [Name in keyof typeof commands]: (typeof commands)[Name] extends Build<infer Args, infer T>
    ? (...args: Args) => Promise<T>
    : never;
};
type LaterMethods = {
  [Name in keyof typeof commands]: (typeof commands)[Name] extends Build<infer Args, infer T>
    ? (...args: Args) => Later<T>
    : never;
};

export interface QueueOptions {
  /** How bodies and results are written: JSON without one. */
  readonly codec?: Codec | undefined;
  readonly tracing?: Tracing | undefined;
}

/** A class with a method for each command, which hands the command on. */
function methods<Self, M>(handOn: (self: Self, command: Command<unknown>) => unknown): new () => M {
  class WithMethods {}
  for (const [name, build] of Object.entries(commands)) {
    const made = build as Build<unknown[], unknown>;
    const value = function (this: { key: Key }, ...args: unknown[]): unknown {
      return handOn(this as Self, made(this.key, ...args));
    };
    Object.defineProperty(WithMethods.prototype, name, { value });
  }
  return WithMethods as new () => M;
}

const OnClient: new () => Methods = methods((self: { client: Client }, command) =>
  call(self.client, command),
);
const OnPipeline: new () => LaterMethods = methods((self: { pipeline: Pipeline }, command) =>
  put(self.pipeline, command),
);

/** The commands of a queue on a pipeline: their replies come `Later`. */
export class Pipelined extends OnPipeline {
  readonly key: Key;
  readonly pipeline: Pipeline;

  constructor(key: Key, pipeline: Pipeline) {
    super();
    this.key = key;
    this.pipeline = pipeline;
  }
}

const COUNT = 100;
// By which of its times jobs are shown in each state. Ready ones and held ones have no such time.
const TIMES = { delayed: "due", reserved: "deadline", dead: "since", done: "keptUntil" } as const;

/**
 * A queue, with a client of node-redis or ioredis that the program made and connected.
 *
 * `await new Queue(client, "orders").add("order:17", { cancel: 17 }, { delay: { minutes: 30 } })`
 *
 * What the server refuses is a `DQError`; errors of the connection are those of the library.
 */
export class Queue extends OnClient {
  readonly client: Client;
  readonly key: Key;

  constructor(client: Client, name: string, { codec, tracing }: QueueOptions = {}) {
    super();
    checkClient(client);
    this.client = client;
    this.key = new Key(name, codec, tracing);
  }

  get name(): string {
    return this.key.name;
  }

  /** Commands that are put on a pipeline or a MULTI of the client, which the program executes. */
  on(pipeline: Pipeline): Pipelined {
    checkPipeline(pipeline);
    return new Pipelined(this.key, pipeline);
  }

  /** Adds all jobs of a flow, or none of them. */
  start(flow: Flow | Step): Promise<Added[]> {
    return started(this.client, this.key, flowOf(flow));
  }

  /** All jobs in a state, `count` of them at a time. */
  async *peekAll(
    state: State = "ready",
    { from, count = COUNT }: { readonly from?: Date; readonly count?: number } = {},
  ): AsyncGenerator<Job, void> {
    let place: { after?: Id; from?: Date | undefined } = { from };
    for (;;) {
      const jobs = await this.peek({ state, ...place, count });
      yield* jobs;
      const last = jobs.at(-1);
      if (last === undefined || jobs.length < count) return;
      place = { after: last.id, from: timeOf(last, state) };
    }
  }

  /** The ids of all jobs; `count` is how many one call looks at. */
  async *scanAll(given: ScanOptions = {}): AsyncGenerator<string, void> {
    let cursor = 0;
    do {
      const page = await this.scan(cursor, { count: 1000, ...given });
      yield* page.items;
      cursor = page.cursor;
    } while (cursor !== 0);
  }

  /** All groups. */
  async *groupsAll({ count = COUNT } = {}): AsyncGenerator<Group, void> {
    let cursor = 0;
    do {
      const page = await this.groups(cursor, { count });
      yield* page.items;
      cursor = page.cursor;
    } while (cursor !== 0);
  }
}

function timeOf(job: Job, state: State): Date | undefined {
  if (state === "ready" || state === "held") return undefined;
  const time = job[TIMES[state]];
  if (job.expires === null || state === "dead" || state === "done") return time ?? undefined;
  return time === null || job.expires < time ? job.expires : time;
}
