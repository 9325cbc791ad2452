/** What a worker says to the server beside its work: its schedules, and a look at the backoff. */

import type { Key } from "../commands/base.ts";
import { commands } from "../commands/index.ts";
import type { AddOptions } from "../commands/produce.ts";
import { DQError, Full } from "../errors.ts";
import type { Id } from "../words.ts";
import { firstOf, type Gate } from "./gate.ts";
import type { Line } from "./line.ts";
import type { Net } from "./net.ts";

/** A schedule is made sure of this often, and at each new connection: its data may be lost. */
const AGAIN_MS = 60_000;
/** Connections come several at a time. */
const SOON_MS = 1_000;

export interface Schedule {
  readonly key: Key;
  readonly id: Id;
  readonly body: unknown;
  readonly options: AddOptions;
}

/**
 * Until the worker stops: by ENSURE at the start, and by NX later, which leaves the schedule of a
 * newer program as it is. One with RUNS is declared at the start alone: it would begin again. Throws
 * what the server refuses at the start, but a queue that is full.
 */
export async function declare(
  { key, id, body, options }: Schedule,
  line: Line,
  net: Net,
  stopping: Gate,
): Promise<void> {
  const isOver = () => options.until !== undefined && options.until.getTime() < Date.now();
  for (let isFirst = true; !stopping.isOpen && (isFirst || !isOver()); ) {
    const { connections } = net;
    const how = isFirst ? { ensure: true } : { nx: true };
    try {
      await line.ask(commands.add(key, id, body, { ...options, ...how }), () => stopping.isOpen);
      if (options.runs !== undefined) return;
      isFirst = false;
    } catch (error) {
      if (isFirst && !(error instanceof Full)) throw error;
      const what = `${key.name}: the schedule ${JSON.stringify(String(id))} can't be declared`;
      net.warnSometimes(what, `${what}, trying again`, error);
    }
    await stopping.wait(SOON_MS);
    if (net.connections === connections) await firstOf([net.connecting, stopping], AGAIN_MS);
  }
}

/** Says so when jobs of a queue get no backoff: a second of trouble uses up all their attempts. */
export async function checkBackoff(key: Key, line: Line, net: Net, stopping: Gate): Promise<void> {
  try {
    const info = await line.ask(commands.info(key), () => stopping.isOpen);
    if (!info || info.defaultBackoffBase > 0) return;
    const what = `${key.name}: jobs that fail are tried again at once, as the queue has no backoff`;
    net.warn(`${what}: DQ.ALTER ${key.name} BACKOFF 1000 600000 gives it one`);
  } catch (error) {
    if (!(error instanceof DQError)) net.warn(`${key.name}: no look at its backoff`, error);
  }
}
