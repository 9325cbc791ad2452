/** Taking jobs, and saying what came of them. */

import { inspect } from "node:util";
import { type Added, Delivery, type FinishedAndTaken } from "../replies.ts";
import {
  bytes,
  type Duration,
  type Id,
  listed,
  ms,
  options,
  sent,
  text,
  type Word,
} from "../words.ts";
import { type Command, integer, isTrue, items, type Key, type Lease, type Wait } from "./base.ts";
import { type Add, addWords } from "./produce.ts";

export interface PopOptions extends Wait {
  readonly count?: number | undefined;
  /** Delivers nothing until so many jobs may go, or the first of them has been ready for `linger`. */
  readonly min?: number | undefined;
  readonly linger?: Duration | undefined;
  readonly ttr?: Duration | undefined;
  readonly noack?: boolean | undefined;
  readonly withdue?: boolean | undefined;
}

/** Takes the next ready jobs, each under a lease. */
export function pop(
  key: Key,
  { id, ...given }: PopOptions & { readonly id?: Id | readonly Id[] | undefined } = {},
): Command<Delivery[]> {
  const named = id === undefined ? [] : listed(id).flatMap((each) => ["ID", each]);
  return key.command("POP", named, { ...given }, (reply) => key.deliveries(reply));
}

/**
 * Takes the next ready jobs from the first of several queues that has any: this one, then the
 * others. `key` of a delivery says which one it was.
 */
export function mpop(
  key: Key,
  others: readonly string[],
  given: PopOptions = {},
): Command<Delivery[]> {
  const count = String(others.length + 1);
  const words = ["DQ.MPOP", count, key.name, ...others, ...options({ ...given })];
  const parse = (reply: unknown): Delivery[] => {
    if (reply === null) return [];
    const [name, jobs] = items(reply);
    return items(jobs).map((each) => new Delivery(items(each), text(name), key.codec));
  };
  return { words, key: key.name, parse };
}

/**
 * A delivery, or an id with its lease; without one, the latest lease of the job. `key` is its queue,
 * where that isn't the one that is asked.
 */
export type Leased =
  | Id
  | {
      readonly id: Id;
      readonly lease?: Lease | null | undefined;
      readonly key?: string | undefined;
    };

/**
 * Finishes jobs of this queue, 1 to 10,000, and then takes others, in one step. The finish stands
 * also when there is no other job, and happens before a wait.
 */
export function finishAndPop(
  key: Key,
  jobs: readonly Leased[],
  given: PopOptions = {},
): Command<FinishedAndTaken> {
  const queue = queueOf(key, jobs);
  if (queue !== key.name) {
    throw new RangeError(`jobs of the queue "${queue}" can't be finished in "${key.name}"`);
  }
  return finishing(pop(key, given), counted(jobs));
}

/**
 * The same with several queues: the jobs are of one of them, which their `key` names. Without one
 * they are of this queue.
 */
export function finishAndMpop(
  key: Key,
  jobs: readonly Leased[],
  others: readonly string[],
  given: PopOptions = {},
): Command<FinishedAndTaken> {
  return finishing(mpop(key, others, given), [queueOf(key, jobs), ...counted(jobs)]);
}

/** The one queue that all these jobs are of. */
function queueOf(key: Key, jobs: readonly Leased[]): string {
  if (!Array.isArray(jobs)) throw new TypeError(`jobs: a list of them, not ${inspect(jobs)}`);
  const queues = new Set(jobs.map((job) => (Object(job) as { key?: string }).key ?? key.name));
  if (queues.size <= 1) return [...queues][0] ?? key.name;
  const named = [...queues].map((name) => `"${name}"`).join(", ");
  throw new RangeError(`jobs of several queues can't be finished at once: ${named}`);
}

function counted(jobs: readonly Leased[]): Word[] {
  return [String(jobs.length), ...jobs.flatMap(leased)];
}

function finishing(taking: Command<Delivery[]>, finish: Word[]): Command<FinishedAndTaken> {
  const parse = (reply: unknown): FinishedAndTaken => {
    const [finished, taken] = items(reply);
    return { finished: integer(finished), jobs: taking.parse(taken) };
  };
  return { words: [...taking.words, "FINISH", ...finish], key: taking.key, parse };
}

/** Removes jobs whose work is done. Returns how many leases were valid. */
export function finish(key: Key, ...jobs: Leased[]): Command<number> {
  return key.command("FINISH", jobs.flatMap(leased), {}, integer);
}

function leased(job: Leased): Word[] {
  if (typeof job === "string" || job instanceof Uint8Array) return [sent(job), "*"];
  return [sent(job.id), String(job.lease ?? "*")];
}

export interface DoneOptions {
  readonly result?: unknown;
  readonly keep?: Duration | undefined;
  readonly add?: readonly Add[] | undefined;
}

/**
 * Finishes a job with a result, and adds the jobs that follow it, in one step. null when the lease
 * isn't the job's: nothing has happened.
 */
export function done(
  key: Key,
  id: Id,
  lease: Lease,
  { result, keep, add = [] }: DoneOptions = {},
): Command<Added[] | null> {
  const encoded = result === undefined ? undefined : bytes(key.codec.encode(result));
  const words = [sent(id), String(lease), ...options({ result: encoded, keep })];
  for (const each of add) words.push("ADD", ...addWords(key, each));
  const command = key.command("DONE", words, {}, (reply): Added[] | null => {
    if (!Array.isArray(reply)) return isTrue(reply) ? [] : null;
    return reply.map((made, at) => {
      if (made !== null) return { state: "added", id: text(made) };
      const { id = "*", ensure } = add[at] ?? {};
      return { state: ensure ? "over" : "taken", id: text(sent(id)) };
    });
  });
  return { ...command, adds: add.flatMap(({ id }) => (id === undefined ? [] : [id])) };
}

export interface ReleaseOptions {
  readonly delay?: Duration | undefined;
  readonly unbegun?: boolean | undefined;
  readonly priority?: number | undefined;
  readonly reason?: string | undefined;
  readonly body?: unknown;
  readonly note?: string | undefined;
}

/** Gives a job back, to be tried again after its backoff or a delay. Whether the lease was valid. */
export function release(
  key: Key,
  id: Id,
  lease: Lease,
  given: ReleaseOptions = {},
): Command<boolean> {
  const words = [sent(id), String(lease)];
  return key.command("RELEASE", words, { ...given, body: key.body(given) }, isTrue);
}

export interface TouchOptions {
  readonly ttr?: Duration | undefined;
  readonly body?: unknown;
  readonly note?: string | undefined;
}

/** Extends a lease. With `body` and `note`, a checkpoint of a long job. */
export function touch(key: Key, id: Id, lease: Lease, given: TouchOptions = {}): Command<boolean> {
  const words = [sent(id), String(lease)];
  return key.command("TOUCH", words, { ...given, body: key.body(given) }, isTrue);
}

/**
 * Extends the leases of jobs in hand, and waits until one of them is void, or for `block`. Returns
 * the ids of those that are void.
 */
export function renew(
  key: Key,
  ttr: Duration,
  block: Duration,
  jobs: readonly Leased[],
): Command<string[]> {
  const words = [String(ms(ttr)), String(ms(block)), ...jobs.flatMap(leased)];
  return key.command("RENEW", words, {}, (reply) => items(reply).map(text));
}

/** Marks a job as dead: it is kept for an operator to look at. */
export function bury(
  key: Key,
  id: Id,
  lease: Lease,
  given: { readonly reason?: string | undefined } = {},
): Command<boolean> {
  return key.command("BURY", [sent(id), String(lease)], { ...given }, isTrue);
}
