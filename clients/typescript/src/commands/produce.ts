/** Adding jobs. */

import { inspect } from "node:util";
import type { Added } from "../replies.ts";
import {
  type Backoff,
  type Cron,
  type Duration,
  type Id,
  options,
  sent,
  text,
  type Word,
} from "../words.ts";
import { type Command, items, type Key } from "./base.ts";

/** The options of DQ.ADD but those of schedules. */
export interface JobOptions {
  readonly delay?: Duration | undefined;
  readonly at?: Date | undefined;
  readonly ttr?: Duration | undefined;
  readonly priority?: number | undefined;
  readonly attempts?: number | undefined;
  readonly backoff?: Backoff | undefined;
  readonly ttl?: Duration | undefined;
  readonly keep?: Duration | undefined;
  readonly late?: Duration | undefined;
  readonly group?: Id | undefined;
  readonly after?: readonly Id[] | undefined;
  readonly before?: readonly Id[] | undefined;
  readonly ondead?: "HOLD" | "RUN" | undefined;
  readonly hold?: boolean | undefined;
  readonly nx?: boolean | undefined;
  readonly replace?: boolean | undefined;
}

/** The options of DQ.ADD. */
export interface AddOptions extends JobOptions {
  readonly every?: Duration | undefined;
  readonly cron?: Cron | string | undefined;
  readonly misfire?: "ONE" | "ALL" | undefined;
  readonly jitter?: Duration | undefined;
  readonly runs?: number | undefined;
  readonly until?: Date | undefined;
  readonly ensure?: boolean | undefined;
}

/** The options of DQ.MADD: those of all its jobs, and a time for each. */
export interface AddManyOptions extends JobOptions {
  /** A delay for each job. */
  readonly delays?: readonly Duration[] | undefined;
  /** A due time for each job. */
  readonly ats?: readonly Date[] | undefined;
  /** The jobs come due evenly over this time, from `delay`, `at` or now. */
  readonly spread?: Duration | undefined;
}

/** A body, and an id. The server makes one when there is none. */
export interface OneOfMany {
  readonly body: unknown;
  readonly id?: Id | undefined;
}

/** A job that is to be added by another command: by `done`, or as a step of a flow. */
export interface Add extends AddOptions, OneOfMany {}

export function addWords(key: Key, { id = "*", body, ...given }: Add): Word[] {
  return [sent(id), key.payload(body), ...jobOptions(given)];
}

function jobOptions(given: AddOptions | AddManyOptions): Word[] {
  for (const name of ["after", "before"] as const) {
    const ids = given[name];
    if (ids === undefined || Array.isArray(ids)) continue;
    throw new TypeError(`${name}: a list of ids, not ${inspect(ids)}`);
  }
  return options({ ...given });
}

/** Adds a job, to be delivered when it is due. `"*"` lets the server make the id. */
export function add(key: Key, id: Id, body: unknown, given: AddOptions = {}): Command<Added> {
  const command = key.command("ADD", addWords(key, { ...given, id, body }), {}, (reply): Added => {
    if (reply !== null) return { state: "added", id: text(reply) };
    return { state: given.ensure ? "over" : "taken", id: text(sent(id)) };
  });
  return { ...command, adds: [id] };
}

/**
 * DQ.MADD: adds many jobs, 10,000 at most, in one step, all of them or none. Returns their ids; null
 * where `nx` found one taken. An error of one of the jobs says which, counted from 1: `job 3: id is
 * taken in this queue`.
 */
export function addMany(
  key: Key,
  jobs: readonly OneOfMany[],
  given: AddManyOptions = {},
): Command<(string | null)[]> {
  if (!Array.isArray(jobs)) throw new TypeError(`jobs: a list of them, not ${inspect(jobs)}`);
  const words = [String(jobs.length), ...jobs.flatMap((job) => oneOfMany(key, job))];
  const command = key.command("MADD", [...words, ...jobOptions(given)], {}, (reply) =>
    items(reply).map((id) => (id === null ? null : text(id))),
  );
  return { ...command, adds: jobs.map(({ id = "*" }) => id) };
}

/** Options of a single job would be lost. */
function oneOfMany(key: Key, job: OneOfMany): Word[] {
  const { id = "*", body, ...others } = Object(job) as OneOfMany;
  if (typeof job === "object" && job !== null && Object.keys(others).length === 0) {
    return [sent(id), key.payload(body)];
  }
  throw new TypeError(`jobs: each is { id, body } or { body }, not ${inspect(job)}`);
}
