/** A worker: its parts, its start and its end. */

import type { Key } from "../commands/base.ts";
import { commands } from "../commands/index.ts";
import type { AddOptions } from "../commands/produce.ts";
import { Queue } from "../queue.ts";
import type { Delivery } from "../replies.ts";
import { isCluster } from "../seam.ts";
import { Topic } from "../topic.ts";
import { type Duration, type Id, ms } from "../words.ts";
import { type Source, sources } from "./fetching.ts";
import { Gate, now } from "./gate.ts";
import { Hands, type Work } from "./hands.ts";
import { Line, type Net } from "./line.ts";
import { unbegun } from "./outcomes.ts";
import { interval, keep, watch } from "./renewing.ts";
import type { RunningJob } from "./running.ts";
import { Settler } from "./settling.ts";

export type Served = Queue | Topic;

export interface WorkerOptions<Body> {
  /** How many jobs are worked on at the same time: 10. */
  readonly concurrency?: number | undefined;
  /**
   * How soon the job of a worker that died is delivered again: a minute. A worker that lives keeps
   * its leases for as long as it needs.
   */
  readonly ttr?: Duration | undefined;
  /** How long the jobs in hand may go on when the worker is told to stop: 30 seconds. */
  readonly grace?: Duration | undefined;
  /** Called before each handler. */
  readonly before?: Work<Body>["before"] | undefined;
  /** Called after each handler, with what it threw. */
  readonly after?: Work<Body>["after"] | undefined;
  /** Told what passes, such as a server that is away: `console.warn`. */
  readonly warn?: ((what: string, error: unknown) => void) | undefined;
}

const SIGNALS = ["SIGTERM", "SIGINT"] as const;
/** After the grace time, for the last words to the server. */
const LAST_WORDS_MS = 5_000;

/**
 * Takes the jobs of queues and runs a handler for each.
 *
 * `await new Worker(new Queue(client, "mail"), send, { concurrency: 10 }).run()`
 *
 * `queues` is a queue, a topic, several of them, or pairs of them with their weights. They share one
 * client, and the worker has connections of its own to the same server. What the handler returns is
 * the job's result; nothing is none. What it throws gives the job back for another attempt; see
 * `Retry`, `Bury` and `Done`.
 */
export class Worker<Body = unknown> {
  readonly #weights: Map<Queue, number>;
  readonly #work: Work<Body>;
  readonly #concurrency: number;
  readonly #ttr: number;
  readonly #grace: number;
  readonly #net: Net;
  readonly #isCluster: boolean;
  readonly #lines: Line[] = [];
  readonly #schedules: { key: Key; id: Id; body: unknown; options: AddOptions }[] = [];
  readonly #stopping = new Gate();
  readonly #hurrying = new Gate();

