/** Handlers that do what the body of their job says: clients/contract/README.md lists the steps. */

import { Bury, Done, type DoneOptions, LeaseLost, Retry, type RunningJob } from "../src/index.ts";
import { addIn, type Raw } from "./values.ts";

type Step = [verb: string, ...given: never[]];
type Job = RunningJob<Step[]>;

export class Scripts {
  readonly #tell: (line: Raw) => void;
  readonly #gone = new Set<string>();
  readonly #waiting = new Map<() => void, string>();

  constructor(tell: (line: Raw) => void) {
    this.#tell = tell;
  }

  go(name: string): void {
    this.#gone.add(name);
    for (const [goOn, wanted] of this.#waiting) if (wanted === name) goOn();
  }

  readonly before = (job: Job): void => this.#tell({ event: "before", id: job.id });

  readonly after = (job: Job, error: unknown): void =>
    this.#tell({ event: "after", id: job.id, failed: error !== undefined });

  readonly play = async (job: Job): Promise<unknown> => {
    const steps = job.body;
    const { id, attempt, queue } = job;
    this.#tell({ event: "begun", id, attempt, queue });
    try {
      for (const [verb, ...given] of steps) {
        if (verb === "wait") await this.#goes(given[0] as unknown as string, job.signal);
        else if (verb === "checkpoint") await this.#checkpoint(job, given);
        else return await this.#last(job, verb, given);
      }
    } catch (error) {
      if (error instanceof LeaseLost) this.#ended(job, "cancelled");
      throw error;
    }
    this.#ended(job, "returned");
    return undefined;
  };

  #goes(name: string, signal: AbortSignal): Promise<void> {
    return new Promise((done, fail) => {
      const end = () => {
        this.#waiting.delete(goOn);
        signal.removeEventListener("abort", lost);
      };
      const goOn = () => {
        end();
        done();
      };
      const lost = () => {
        end();
        fail(signal.reason);
      };
      this.#waiting.set(goOn, name);
      signal.addEventListener("abort", lost);
      if (signal.aborted) lost();
      else if (this.#gone.has(name)) goOn();
    });
  }

  async #checkpoint(job: Job, [body, note]: never[]): Promise<void> {
    await job.checkpoint(body, { note });
    this.#tell({ event: "noted", id: job.id });
  }

  /** The step that ends a script. */
  async #last(job: Job, verb: string, given: never[]): Promise<unknown> {
    const [first, second] = given as unknown[];
    this.#ended(job, ["return", "repeat", "done", "deps"].includes(verb) ? "returned" : "raised");
    switch (verb) {
      case "return":
        return first;
      case "repeat":
        return (first as string).repeat(second as number);
      case "deps":
        return (await job.deps()).map((dep) => [dep.id, dep.value]);
      case "done":
        return new Done(doneIn(first as Raw));
      case "raise":
        throw new Error(first as string);
      case "retry":
        throw new Retry(second as string, { in: first as number });
      case "bury":
        throw new Bury(first as string);
      default:
        throw new Error(`no such step: ${verb}`);
    }
  }

  #ended(job: Job, how: string): void {
    this.#tell({ event: "ended", id: job.id, how });
  }
}

function doneIn({ add, ...told }: Raw): DoneOptions {
  return { ...told, add: ((add ?? []) as Raw[]).map(addIn) };
}
