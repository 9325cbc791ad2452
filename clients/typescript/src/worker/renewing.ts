/**
 * Keeping leases: one RENEW for all jobs of a queue that are in hand. Its answer is how a worker
 * learns that a job was cancelled, and it comes the moment that happens.
 */

import type { Key } from "../commands/base.ts";
import { commands } from "../commands/index.ts";
import { passes } from "../errors.ts";
import { now, pauses } from "./gate.ts";
import type { Hands } from "./hands.ts";
import type { Line } from "./line.ts";
import type { Net } from "./net.ts";
import type { Hand } from "./running.ts";

/** Two renewals may get lost. */
const PER_TTR = 3;
/** A job that comes is under the watch of a RENEW this soon. */
const LONGEST_MS = 1_000;
/** Jobs that end all the time don't make a RENEW each. */
const SHORTEST_MS = 100;
/** In one command. */
const MOST_AT_ONCE = 10_000;
/** So many jobs a line of the log names. */
const NAMED = 5;

/** How long one call waits, in milliseconds. */
export function interval(ttr: number): number {
  return Math.min(Math.ceil(ttr / PER_TTR), LONGEST_MS);
}

/** Renews the leases of a queue's jobs until the worker is over. */
export async function keep(
  key: Key,
  hands: Hands,
  ttr: number,
  line: Line,
  net: Net,
): Promise<void> {
  let waits = pauses();
  for (;;) {
    if (!hands.some(key).isOpen) line.outage.answered(line);
    await hands.some(key).wait();
    if (net.over.isOpen) return;
    const begun = now();
    const held = hands.of(key);
    let pause = 0;
    if (held.length > 0) {
      try {
        await renew(key, held, ttr, line);
        line.outage.answered(line);
        waits = pauses();
      } catch (error) {
        if (!passes(error)) throw error;
        if (net.over.isOpen) return;
        line.outage.failed(line, error);
        pause = waits.next().value;
      }
    }
    const rest = begun + SHORTEST_MS - now();
    await (pause > rest ? line.outage.pause(pause) : net.over.wait(rest));
  }
}

/** All of them, in as many commands as it takes. The last one waits. */
async function renew(key: Key, held: readonly Hand[], ttr: number, line: Line): Promise<void> {
  const parts: Promise<void>[] = [];
  for (let at = 0; at < held.length; at += MOST_AT_ONCE) {
    const isLast = at + MOST_AT_ONCE >= held.length;
    const part = held.slice(at, at + MOST_AT_ONCE);
    parts.push(renewPart(key, part, ttr, isLast ? interval(ttr) : 0, line));
  }
  await Promise.all(parts);
}

async function renewPart(
  key: Key,
  held: readonly Hand[],
  ttr: number,
  block: number,
  line: Line,
): Promise<void> {
  const jobs = held.map(({ job }) => job.delivery);
  let sent = 0;
  const reply = await line.call(commands.renew(key, ttr, block, jobs), () => {
    sent = now();
  });
  const lost = new Set(reply);
  for (const hand of held) {
    if (lost.has(hand.job.id)) hand.job.lose();
    else hand.goodUntil = sent + ttr;
  }
}

/** Gives jobs up whose leases could not be renewed in time: another worker may have them. */
export async function watch(hands: Hands, ttr: number, net: Net): Promise<void> {
  const every = interval(ttr);
  for (;;) {
    const begun = now();
    await net.over.wait(every);
    if (net.over.isOpen) return;
    const late = Math.round(now() - begun - every);
    const over = hands.running().filter(({ job, goodUntil }) => !job.isLost && goodUntil < now());
    if (over.length === 0) continue;
    if (late > every) {
      // Renewals that stand in the queue behind this come first: a lease may be good yet.
      const what = `a handler held the event loop for ${late} ms, and leases are over`;
      net.warnSometimes("blocked", `${what}: ${named(over)} may run twice`);
      continue;
    }
    for (const { job } of over) job.expire();
    const what = "could not be renewed in time, and is given up";
    net.warnSometimes("expired", `the lease of ${named(over)} ${what}`);
  }
}

/** For a line of the log. */
export function named(hands: readonly Hand[]): string {
  const names = hands
    .slice(0, NAMED)
    .map(({ key, job }) => `${key.name}: ${JSON.stringify(job.id)}`);
  const more = hands.length - names.length;
  return names.join(", ") + (more > 0 ? ` and ${more} more` : "");
}
