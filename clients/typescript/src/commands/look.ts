/** Looking at a queue, which changes nothing. */

import {
  Dep,
  type Deps,
  type Group,
  group,
  type Info,
  type Job,
  job,
  Outcome,
  type Page,
  info as read,
} from "../replies.ts";
import { type Duration, type Id, moment, options, sent, text } from "../words.ts";
import { type Command, integer, items, type Key, type State, type Wait } from "./base.ts";

/** All that there is to a job; null when it isn't there. */
export function get(key: Key, id: Id): Command<Job | null> {
  return key.command("GET", [sent(id)], {}, (reply) =>
    reply === null ? null : job(reply, key.codec),
  );
}

/**
 * What came of a job: its result, or why it is dead. With `block` it waits for that, and then tells
 * how the job stands. null when there is no such job.
 */
export function result(key: Key, id: Id, block?: Duration): Command<Outcome | null> {
  const given: Wait = { block };
  return key.command("RESULT", [sent(id)], { ...given }, (reply) => {
    if (reply === null) return null;
    const [state, what] = items(reply);
    return new Outcome(state, what, key.codec);
  });
}

/**
 * What a job waits for, or has waited for, and what came of it, in the order in which it was named.
 * null when there is no such job.
 */
export function deps(
  key: Key,
  id: Id,
  given: { readonly from?: number | undefined; readonly count?: number | undefined } = {},
): Command<Deps | null> {
  return key.command("DEPS", [sent(id)], { ...given }, (reply) => {
    if (reply === null) return null;
    const [next, shown] = items(reply);
    const found = items(shown).map((each) => {
      const [name, state, what] = items(each);
      return new Dep(name, state, what, key.codec);
    });
    return { next: next === null ? null : Number(next), items: found };
  });
}

export interface PeekOptions {
  readonly state?: State | undefined;
  readonly after?: Id | undefined;
  readonly from?: Date | undefined;
  readonly count?: number | undefined;
}

/** The next jobs in a state, `ready` without one, without taking them. */
export function peek(key: Key, given: PeekOptions = {}): Command<Job[]> {
  return key.command("PEEK", [], { ...given }, (reply) =>
    items(reply).map((each) => job(each, key.codec)),
  );
}

export interface ScanOptions {
  readonly state?: State | undefined;
  readonly match?: Id | undefined;
  readonly scheduled?: boolean | undefined;
  readonly count?: number | undefined;
}

/** Some ids of the queue's jobs, and where to go on. */
export function scan(key: Key, cursor = 0, given: ScanOptions = {}): Command<Page<string>> {
  return key.command("SCAN", [String(cursor)], { ...given }, (reply) => page(reply, text));
}

/** Some groups of the queue, and where to go on. */
export function groups(
  key: Key,
  cursor = 0,
  given: { readonly count?: number | undefined } = {},
): Command<Page<Group>> {
  return key.command("GROUPS", [String(cursor)], { ...given }, (reply) => page(reply, group));
}

function page<Item>(reply: unknown, item: (word: unknown) => Item): Page<Item> {
  const [cursor, found] = items(reply);
  return { cursor: Number(cursor), items: items(found).map((each) => item(each)) };
}

/** How many jobs there are, or how many in one state. */
export function len(key: Key, state?: State): Command<number> {
  return key.command("LEN", [], { state }, integer);
}

/** How many jobs come due in each of the next steps of time. */
export function forecast(
  key: Key,
  step: Duration,
  count: number,
  given: { readonly from?: Date | undefined } = {},
): Command<number[]> {
  return key.command("FORECAST", [], { ...given, step, count }, (reply) =>
    items(reply).map(integer),
  );
}

/** Settings, counts, totals and lateness; null when there is no such queue. */
export function info(key: Key): Command<Info | null> {
  return key.command("INFO", [], {}, (reply) => (reply === null ? null : read(reply)));
}

export interface NextOptions {
  readonly tz?: string | undefined;
  readonly from?: Date | undefined;
  readonly count?: number | undefined;
}

/** When a cron expression comes next. It has nothing to do with the queue. */
export function next(_: Key, expression: string, given: NextOptions = {}): Command<Date[]> {
  const words = ["DQ.NEXT", expression, ...options({ ...given })];
  return { words, key: undefined, parse: (reply) => items(reply).map(moment) };
}
