/**
 * Keeping leases: one RENEW for all jobs of a queue that are in hand. Its answer is how a worker
 * learns that a job was cancelled, and it comes the moment that happens.
 */

import type { Key } from "../commands/base.ts";
import { commands } from "../commands/index.ts";
import { passes } from "../errors.ts";
import { now, pauses } from "./gate.ts";
import type { Hand, Hands } from "./hands.ts";
import type { Line, Net } from "./line.ts";

/** Two renewals may get lost. */
const PER_TTR = 3;
/** A job that comes is under the watch of a RENEW this soon. */
const LONGEST_MS = 1_000;
/** Jobs that end all the time don't make a RENEW each. */
const SHORTEST_MS = 100;
/** In one command. */
const MOST_AT_ONCE = 10_000;

/** How long one call waits, in milliseconds. */
export function interval(ttr: number): number {
  return Math.min(Math.ceil(ttr / PER_TTR), LONGEST_MS);
}

/** Renews the leases of a queue's jobs until the worker is over. */
export async function keep(
  key: Key,
  hands: Hands<never>,
  ttr: number,
  line: Line,
  net: Net,
): Promise<void> {
  let waits = pauses();
  for (;;) {
    await hands.some(key).wait();
    if (net.over.isOpen) return;
    const begun = now();
    const held = hands.of(key).slice(0, MOST_AT_ONCE);
    let pause = 0;
    if (held.length > 0) {
      try {
        await renew(key, held, ttr, line, begun);
        waits = pauses();
      } catch (error) {
        if (!passes(error)) throw error;
        if (net.over.isOpen) return;
        net.warn(`the leases of ${held.length} jobs can't be renewed`, error);
        pause = waits.next().value;
      }
    }
    await net.over.waitFor(Math.max(pause, begun + SHORTEST_MS - now()));
  }
}

async function renew(
  key: Key,
  held: readonly Hand<never>[],
  ttr: number,
  line: Line,
  begun: number,
): Promise<void> {
  const jobs = held.map(({ job }) => job.delivery);
  const lost = new Set(await line.call(commands.renew(key, ttr, interval(ttr), jobs)));
  for (const hand of held) {
    if (lost.has(hand.job.id)) hand.job.lose();
    else hand.goodUntil = begun + ttr;
  }
}

/** Gives jobs up whose leases could not be renewed in time: another worker may have them. */
export async function watch(hands: Hands<never>, ttr: number, net: Net): Promise<void> {
  while (!net.over.isOpen) {
    await net.over.waitFor(interval(ttr));
    for (const { job, goodUntil } of hands.all()) {
      if (goodUntil < now() && !job.isLost) job.lose();
    }
  }
}
