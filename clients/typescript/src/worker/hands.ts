/** The jobs in hand: each has a place, runs its handler, and comes to an outcome. */

import type { Key } from "../commands/base.ts";
import { LeaseLost } from "../errors.ts";
import type { Delivery } from "../replies.ts";
import { Gate } from "./gate.ts";
import type { Line } from "./line.ts";
import { ofError, ofReturn, type Settlement } from "./outcomes.ts";
import { RunningJob } from "./running.ts";

/** What is done with each job. What a hook throws is a failure of the job. */
export interface Work<Body> {
  readonly handler: (job: RunningJob<Body>) => unknown;
  readonly before: readonly ((job: RunningJob<Body>) => unknown)[];
  readonly after: readonly ((job: RunningJob<Body>, error: unknown) => unknown)[];
}

/** A job in hand. */
export interface Hand<Body = unknown> {
  readonly key: Key;
  readonly job: RunningJob<Body>;
  /** Until when the lease is good, by this machine's clock. */
  goodUntil: number;
}

export class Hands<Body> {
  /** Open while no job is in hand. */
  readonly none = new Gate(true);
  readonly #work: Work<Body>;
  readonly #ttr: number;
  readonly #line: Line;
  readonly #settle: (settlement: Settlement) => void;
  readonly #inHand = new Map<string, Set<Hand<Body>>>();
  readonly #some = new Map<string, Gate>();

  constructor(work: Work<Body>, ttr: number, line: Line, settle: (told: Settlement) => void) {
    this.#work = work;
    this.#ttr = ttr;
    this.#line = line;
    this.#settle = settle;
  }

  /** Those of a queue whose leases are to be kept. */
  of(key: Key): Hand<Body>[] {
    return [...(this.#inHand.get(key.name) ?? [])].filter((hand) => !hand.job.isLost);
  }

  all(): Hand<Body>[] {
    return [...this.#inHand.values()].flatMap((hands) => [...hands]);
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

  /** Works on a job until its place is free again. */
  async run(key: Key, delivery: Delivery, goodUntil: number): Promise<void> {
    const job = new RunningJob<Body>(delivery, key, this.#line, this.#ttr);
    const hand = { key, job, goodUntil };
    const ofQueue = this.#inHand.get(key.name) ?? new Set();
    this.#inHand.set(key.name, ofQueue.add(hand));
    this.some(key).open();
    this.none.close();
    const settlement = await this.#outcome(hand);
    ofQueue.delete(hand);
    if (ofQueue.size === 0) {
      this.some(key).close();
      if (this.all().length === 0) this.none.open();
    }
    if (settlement !== undefined && !job.isLost) this.#settle(settlement);
  }

  async #outcome({ key, job }: Hand<Body>): Promise<Settlement | undefined> {
    const { tracing } = key;
    try {
      const work = () => this.#worked(job);
      const value = await (tracing ? tracing.processing(job.delivery, work) : work());
      return ofReturn(key, job.delivery, value);
    } catch (error) {
      if (job.isLost || error instanceof LeaseLost) {
        job.lose();
        return undefined;
      }
      return ofError(key, job.delivery, error);
    }
  }

  async #worked(job: RunningJob<Body>): Promise<unknown> {
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