  constructor(
    queues: Served | Iterable<Served | readonly [Served, number]>,
    handler: (job: RunningJob<Body>) => unknown,
    options: WorkerOptions<Body> = {},
  ) {
    this.#weights = weightsOf(queues);
    const [client] = new Set([...this.#weights.keys()].map((queue) => queue.client));
    if (client === undefined) throw new RangeError("a worker needs a queue");
    if ([...this.#weights.keys()].some((queue) => queue.client !== client)) {
      throw new RangeError("the queues of a worker need the same client");
    }
    this.#isCluster = isCluster(client);
    const { concurrency = 10, ttr = 60_000, grace = 30_000, before = [], after = [] } = options;
    const { warn = (what, error) => console.warn(`dq-client: ${what}: ${String(error)}`) } =
      options;
    this.#work = { handler, before, after };
    this.#concurrency = concurrency;
    this.#ttr = ms(ttr);
    this.#grace = ms(grace);
    this.#net = { client, over: new Gate(), warn };
    this.#sources(); // so that what is wrong is told now
  }

  /**
   * Declares a schedule, by EVERY or CRON, of the first queue or of this one. At each start the
   * worker makes sure that the job is there, with this schedule.
   */
  schedule(id: Id, body: unknown, options: AddOptions & { readonly queue?: Queue }): void {
    const { queue, ...given } = options;
    const [first] = this.#weights.keys();
    const { key } = queue ?? (first as Queue);
    this.#schedules.push({ key, id, body, options: { ...given, ensure: true } });
  }

  /** Works until SIGTERM or SIGINT. The second signal ends the grace time. */
  async run(): Promise<void> {
    const signalled = () => (this.isStopping ? this.#hurrying : this.#stopping).open();
    for (const signal of SIGNALS) process.on(signal, signalled);
    try {
      await this.serve();
    } finally {
      for (const signal of SIGNALS) process.off(signal, signalled);
    }
  }

  get isStopping(): boolean {
    return this.#stopping.isOpen;
  }

  /** Takes no more jobs, and ends when those in hand are done, or the grace time is over. */
  stop(): void {
    this.#stopping.open();
  }

  /**
   * Works until it is told to stop; a worker serves once. An error that waiting doesn't mend, such as
   * a wrong password, ends it.
   */
  async serve(): Promise<void> {
    const line = this.#line();
    const settler = new Settler(line, this.#net);
    const hands = new Hands(this.#work, this.#ttr, line, (told) => settler.settle(told));
    const held = hands as unknown as Hands<never>;
    const helping = [settler.run(), watch(held, this.#ttr, this.#net)];
    for (const { key } of this.#weights.keys()) {
      helping.push(keep(key, held, this.#ttr, this.#line(), this.#net));
    }
    try {
      await Promise.race([this.#taken(hands, settler, line), failureOf(helping)]);
    } finally {
      this.stop();
      await this.#end(hands, settler);
      this.#net.over.open();
      hands.end();
      settler.end();
      for (const each of this.#lines) each.close();
    }
  }

  #line(): Line {
    const line = new Line(this.#net);
    this.#lines.push(line);
    return line;
  }

  #sources(): Source[] {
    const weights = new Map([...this.#weights].map(([queue, weight]) => [queue.key, weight]));
    return sources(weights, this.#concurrency, this.#isCluster);
  }

  /** Takes jobs until it is told to stop. */
  async #taken(hands: Hands<Body>, settler: Settler, line: Line): Promise<void> {
    for (const { key, id, body, options } of this.#schedules) {
      await line.ask(commands.add(key, id, body, options), () => this.isStopping);
    }
    const taking = this.#sources();
    const fetching = taking.map((source) => this.#fetch(source, hands, settler));
    const all = Promise.all(fetching);
    await Promise.race([this.#stopping.wait(), all]);
    for (const source of taking) source.places.hasFree.open();
    const given = new Gate();
    await Promise.race([all, given.waitFor(LAST_WORDS_MS)]);
  }

  async #fetch(source: Source, hands: Hands<Body>, settler: Settler): Promise<void> {
    const keys = new Map([...this.#weights.keys()].map(({ key }) => [key.name, key]));
    const line = this.#line();
    const block = interval(this.#ttr);
    while (!this.isStopping) {
      await source.places.hasFree.wait();
      if (this.isStopping) return;
      const count = source.places.take();
      const goodUntil = now() + this.#ttr;
      const command = source.command(count, block, this.#ttr);
      const jobs = (await line.ask(command, () => this.isStopping)) ?? [];
      source.places.giveBack(count - jobs.length);
      for (const job of jobs) {
        const key = keys.get(job.key) as Key;
        if (this.isStopping) settler.settle(unbegun(key, job));
        else this.#begin(source, hands, key, job, goodUntil);
      }
    }
  }

  #begin(source: Source, hands: Hands<Body>, key: Key, job: Delivery, goodUntil: number): void {
    hands.run(key, job.withCodec(key.codec), goodUntil).then(() => source.places.giveBack(1));
  }

  /** The jobs in hand may end within the grace time. The others go back, unbegun. */
  async #end(hands: Hands<Body>, settler: Settler): Promise<void> {
    await Promise.race([hands.none.waitFor(this.#grace), this.#hurrying.wait()]);
    for (const { key, job } of hands.all()) {
      if (job.isLost) continue;
      job.lose();
      settler.settle(unbegun(key, job.delivery));
    }
    await settler.idle.waitFor(LAST_WORDS_MS);
  }
}

/** Never fulfilled; rejected with the first error of any. */
function failureOf(helping: readonly Promise<void>[]): Promise<never> {
  return new Promise((_, fail) => {
    for (const helper of helping) helper.catch(fail);
  });
}

/** Each queue with its weight. A topic is all its queues. */
function weightsOf(
  queues: Served | Iterable<Served | readonly [Served, number]>,
): Map<Queue, number> {
  const several = queues instanceof Queue || queues instanceof Topic ? [queues] : queues;
  const found = new Map<Queue, number>();
  for (const each of several) {
    const [served, weight] = each instanceof Queue || each instanceof Topic ? [each, 1] : each;
    if (weight < 1) throw new RangeError("a weight is 1 at least");
    for (const queue of served instanceof Topic ? served.allQueues : [served]) {
      found.set(queue, weight);
    }
  }
  return found;
}
