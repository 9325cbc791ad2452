/** Changing what is in a queue, and its settings. */

import { type Backoff, type Duration, type Id, type Rate, type Sink, sent } from "../words.ts";
import { type Command, integer, type Key, nothing, type State } from "./base.ts";

/** Removes jobs, whatever their state. Returns how many there were. */
export function del(key: Key, ...ids: Id[]): Command<number> {
  return key.command("DEL", ids.map(sent), {}, integer);
}

/**
 * Makes dead jobs ready again, oldest first. With `spread` they come due evenly over that time:
 * `count` is 10,000 at most then.
 */
export function kick(
  key: Key,
  given: { readonly count?: number | undefined; readonly spread?: Duration | undefined } = {},
): Command<number> {
  return key.command("KICK", [], { ...given }, integer);
}

/** Makes dead or delayed jobs ready now. */
export function kickjob(key: Key, ...ids: Id[]): Command<number> {
  return key.command("KICKJOB", ids.map(sent), {}, integer);
}

/** Stops the queue, or a group, from handing out jobs. */
export function pause(
  key: Key,
  given: { readonly group?: Id | undefined; readonly for?: Duration | undefined } = {},
): Command<void> {
  return key.command("PAUSE", [], { ...given }, nothing);
}

/**
 * Ends the pause of the queue, or of a group. With ids, ends the HOLD of these jobs: returns how
 * many were on hold.
 */
export function resume(
  key: Key,
  given: { readonly group?: Id | undefined; readonly id?: readonly Id[] | undefined } = {},
): Command<number | undefined> {
  const { group, id } = given;
  const named = id === undefined ? [] : ["ID", ...id.map(sent)];
  const words = group === undefined ? named : ["GROUP", sent(group), ...named];
  return key.command("RESUME", words, {}, (reply) =>
    id === undefined ? undefined : Number(reply),
  );
}

/** Removes jobs by state and age, a batch at a time: call it until it returns 0. */
export function purge(
  key: Key,
  state: State,
  given: { readonly older?: Duration | undefined; readonly count?: number | undefined } = {},
): Command<number> {
  return key.command("PURGE", [], { state, ...given }, integer);
}

export interface AlterOptions {
  readonly ttr?: Duration | undefined;
  readonly attempts?: number | undefined;
  readonly backoff?: Backoff | undefined;
  readonly keep?: Duration | undefined;
  readonly late?: Duration | undefined;
  readonly maxjobs?: number | undefined;
  readonly deadkeep?: Duration | undefined;
  readonly concurrency?: number | undefined;
  readonly rate?: Rate | undefined;
  readonly groupconcurrency?: number | undefined;
  readonly grouprate?: Rate | undefined;
  readonly sink?: Sink | string | undefined;
  readonly nosink?: boolean | undefined;
}

/** Sets the queue's limits, and its defaults for jobs added later. */
export function alter(key: Key, given: AlterOptions): Command<void> {
  return key.command("ALTER", [], { ...given }, nothing);
}
