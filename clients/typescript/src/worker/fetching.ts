/** Taking jobs: as many as there are free places, from queues by their weights. */

import { inspect } from "node:util";
import type { Command, Key } from "../commands/base.ts";
import { commands } from "../commands/index.ts";
import type { Delivery } from "../replies.ts";
import { slotOf } from "../slots.ts";
import { Gate } from "./gate.ts";

/** One call delivers no more. */
const MOST_AT_ONCE = 10_000;

/** How many more jobs a source may have in hand. */
export class Places {
  readonly hasFree = new Gate(true);
  readonly count: number;
  #free: number;

  constructor(count: number) {
    this.count = count;
    this.#free = count;
  }

  /** All that are free. */
  take(): number {
    const taken = Math.min(this.#free, MOST_AT_ONCE);
    this.giveBack(-taken);
    return taken;
  }

  giveBack(count: number): void {
    this.#free += count;
    if (this.#free > 0) this.hasFree.open();
    else this.hasFree.close();
  }
}

/** Queues from which jobs are taken by one call: those of one slot. */
export class Source {
  readonly keys: readonly Key[];
  readonly places: Places;
  readonly #orders: Generator<Key[], never>;

  constructor(weights: ReadonlyMap<Key, number>, places: number) {
    this.keys = [...weights.keys()];
    this.places = new Places(places);
    this.#orders = orders(this.keys, [...weights.values()]);
  }

  command(count: number, block: number, ttr: number): Command<Delivery[]> {
    const [first, ...others] = this.#orders.next().value as [Key, ...Key[]];
    const options = { count, block, ttr, withdue: true };
    if (others.length === 0) return commands.pop(first, options);
    return commands.mpop(
      first,
      others.map((key) => key.name),
      options,
    );
  }
}

/**
 * In which order to ask queues, call by call: of as many calls as all weights together, each queue
 * is the first as often as its weight says, evenly spread.
 */
export function* orders<K>(keys: readonly K[], weights: readonly number[]): Generator<K[], never> {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const credits = weights.map(() => 0);
  for (;;) {
    for (const [at, weight] of weights.entries()) credits[at] = (credits[at] ?? 0) + weight;
    const first = credits.indexOf(Math.max(...credits));
    credits[first] = (credits[first] ?? 0) - total;
    yield [keys[first] as K, ...keys.filter((_, at) => at !== first)];
  }
}

/** The queues by their slots: one call can't wait in two. The places are divided evenly. */
export function sources(
  weights: ReadonlyMap<Key, number>,
  concurrency: number,
  isCluster: boolean,
): Source[] {
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw new RangeError(`concurrency is a whole number, 1 at least, not ${inspect(concurrency)}`);
  }
  const bySlot = new Map<number, Map<Key, number>>();
  for (const [key, weight] of weights) {
    const slot = isCluster ? slotOf(key.name) : 0;
    bySlot.set(slot, (bySlot.get(slot) ?? new Map()).set(key, weight));
  }
  if (concurrency < bySlot.size) {
    throw new RangeError(
      `queues in ${bySlot.size} slots of a cluster need a concurrency of as many at least, ` +
        "or several workers that share them",
    );
  }
  const least = Math.floor(concurrency / bySlot.size);
  const more = concurrency % bySlot.size;
  return [...bySlot.values()].map(
    (together, at) => new Source(together, least + (at < more ? 1 : 0)),
  );
}
