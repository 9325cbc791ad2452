/** What a worker does for the queues of one slot: it takes jobs, keeps leases, and settles. */

import type { Key } from "../commands/base.ts";
import { Failures, type OnError } from "./failures.ts";
import type { Source } from "./fetching.ts";
import { firstOf, Gate, now } from "./gate.ts";
import { Hands, type Work } from "./hands.ts";
import { Line } from "./line.ts";
import { type Net, Outage } from "./net.ts";
import { unbegun } from "./outcomes.ts";
import { interval, keep, watch } from "./renewing.ts";
import { Settler } from "./settling.ts";

/** What all branches of a worker share. */
export interface Common {
  readonly net: Net;
  readonly work: Work<never>;
  readonly ttr: number;
  readonly onError: OnError | undefined;
  readonly stopping: Gate;
}

/** It has connections of its own, so that a node that is away holds up no other. */
export class Branch {
  readonly hands: Hands;
  readonly settler: Settler;
  readonly failures: Failures;
  readonly line: Line;
  /** Open when no more jobs are taken. */
  readonly taken = new Gate();
  readonly #source: Source;
  readonly #common: Common;
  readonly #outage: Outage;
  readonly #lines: Line[] = [];

  constructor(source: Source, common: Common) {
    const { net, work, ttr, onError } = common;
    this.#source = source;
    this.#common = common;
    this.#outage = new Outage(net);
    this.line = this.#line();
    this.failures = new Failures(this.line, net, onError);
    const room = 2 * source.places.count + 100;
    this.settler = new Settler(this.line, net, this.failures, room, (hand) =>
      this.hands.settled(hand),
    );
    this.hands = new Hands(
      work,
      ttr,
      this.line,
      (told) => this.settler.settle(told),
      () => source.places.giveBack(1),
    );
  }

  /** All of it runs until the worker is over. An error that waiting doesn't mend rejects one. */
  begin(): Promise<void>[] {
    const { net, ttr } = this.#common;
    const keeping = this.#source.keys.map((key) => keep(key, this.hands, ttr, this.#line(), net));
    const fetching = this.#fetch().finally(() => this.taken.open());
    return [this.settler.run(), watch(this.hands, ttr, net), fetching, ...keeping];
  }

  /** Waits for the jobs in hand; those that still run then go back, unbegun. */
  async end(grace: number, hurrying: Gate, lastWords: number): Promise<void> {
    await firstOf([this.hands.none, hurrying], grace);
    this.hands.giveBack();
    await this.settler.idle.wait(lastWords);
    await this.failures.idle.wait(lastWords);
  }

  close(): void {
    this.hands.end();
    this.settler.end();
    for (const line of this.#lines) line.close();
  }

  #line(): Line {
    const line = new Line(this.#common.net, this.#outage);
    this.#lines.push(line);
    return line;
  }

  async #fetch(): Promise<void> {
    const { ttr, stopping } = this.#common;
    const source = this.#source;
    const keys = new Map(source.keys.map((key) => [key.name, key]));
    const line = this.#line();
    const block = interval(ttr);
    let sent = 0;
    // Before the first job: a lease doesn't wait for a connection then.
    await Promise.all(this.#lines.map((each) => each.prepare()));
    for (;;) {
      if (!source.places.hasFree.isOpen) await firstOf([source.places.hasFree, stopping]);
      if (!this.settler.hasRoom.isOpen) await firstOf([this.settler.hasRoom, stopping]);
      if (stopping.isOpen) return;
      const count = source.places.take();
      const command = source.command(count, block, ttr);
      const jobs =
        (await line.ask(
          command,
          () => stopping.isOpen,
          () => {
            sent = now();
          },
        )) ?? [];
      source.places.giveBack(count - jobs.length);
      for (const job of jobs) {
        const key = keys.get(job.key) as Key;
        if (stopping.isOpen) this.settler.settle(unbegun(key, job));
        else this.hands.run(key, job.withCodec(key.codec), sent + ttr);
      }
    }
  }
}
