/** One line for each attempt that failed: which job, the error, and what comes next. */

import type { Key } from "../commands/base.ts";
import { commands } from "../commands/index.ts";
import type { Delivery, Job } from "../replies.ts";
import { Gate } from "./gate.ts";
import type { Line } from "./line.ts";
import type { Net } from "./net.ts";
import { Bury, Retry, type Settlement } from "./outcomes.ts";
import type { RunningJob } from "./running.ts";

/** Called with a job, what its handler threw, and what comes next, in words. */
export type OnError = (job: RunningJob<never>, error: unknown, next: string) => unknown;

export class Failures {
  /** Open while each failure is in the log. */
  readonly idle = new Gate(true);
  readonly #line: Line;
  readonly #net: Net;
  readonly #onError: OnError | undefined;
  readonly #logged = new WeakSet<Delivery>();
  #asking = 0;

  constructor(line: Line, net: Net, onError: OnError | undefined) {
    this.#line = line;
    this.#net = net;
    this.#onError = onError;
  }

  /** The server can't be told now. */
  waits(settlement: Settlement): void {
    if (this.#isNew(settlement)) this.#log(settlement, null, "the server can't be told now");
  }

  /** The server has been told: how the job stands is asked for. */
  async told(settlement: Settlement): Promise<void> {
    if (!this.#isNew(settlement)) return;
    const { key, job } = settlement;
    this.#asking += 1;
    this.idle.close();
    try {
      const found = await this.#line.call(commands.get(key, job.id));
      this.#log(settlement, found, nextOf(found, job));
    } catch {
      this.#log(settlement, null, "what comes next isn't known");
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.idle.open();
    }
  }

  #isNew({ failure, job }: Settlement): boolean {
    if (failure === undefined || this.#logged.has(job)) return false;
    this.#logged.add(job);
    return true;
  }

  #log({ key, job, hand, failure }: Settlement, found: Job | null, next: string): void {
    const error = failure?.error;
    const what = `${headOf(key, job, found)}, ${next}`;
    if (isWord(error)) this.#net.warn(what, error);
    else this.#net.traced(what, error);
    if (this.#onError === undefined || hand === undefined) return;
    const failed = (why: unknown) => this.#net.traced("onError failed", why);
    try {
      Promise.resolve(this.#onError(hand.job, error, next)).catch(failed);
    } catch (why) {
      failed(why);
    }
  }
}

/** A handler's own word for what comes next: its stack tells nothing. */
function isWord(error: unknown): boolean {
  try {
    return error instanceof Retry || error instanceof Bury;
  } catch {
    return false;
  }
}

function headOf(key: Key, { id, attempt }: Delivery, found: Job | null): string {
  const limit = found?.attempts ? ` of ${found.attempts}` : "";
  return `${key.name}: job ${JSON.stringify(id)} failed, attempt ${attempt}${limit}`;
}

function nextOf(found: Job | null, { lease, attempt }: Delivery): string {
  if (found === null) return "and is gone";
  if (found.state === "dead") return "and is dead";
  if (found.state === "delayed") return `again in ${lengthOf(found.due)}`;
  if (found.state === "ready" || found.attempt > attempt) return "again at once";
  return found.lease === lease ? "again when its lease is over" : `and is ${found.state}`;
}

function lengthOf(due: Date | null): string {
  const seconds = Math.max((due?.getTime() ?? 0) - Date.now(), 0) / 1_000;
  return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}
