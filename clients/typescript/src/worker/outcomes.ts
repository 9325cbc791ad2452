/** What came of a job: the words of a handler, and the commands that say it. */

import type { Command, Key, Lease } from "../commands/base.ts";
import type { DoneOptions } from "../commands/consume.ts";
import { commands } from "../commands/index.ts";
import type { Delivery } from "../replies.ts";
import type { Duration } from "../words.ts";

const REASON_BYTES = 512;

/** Returned by a handler that has more to say than a result: jobs that follow, another KEEP. */
export class Done {
  readonly options: DoneOptions;

  constructor(options: DoneOptions = {}) {
    this.options = options;
  }
}

/** Thrown by a handler: another attempt may succeed, after `in` or the job's backoff. */
export class Retry extends Error {
  override name = "Retry";
  readonly in: Duration | undefined;
  readonly priority: number | undefined;

  constructor(
    reason = "",
    given: { readonly in?: Duration | undefined; readonly priority?: number | undefined } = {},
  ) {
    super(reason);
    this.in = given.in;
    this.priority = given.priority;
  }
}

/** Thrown by a handler: no attempt ever will succeed. */
export class Bury extends Error {
  override name = "Bury";
}

/** A job, and the command that says what came of it. */
export interface Settlement {
  readonly key: Key;
  readonly job: Delivery;
  /** undefined for one of a batch of FINISH. */
  readonly command?: Command<unknown>;
  /** The server may refuse it: the result is too long, the id of one of its jobs is taken. */
  readonly isDone?: boolean;
}

/** Throws what the codec throws. */
export function ofReturn(key: Key, job: Delivery, value: unknown): Settlement {
  const isPlain = !(value instanceof Done);
  if (isPlain && (value === undefined || value === null)) return { key, job };
  const options = isPlain ? { result: value } : value.options;
  return { key, job, command: commands.done(key, job.id, leaseOf(job), options), isDone: true };
}

export function ofError(key: Key, job: Delivery, error: unknown): Settlement {
  const lease = leaseOf(job);
  if (error instanceof Bury) {
    const command = commands.bury(key, job.id, lease, { reason: short(error.message) });
    return { key, job, command };
  }
  const isRetry = error instanceof Retry;
  const given = isRetry ? { delay: error.in, priority: error.priority } : {};
  const reason = short(isRetry ? error.message : told(error));
  return { key, job, command: commands.release(key, job.id, lease, { ...given, reason }) };
}

export function unbegun(key: Key, job: Delivery): Settlement {
  const command = commands.release(key, job.id, leaseOf(job), { unbegun: true });
  return { key, job, command };
}

/** Workers take jobs under a lease. */
export function leaseOf(job: Delivery): Lease {
  return job.lease as number;
}

function told(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message ? `${error.name}: ${error.message}` : error.name;
}

/** As much of it as the server takes. */
function short(reason: string): string | undefined {
  if (reason === "") return undefined;
  const data = Buffer.from(reason);
  if (data.length <= REASON_BYTES) return reason;
  // A character that is cut in two is left out.
  return new TextDecoder().decode(data.subarray(0, REASON_BYTES), { stream: true });
}
