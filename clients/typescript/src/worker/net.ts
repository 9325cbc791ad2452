/** What all parts of a worker share: the client, its log, and when it is over. */

import { said, textOf } from "../errors.ts";
import { addressOf, type Client } from "../seam.ts";
import { FIRST_MS, firstOf, Gate, now } from "./gate.ts";

/** What happens again and again is logged this often. */
const QUIET_MS = 10_000;

export type Warn = (what: string, error?: unknown) => void;

export class Net {
  readonly client: Client;
  /** Open when the worker has ended. */
  readonly over = new Gate();
  /** Open for a moment, whenever a connection was made. */
  readonly connecting = new Gate();
  connections = 0;
  readonly #warn: Warn | undefined;
  readonly #last = new Map<string, number>();

  constructor(client: Client, warn?: Warn) {
    this.client = client;
    this.#warn = warn;
  }

  connected(): void {
    this.connections += 1;
    this.connecting.open();
    this.connecting.close();
  }

  warn(what: string, error?: unknown): void {
    this.#log(what, error, textOf);
  }

  /** With the stack of the error. */
  traced(what: string, error: unknown): void {
    this.#log(what, error, stackOf);
  }

  #log(what: string, error: unknown, of: (error: unknown) => string): void {
    try {
      if (this.#warn) this.#warn(what, error);
      else console.warn(`dq-client: ${what}${error === undefined ? "" : `: ${said(error, of)}`}`);
    } catch {
      // A log that fails must not end the worker.
    }
  }

  /** Not more often than every ten seconds for each kind. Whether it was logged. */
  warnSometimes(kind: string, what: string, error?: unknown): boolean {
    const last = this.#last.get(kind);
    if (last !== undefined && now() - last < QUIET_MS) return false;
    this.#last.set(kind, now());
    this.warn(what, error);
    return true;
  }
}

function stackOf(error: unknown): string {
  const { stack } = Object(error) as { stack?: unknown };
  return typeof stack === "string" ? stack : textOf(error);
}

/** One line when a server doesn't answer, and one when it does so again. */
export class Outage {
  readonly #net: Net;
  readonly #failing = new Set<object>();
  /** Open for a moment, whenever a line that failed is answered. */
  readonly #answering = new Gate();
  #answers = 0;
  #since = 0;
  #isLogged = false;

  constructor(net: Net) {
    this.#net = net;
  }

  failed(line: object, error: unknown): void {
    const isNew = this.#failing.size === 0;
    this.#failing.add(line);
    if (!isNew) return;
    this.#since = now();
    const what = `the server at ${addressOf(this.#net.client)} doesn't answer`;
    this.#isLogged = this.#net.warnSometimes(what, `${what}, trying again`, error);
  }

  answered(line: object): void {
    if (!this.#failing.delete(line)) return;
    this.#answers += 1;
    this.#answering.open();
    this.#answering.close();
    if (this.#failing.size > 0 || !this.#isLogged) return;
    const seconds = ((now() - this.#since) / 1_000).toFixed(1);
    const address = addressOf(this.#net.client);
    this.#net.warn(`the server at ${address} answers again, after ${seconds} s`);
  }

  /**
   * Waits so many milliseconds, or until the worker is over, or another line is answered: what could
   * not be sent is sent at once then. Not less than the first pause, lest a server that answers only
   * others is asked all the time.
   */
  async pause(ms: number): Promise<void> {
    const before = this.#answers;
    const least = Math.min(ms, FIRST_MS);
    await this.#net.over.wait(least);
    if (this.#answers > before) return;
    await firstOf([this.#answering, this.#net.over], ms - least);
  }
}
