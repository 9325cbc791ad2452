/** Saying what came of jobs: all that has piled up in one round trip, FINISH for many at once. */

import type { Command, Key } from "../commands/base.ts";
import { commands } from "../commands/index.ts";
import { passes } from "../errors.ts";
import { Gate, pauses } from "./gate.ts";
import type { Line, Net } from "./line.ts";
import { ofError, type Settlement } from "./outcomes.ts";

/** In one FINISH, so that it doesn't hold the server up. */
const MOST_AT_ONCE = 1_000;

export class Settler {
  /** Open while nothing is left to be said. */
  readonly idle = new Gate(true);
  readonly #line: Line;
  readonly #net: Net;
  readonly #some = new Gate();
  #unsent: Settlement[] = [];

  constructor(line: Line, net: Net) {
    this.#line = line;
    this.#net = net;
  }

  settle(settlement: Settlement): void {
    this.#unsent.push(settlement);
    this.idle.close();
    this.#some.open();
  }

  /** Lets `run` see that the worker is over. */
  end(): void {
    this.#some.open();
  }

  /** Sends until the worker is over. What the server can't be told now is sent again. */
  async run(): Promise<void> {
    let waits = pauses();
    for (;;) {
      await this.#some.wait();
      if (this.#net.over.isOpen) return;
      this.#some.close();
      const batch = this.#unsent;
      this.#unsent = [];
      const again = await this.#send(batch);
      this.#unsent = [...again, ...this.#unsent];
      if (this.#unsent.length === 0) this.idle.open();
      else this.#some.open();
      if (again.length === 0) waits = pauses();
      else await this.#net.over.waitFor(waits.next().value);
    }
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
    for (const [key, ofKey] of finished) {
      for (let at = 0; at < ofKey.length; at += MOST_AT_ONCE) {
        const part = ofKey.slice(at, at + MOST_AT_ONCE);
        const command = commands.finish(key, ...part.map(({ job }) => job));
        sending.push(this.#say(command, part));
      }
    }
    return (await Promise.all(sending)).flat();
  }

  async #say(command: Command<unknown>, told: Settlement[]): Promise<Settlement[]> {
    try {
      await this.#line.call(command);
      return [];
    } catch (error) {
      if (passes(error)) {
        this.#net.warn(`the server can't be told what came of ${told.length} jobs`, error);
        return told;
      }
      const [refused] = told;
      if (!refused?.isDone) throw error;
      return [ofError(refused.key, refused.job, error)];
    }
  }
}
