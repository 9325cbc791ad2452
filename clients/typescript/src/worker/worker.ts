/** A worker: its parts, its start and its end. */

import type { AddOptions } from "../commands/produce.ts";
import { Queue } from "../queue.ts";
import { isCluster } from "../seam.ts";
import { Topic } from "../topic.ts";
import { type Duration, type Id, ms, span } from "../words.ts";
import { Branch } from "./branch.ts";
import { checkBackoff, declare, type Schedule } from "./declaring.ts";
import type { OnError } from "./failures.ts";
import { type Source, sources } from "./fetching.ts";
import { Gate } from "./gate.ts";
import { guard, leave } from "./guard.ts";
import type { Work } from "./hands.ts";
import { Net, type Warn } from "./net.ts";
import { isGenerator } from "./outcomes.ts";
import type { Hand, RunningJob } from "./running.ts";

export type Served = Queue | Topic;

export interface WorkerOptions<Body> {
  /** How many jobs are worked on at the same time: 10. */
  readonly concurrency?: number | undefined;
  /**
   * How soon the job of a worker that died is delivered again: a minute. A worker that lives keeps
   * its leases for as long as it needs.
   */
  readonly ttr?: Duration | undefined;
  /**
   * How long the jobs in hand may go on when the worker is told to stop: 30 seconds. Infinity waits
   * for all of them.
   */
  readonly grace?: Duration | undefined;
  /** Called before each handler. */
  readonly before?: Work<Body>["before"] | undefined;
  /** Called after each handler, with what it threw. */
  readonly after?: Work<Body>["after"] | undefined;
  /** Called for each attempt that failed, with the job, the error, and what comes next in words. */
  readonly onError?: OnError | undefined;
  /** The log: attempts that failed, a server that is away. `console.warn` without one. */
  readonly warn?: Warn | undefined;
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
  readonly #work: Work<never>;
  readonly #concurrency: number;
  readonly #ttr: number;
  readonly #grace: number;
  readonly #onError: OnError | undefined;
  readonly #net: Net;
  readonly #isCluster: boolean;
  readonly #schedules: Schedule[] = [];
  readonly #stopping = new Gate();
  readonly #hurrying = new Gate();
  #isServing = false;
  #branches: readonly Branch[] = [];

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
    if (typeof client.duplicate !== "function") {
      throw new TypeError("a worker needs a client that can be duplicated, such as createClient()");
    }
    if (typeof handler !== "function") throw new TypeError("a worker needs a handler, a function");
    if (isGenerator(handler)) {
      throw new TypeError("a handler is no generator function: of one, nothing would run");
    }
    this.#isCluster = isCluster(client);
    const { concurrency = 10, ttr = 60_000, grace = 30_000, before = [], after = [] } = options;
    this.#work = { handler, before, after };
    this.#concurrency = concurrency;
    this.#ttr = ms(ttr);
    this.#grace = span(grace);
    this.#onError = options.onError;
    if (this.#ttr < 1) throw new RangeError("ttr is a millisecond at least");
    if (this.#grace < 0) throw new RangeError("grace is 0 at least");
    this.#net = new Net(client, options.warn);
    this.#sources(); // so that what is wrong is told now
  }

  /**
   * Declares a schedule, by EVERY or CRON, of the first queue or of this one. The worker makes sure
   * that the job is there: with this schedule at its start, with any at each new connection and each
   * minute. One with `runs` is declared at the start alone.
   */
  schedule(id: Id, body: unknown, options: AddOptions & { readonly queue?: Queue }): void {
    const { queue, ...given } = options;
    const [first] = this.#weights.keys();
    const { key } = queue ?? (first as Queue);
    this.#schedules.push({ key, id, body, options: given });
  }

  /**
   * Works until SIGTERM or SIGINT. The second signal ends the grace time. When it is over and
   * handlers still run, the process ends a second later.
   */
  async run(): Promise<void> {
    let isSignalled = false;
    const signalled = () => {
      (this.isStopping ? this.#hurrying : this.#stopping).open();
      isSignalled = true;
    };
    for (const signal of SIGNALS) process.on(signal, signalled);
    const unguard = guard(this.#net, () => this.#running());
    try {
      await this.serve();
    } finally {
      unguard();
      for (const signal of SIGNALS) process.off(signal, signalled);
      const left = this.#running();
      if (isSignalled && left.length > 0) leave(left, this.#net);
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
    if (this.#isServing) throw new Error("a worker serves once: make another one");
    this.#isServing = true;
    if (this.isStopping) return;
    const common = {
      net: this.#net,
      work: this.#work,
      ttr: this.#ttr,
      onError: this.#onError,
      stopping: this.#stopping,
    };
    const taking = this.#sources();
    const branches = taking.map((source) => new Branch(source, common));
    this.#branches = branches;
    const helping = branches.flatMap((branch) => branch.begin());
    helping.push(...this.#declared(taking, branches));
    try {
      await Promise.race([this.#taken(branches), failureOf(helping)]);
    } finally {
      this.stop();
      await Promise.all(
        branches.map((branch) => branch.end(this.#grace, this.#hurrying, LAST_WORDS_MS)),
      );
      this.#net.over.open();
      for (const branch of branches) branch.close();
    }
  }

  /** Also those that the end of the grace time has left running. */
  #running(): Hand[] {
    return this.#branches.flatMap(({ hands }) => [...hands.running(), ...hands.strays()]);
  }

  #sources(): Source[] {
    const weights = new Map([...this.#weights].map(([queue, weight]) => [queue.key, weight]));
    return sources(weights, this.#concurrency, this.#isCluster);
  }

  /** Waits until it is told to stop, and for jobs that are on their way then. */
  async #taken(branches: readonly Branch[]): Promise<void> {
    await this.#stopping.wait();
    await Promise.all(branches.map(({ taken }) => taken.wait(LAST_WORDS_MS)));
  }

  /** Schedules, and a look at each queue's backoff, by the connections of their own branches. */
  #declared(taking: readonly Source[], branches: readonly Branch[]): Promise<void>[] {
    const lineOf = ({ name }: { readonly name: string }) => {
      const at = taking.findIndex(({ keys }) => keys.some((key) => key.name === name));
      return (branches[at] ?? (branches[0] as Branch)).line;
    };
    const declaring = this.#schedules.map((schedule) =>
      declare(schedule, lineOf(schedule.key), this.#net, this.#stopping),
    );
    const checking = [...this.#weights.keys()].map(({ key }) =>
      checkBackoff(key, lineOf(key), this.#net, this.#stopping),
    );
    return [...declaring, ...checking];
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
    if (!Number.isSafeInteger(weight) || weight < 1) {
      throw new RangeError("a weight is a whole number, 1 at least");
    }
    for (const queue of served instanceof Topic ? served.allQueues : [served]) {
      found.set(queue, weight);
    }
  }
  return found;
}
