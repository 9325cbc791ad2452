/**
 * One topic in several queues, its shards, as docs/scaling.md has it. The id of a job says in which
 * of them it is, the same in all languages.
 */

import type { State } from "./commands/base.ts";
import type { AddOptions } from "./commands/produce.ts";
import { Exists } from "./errors.ts";
import { Queue, type QueueOptions } from "./queue.ts";
import type { Added, Job, Outcome } from "./replies.ts";
import type { Client } from "./seam.ts";
import { crc32, SLOTS, slotOf } from "./slots.ts";
import { type Duration, type Id, sent, text } from "./words.ts";

/**
 * The first number whose slot is in the first part of all slots, the next one in the second part,
 * and so on: such tags give each node of a cluster the same number of shards.
 */
export function evenTags(shards: number): number[] {
  const tags: number[] = [];
  for (let number = 0; tags.length < shards; number += 1) {
    if (Math.floor((slotOf(String(number)) * shards) / SLOTS) === tags.length) tags.push(number);
  }
  return tags;
}

/**
 * All programs must agree on its name and the number of its shards. To change that number, give the
 * topic a new name, and to `before` the topic as it was: ids are looked for in both, and workers
 * serve both, until the old one is empty.
 */
export class Topic {
  readonly name: string;
  /** For what is said to each queue: `pause`, `alter`, `purge`, `kick`, `info`. */
  readonly queues: readonly Queue[];
  readonly #before: Topic | undefined;

  constructor(
    client: Client,
    name: string,
    shards: number,
    { before, ...options }: QueueOptions & { readonly before?: Topic | undefined } = {},
  ) {
    if (shards < 1) throw new RangeError("a topic has one shard at least");
    this.name = name;
    this.queues = evenTags(shards).map((tag) => new Queue(client, `${name}:{${tag}}`, options));
    this.#before = before;
  }

  /** With those of `before`. */
  get allQueues(): Queue[] {
    return [...this.queues, ...(this.#before?.allQueues ?? [])];
  }

  /** The queue of a job; or that of a customer, whose jobs keep their order in it. */
  queueOf(id: Id): Queue {
    return this.queues[crc32(id) % this.queues.length] as Queue;
  }

  /** Where a job of this id may be: where the topic was before, the latest first. */
  #earlier(id: Id): Queue[] {
    const before = this.#before;
    return before === undefined ? [] : [before.queueOf(id), ...before.#earlier(id)];
  }

  async add(id: Id, body: unknown, options: AddOptions = {}): Promise<Added> {
    if (id === "*") throw new RangeError("in a topic the id chooses the queue: make one");
    const replaces = options.replace === true || options.ensure === true;
    for (const queue of replaces ? [] : this.#earlier(id)) {
      if ((await queue.get(id)) === null) continue;
      if (options.nx) return { state: "taken", id: text(sent(id)) };
      const named = `${JSON.stringify(text(sent(id)))} in ${JSON.stringify(queue.name)}`;
      throw new Exists(`id is taken in this queue: ${named}`, "EXISTS");
    }
    const added = await this.queueOf(id).add(id, body, options);
    // Only now, so that there is a job at any time.
    for (const queue of replaces ? this.#earlier(id) : []) await queue.del(id);
    return added;
  }

  /** Whether there was such a job. */
  async cancel(id: Id): Promise<boolean> {
    for (const queue of [this.queueOf(id), ...this.#earlier(id)]) {
      if ((await queue.del(id)) > 0) return true;
    }
    return false;
  }

  async get(id: Id): Promise<Job | null> {
    for (const queue of [this.queueOf(id), ...this.#earlier(id)]) {
      const job = await queue.get(id);
      if (job !== null) return job;
    }
    return null;
  }

  async result(id: Id, block?: Duration): Promise<Outcome | null> {
    for (const queue of this.#earlier(id).reverse()) {
      if ((await queue.result(id)) !== null) return queue.result(id, block);
    }
    return this.queueOf(id).result(id, block);
  }

  /** The jobs of all shards, without those of `before`. */
  async length(state?: State): Promise<number> {
    const lengths = await Promise.all(this.queues.map((queue) => queue.len(state)));
    return lengths.reduce((total, each) => total + each, 0);
  }
}
