/** The jobs in hand: each has a place, runs its handler, and comes to an outcome. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Key } from "../commands/base.ts";
import type { Delivery } from "../replies.ts";
import { Gate } from "./gate.ts";
import type { Line } from "./line.ts";
import { ofError, ofReturn, type Settlement, unbegun } from "./outcomes.ts";
import { Hand, RunningJob } from "./running.ts";

/** What is done with each job. What a hook throws is a failure of the job. */
export interface Work<Body> {
  readonly handler: (job: RunningJob<Body>) => unknown;
  readonly before: readonly ((job: RunningJob<Body>) => unknown)[];
  readonly after: readonly ((job: RunningJob<Body>, error: unknown) => unknown)[];
}

/**
 * Whose handler is running, also in what it has begun: timers, events, promises. It makes each
 * promise of the process dearer, so it is kept only when a handler has let an error escape.
 */
export const current = {
  isKept: false,
  hand: new AsyncLocalStorage<Hand>(),
};

export class Hands {
  /** Open while no handler runs. */
  readonly none = new Gate(true);
  readonly #work: Work<never>;
  readonly #ttr: number;
  readonly #line: Line;
  readonly #settle: (settlement: Settlement) => void;
  /** A place is free again. */
  readonly #free: () => void;
  readonly #inHand = new Map<string, Set<Hand>>();
  readonly #some = new Map<string, Gate>();
  readonly #running = new Set<Hand>();
  readonly #strays = new Set<Hand>();

  constructor(
    work: Work<never>,
    ttr: number,
    line: Line,
    settle: (told: Settlement) => void,
    free: () => void = () => {},
  ) {
    this.#free = free;
    this.#work = work;
    this.#ttr = ttr;
    this.#line = line;
    this.#settle = settle;
  }

  /** Those of a queue whose leases are to be kept. */
  of(key: Key): Hand[] {
    return [...(this.#inHand.get(key.name) ?? [])].filter(({ job }) => !job.isLost);
  }

  /** Those whose handlers run, also when their jobs were given back. */
  running(): Hand[] {
    return [...this.#running];
  }

  /** Those whose attempts have failed, while their handlers go on. */
  strays(): Hand[] {
    return [...this.#strays];
  }

  /** Open while jobs of this queue are in hand. */
  some(key: Key): Gate {
    let gate = this.#some.get(key.name);
    if (gate === undefined) {
      gate = new Gate();
      this.#some.set(key.name, gate);
    }
    return gate;
  }

  /** Lets who waits for jobs in hand see that the worker is over. */
  end(): void {
    for (const gate of this.#some.values()) gate.open();
  }

  /** Works on a job until its place is free again. It never throws. */
  async run(key: Key, delivery: Delivery, goodUntil: number): Promise<void> {
    const job = new RunningJob<never>(delivery, key, this.#line, this.#ttr);
    const hand = new Hand(key, job, goodUntil);
    const ofQueue = this.#inHand.get(key.name) ?? new Set();
    this.#inHand.set(key.name, ofQueue.add(hand));
    this.some(key).open();
    this.#running.add(hand);
    this.none.close();
    hand.fail = (error) => {
      if (!this.#running.has(hand)) return;
      this.#strays.add(hand);
      this.#complete(hand, ofError(key, delivery, error));
    };
    const settlement = await (current.isKept
      ? current.hand.run(hand, () => this.#outcome(hand))
      : this.#outcome(hand));
    this.#strays.delete(hand);
    if (this.#running.has(hand)) this.#complete(hand, settlement);
  }

  #complete(hand: Hand, settlement: Settlement | undefined): void {
    this.#running.delete(hand);
    if (this.#running.size === 0) this.none.open();
    if (settlement === undefined || hand.job.isVoid) this.settled(hand);
    else {
      settlement.hand = hand;
      this.#settle(settlement);
    }
    this.#free();
  }

  /** The server knows what came of it: its lease isn't renewed any more. */
  settled(hand: Hand): void {
    const ofQueue = this.#inHand.get(hand.key.name);
    ofQueue?.delete(hand);
    if (ofQueue?.size === 0) this.some(hand.key).close();
  }

  /** Gives back those whose handlers run. */
  giveBack(): void {
    for (const hand of this.running()) {
      const { key, job } = hand;
      if (job.isVoid) continue;
      job.lose();
      this.#settle(unbegun(key, job.delivery, hand));
    }
  }

  /** undefined when there is nothing to say: the job isn't this worker's any more. */
  async #outcome({ key, job }: Hand): Promise<Settlement | undefined> {
    const { tracing } = key;
    try {
      const work = () => this.#worked(job);
      const value = await (tracing ? tracing.processing(job.delivery, work) : work());
      return ofReturn(key, job.delivery, value);
    } catch (error) {
      return job.isLost ? undefined : ofError(key, job.delivery, error);
    }
  }

  async #worked(job: RunningJob<never>): Promise<unknown> {
    const { handler, before, after } = this.#work;
    for (const hook of before) await hook(job);
    let value: unknown;
    try {
      value = await handler(job);
    } catch (error) {
      for (const hook of after) await hook(job, error);
      throw error;
    }
    for (const hook of after) await hook(job, undefined);
    return value;
  }
}
