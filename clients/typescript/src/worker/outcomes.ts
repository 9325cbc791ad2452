/** What came of a job: the words of a handler, and the commands that say it. */

import type { Command, Key } from "../commands/base.ts";
import type { DoneOptions } from "../commands/consume.ts";
import { commands } from "../commands/index.ts";
import { Invalid, said, textOf } from "../errors.ts";
import type { Delivery } from "../replies.ts";
import { type Duration, ms } from "../words.ts";
import { type Hand, leaseOf } from "./running.ts";

const REASON_BYTES = 512;

/** Returned by a handler that has more to say than a result: jobs that follow, another KEEP. */
export class Done {
  readonly options: DoneOptions;

  constructor(options: DoneOptions = {}) {
    if (options.keep !== undefined) ms(options.keep);
    this.options = options;
  }
}

/**
 * Thrown by a handler: another attempt may succeed, after `in` or the job's backoff. Throws a
 * TypeError or RangeError when `in` is no length of time.
 */
export class Retry extends Error {
  override name = "Retry";
  readonly in: Duration | undefined;
  readonly priority: number | undefined;

  constructor(
    reason: unknown = "",
    given: { readonly in?: Duration | undefined; readonly priority?: number | undefined } = {},
  ) {
    super(textOf(reason));
    if (given.in !== undefined && ms(given.in) < 0) {
      throw new RangeError(`Retry: in is ${ms(given.in)} ms, before now`);
    }
    this.in = given.in;
    this.priority = given.priority;
  }
}

/** Thrown by a handler: no attempt ever will succeed. */
export class Bury extends Error {
  override name = "Bury";

  constructor(reason: unknown = "", options?: ErrorOptions) {
    super(textOf(reason), options);
  }
}

/** A job, and the command that says what came of it. */
export interface Settlement {
  readonly key: Key;
  readonly job: Delivery;
  /** undefined for one of a batch of FINISH. */
  readonly command?: Command<unknown>;
  /** In place of an outcome that was refused. Nothing takes the place of the last one. */
  readonly resort?: "release" | "last";
  /** What the handler threw, or why the server refused what it said. */
  readonly failure?: { readonly error: unknown };
  /** undefined for a job that wasn't begun. */
  hand?: Hand;
}

const GENERATOR = /Generator(Function)?\]$/;

/** Whether it is a generator, or a function that makes one: to call that runs nothing of it. */
export function isGenerator(value: unknown): boolean {
  return GENERATOR.test(Object.prototype.toString.call(value));
}

/** Throws what the codec throws, and a TypeError for a generator, which JSON writes as `{}`. */
export function ofReturn(key: Key, job: Delivery, value: unknown): Settlement {
  const isPlain = !(value instanceof Done);
  if (isPlain && (value === undefined || value === null)) return { key, job };
  if (isPlain && typeof value === "object" && isGenerator(value)) {
    throw new TypeError("the handler returned a generator, of which nothing has run");
  }
  const options = isPlain ? { result: value } : value.options;
  return { key, job, command: commands.done(key, job.id, leaseOf(job), options) };
}

/** It never throws, whatever the error is. */
export function ofError(key: Key, job: Delivery, error: unknown): Settlement {
  const failure = { error };
  try {
    return { key, job, command: commandOf(key, job, error), failure };
  } catch (why) {
    return { ...released(key, job, why), failure };
  }
}

function commandOf(key: Key, job: Delivery, error: unknown): Command<unknown> {
  const lease = leaseOf(job);
  if (error instanceof Bury) {
    return commands.bury(key, job.id, lease, { reason: short(error.message) });
  }
  if (!(error instanceof Retry)) {
    return commands.release(key, job.id, lease, { reason: short(textOf(error)) });
  }
  const { in: delay, priority, message } = error;
  return commands.release(key, job.id, lease, { delay, priority, reason: short(message) });
}

/** The outcome can't be said, so the attempt has failed. */
function released(key: Key, job: Delivery, why: unknown): Settlement {
  const reason = short(`outcome refused: ${said(why)}`);
  const command = commands.release(key, job.id, leaseOf(job), { reason });
  return { key, job, command, resort: "release" };
}

/**
 * In place of an outcome that the server refuses: the job is released, with why; when that is
 * refused too, it is buried. undefined when nothing is left.
 */
export function insteadOf(refused: Settlement, error: unknown): Settlement | undefined {
  const { key, job, command, hand, resort } = refused;
  if (resort === "last") return undefined;
  const { failure = { error } } = refused;
  const rest = { failure, ...(hand && { hand }) };
  const isTooLong = error instanceof Invalid && error.message.startsWith("body must be at most");
  if (resort === undefined && !isTooLong) return { ...released(key, job, error), ...rest };
  // No attempt will make a result shorter.
  const result = command?.words[command.words.indexOf("RESULT") + 1];
  const what = result instanceof Uint8Array ? `result of ${result.length} bytes` : "outcome";
  const reason = short(`${what} refused: ${isTooLong ? error.message : said(error)}`);
  const bury = commands.bury(key, job.id, leaseOf(job), { reason });
  return { key, job, command: bury, resort: "last", ...rest };
}

export function unbegun(key: Key, job: Delivery, hand?: Hand): Settlement {
  const command = commands.release(key, job.id, leaseOf(job), { unbegun: true });
  return { key, job, command, resort: "last", ...(hand && { hand }) };
}

/** As much of it as the server takes. Throws a TypeError for what is no text. */
function short(reason: string): string | undefined {
  if (typeof reason !== "string") throw new TypeError(`a reason is text, not ${typeof reason}`);
  if (reason === "") return undefined;
  const data = Buffer.from(reason);
  // A character that is cut in two is left out.
  return new TextDecoder().decode(data.subarray(0, REASON_BYTES), { stream: true });
}
