/** Saying what came of jobs: all that has piled up in one round trip, FINISH for many at once. */

import type { Command, Key } from "../commands/base.ts";
import { commands } from "../commands/index.ts";
import { isRefused } from "../errors.ts";
import type { Failures } from "./failures.ts";
import { firstOf, Gate, now, pauses } from "./gate.ts";
import type { Line } from "./line.ts";
import type { Net } from "./net.ts";
import { insteadOf, type Settlement } from "./outcomes.ts";
import type { Hand } from "./running.ts";

/** In one FINISH, so that it doesn't hold the server up. */
const MOST_AT_ONCE = 1_000;

export class Settler {
  /** Open while nothing is left to be said. */
  readonly idle = new Gate(true);
  /** Open while there is room for more to be said: else no more jobs are taken. */
  readonly hasRoom = new Gate(true);
  readonly #line: Line;
  readonly #net: Net;
  readonly #failures: Failures;
  readonly #settled: (hand: Hand) => void;
  readonly #room: number;
  readonly #some = new Gate();
  #unsent: Settlement[] = [];
  /** What could not be said, and when it is said again. */
  #again: Settlement[] = [];
  #againAt = 0;
  #count = 0;

  constructor(
    line: Line,
    net: Net,
    failures: Failures,
    room: number,
    settled: (hand: Hand) => void,
  ) {
    this.#line = line;
    this.#net = net;
    this.#failures = failures;
    this.#room = room;
    this.#settled = settled;
  }

  settle(settlement: Settlement): void {
    this.#unsent.push(settlement);
    this.#count += 1;
    this.idle.close();
    if (this.#count >= this.#room) this.hasRoom.close();
    this.#some.open();
  }

  /** Lets `run` see that the worker is over. */
  end(): void {
    this.#some.open();
  }

  /** Sends until the worker is over. What the server can't be told now is sent again. */
  async run(): Promise<void> {
    const { over } = this.#net;
    let waits = pauses();
    for (;;) {
      const pause = this.#again.length > 0 ? this.#againAt - now() : undefined;
      await firstOf([this.#some, over], pause);
      if (over.isOpen) return;
      const batch = this.#batch();
      const again = await this.#send(batch);
      this.#again.push(...again);
      if (again.length === 0) {
        if (this.#again.length > 0) continue;
        waits = pauses();
        this.#line.outage.answered(this.#line);
        continue;
      }
      this.#againAt = now() + waits.next().value;
      // Where the server takes nothing, all waits; else only what it doesn't take.
      if (again.length < batch.length) continue;
      await this.#line.outage.pause(this.#againAt - now());
      this.#againAt = 0;
    }
  }

  #batch(): Settlement[] {
    const batch = this.#unsent;
    this.#unsent = [];
    this.#some.close();
    if (now() < this.#againAt) return batch;
    const again = this.#again;
    this.#again = [];
    return again.length > 0 ? [...again, ...batch] : batch;
  }

  /** Returns those that have to be sent again. The client library sends all of it at once. */
  async #send(batch: readonly Settlement[]): Promise<Settlement[]> {
    const sending: Promise<Settlement[]>[] = [];
    const finished = new Map<Key, Settlement[]>();
    for (const settlement of batch) {
      const { key, command } = settlement;
      if (command !== undefined) {
        sending.push(this.#say(command, [settlement]));
        continue;
      }
      const ofKey = finished.get(key);
      if (ofKey === undefined) finished.set(key, [settlement]);
      else ofKey.push(settlement);
    }
    for (const ofKey of finished.values()) {
      for (let at = 0; at < ofKey.length; at += MOST_AT_ONCE) {
        const part = ofKey.slice(at, at + MOST_AT_ONCE);
        sending.push(this.#say(finish(part), part));
      }
    }
    return (await Promise.all(sending)).flat();
  }

  async #say(command: Command<unknown>, told: Settlement[]): Promise<Settlement[]> {
    try {
      await this.#line.call(command);
      for (const settlement of told) this.#end(settlement);
      return [];
    } catch (error) {
      if (isRefused(error)) return this.#refused(told, error);
      // A wrong password ends the worker where it takes jobs.
      this.#line.outage.failed(this.#line, error);
      for (const settlement of told) this.#failures.waits(settlement);
      return told;
    }
  }

  /** What is said instead, at once. What nothing can take the place of is left to its TTR. */
  async #refused(told: readonly Settlement[], error: unknown): Promise<Settlement[]> {
    const again = told.map(async (settlement) => {
      if (told.length > 1) return this.#say(finish([settlement]), [settlement]);
      const instead = insteadOf(settlement, error);
      if (instead?.command !== undefined) return this.#say(instead.command, [instead]);
      const { key, job } = settlement;
      const what = `${key.name}: what came of ${JSON.stringify(job.id)} is refused`;
      const rest = "its lease runs out, and it comes again";
      this.#net.warnSometimes(`${key.name} refused`, `${what}: ${rest}`, error);
      this.#end(settlement);
      return [];
    });
    return (await Promise.all(again)).flat();
  }

  #end(settlement: Settlement): void {
    this.#count -= 1;
    if (this.#count < this.#room) this.hasRoom.open();
    if (this.#count === 0) this.idle.open();
    if (settlement.hand) this.#settled(settlement.hand);
    if (settlement.failure) this.#failures.told(settlement);
  }
}

/** Of jobs of one queue. */
function finish(told: readonly Settlement[]): Command<number> {
  const { key } = told[0] as Settlement;
  return commands.finish(key, ...told.map(({ job }) => job));
}
