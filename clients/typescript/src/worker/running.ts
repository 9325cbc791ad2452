/** A job that a handler works on. */

import type { Key, Lease } from "../commands/base.ts";
import { commands } from "../commands/index.ts";
import { LeaseLost } from "../errors.ts";
import type { Delivery, Dep } from "../replies.ts";
import type { Duration } from "../words.ts";
import type { Line } from "./line.ts";

export class RunningJob<Body = unknown> {
  readonly delivery: Delivery;
  readonly #key: Key;
  readonly #line: Line;
  readonly #ttr: Duration;
  #aborting: AbortController | undefined;
  #isLost = false;
  #isVoid = false;

  constructor(delivery: Delivery, key: Key, line: Line, ttr: Duration) {
    this.delivery = delivery;
    this.#key = key;
    this.#line = line;
    this.#ttr = ttr;
  }

  /** The name of the queue that it came from. */
  get queue(): string {
    return this.delivery.key;
  }

  get id(): string {
    return this.delivery.id;
  }

  /** Decoded when it is asked for; throws what the codec throws. */
  get body(): Body {
    return this.delivery.body as Body;
  }

  get attempt(): number {
    return this.delivery.attempt;
  }

  /** With the id it names a run of a schedule, the same at each attempt. */
  get due(): Date | null {
    return this.delivery.due;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.delivery.headers;
  }

  /** Whether the job isn't this worker's any more: the handler should end. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Aborted, with LeaseLost, when the job isn't this worker's any more: for `fetch` and the like. */
  get signal(): AbortSignal {
    this.#aborting ??= new AbortController();
    if (this.#isLost) this.expire();
    return this.#aborting.signal;
  }

  /** Throws LeaseLost when the job isn't this worker's any more: for between two steps. */
  check(): void {
    if (this.#isLost) throw new LeaseLost(this.id);
  }

  /** Whether the server has said so. If not, its lease is over by this machine's clock. @internal */
  get isVoid(): boolean {
    return this.#isVoid;
  }

  /** The server has said that the lease is void, or the job was given back. @internal */
  lose(): void {
    this.#isVoid = true;
    this.expire();
  }

  /** The lease could not be renewed in time. @internal */
  expire(): void {
    this.#isLost = true;
    this.#aborting?.abort(new LeaseLost(this.id));
  }

  /**
   * The job goes on with this body, at the next attempt too; `note` says how far it is. Throws
   * LeaseLost when the job isn't this worker's any more.
   */
  async checkpoint(
    body?: unknown,
    given: { readonly note?: string | undefined } = {},
  ): Promise<void> {
    this.check();
    const options = { ttr: this.#ttr, body, ...given };
    const command = commands.touch(this.#key, this.id, leaseOf(this.delivery), options);
    if (await this.#line.ask(command, () => this.#isLost)) return;
    this.lose();
    this.check();
  }

  /**
   * The jobs that this one has waited for, and what came of them, in the order in which they were
   * named.
   */
  async deps(): Promise<Dep[]> {
    const found: Dep[] = [];
    for (let from: number | null = 0; from !== null; ) {
      const command = commands.deps(this.#key, this.id, { from });
      const page: Awaited<ReturnType<typeof command.parse>> | undefined = await this.#line.ask(
        command,
        () => this.#isLost,
      );
      if (!page) {
        this.lose();
        throw new LeaseLost(this.id);
      }
      found.push(...page.items);
      from = page.next;
    }
    return found;
  }
}

/** A job in hand, until the server knows its outcome. */
export class Hand {
  readonly key: Key;
  readonly job: RunningJob<never>;
  /** Until when the lease is good, by this machine's clock. */
  goodUntil: number;
  /** Ends the attempt, whatever the handler does. */
  fail: (error: unknown) => void = () => {};

  constructor(key: Key, job: RunningJob<never>, goodUntil: number) {
    this.key = key;
    this.job = job;
    this.goodUntil = goodUntil;
  }
}

/** Workers take jobs under a lease. */
export function leaseOf(job: Delivery): Lease {
  return job.lease as number;
}
