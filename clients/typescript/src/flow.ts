/**
 * Jobs that follow each other: `chain` and `group`, which nest. The server knows no flows: these
 * are jobs with AFTER, added in one transaction, so that no step is over before the next one is
 * there.
 */

import { randomUUID } from "node:crypto";
import type { Add, AddOptions } from "./commands/produce.ts";
import type { Id } from "./words.ts";

/** A job of a flow. */
export interface Step extends Add {
  readonly id: Id;
}

/** A job of a flow. Without an id it gets one here, since other steps name it. */
export function step(body: unknown, id: Id = randomUUID(), options: AddOptions = {}): Step {
  return { ...options, body, id };
}

export interface Flow {
  /** In the order in which they are added, each with those that it waits for. */
  readonly steps: readonly (readonly [Step, readonly Id[]])[];
  /** The ids of the steps that wait for no other one. */
  readonly first: readonly Id[];
  /** The ids of the steps that no other one waits for: their results are those of the flow. */
  readonly last: readonly Id[];
}

export function flowOf(part: Flow | Step): Flow {
  if ("steps" in part) return part;
  return { steps: [[part, []]], first: [part.id], last: [part.id] };
}

/** All of these at the same time. */
export function group(...parts: readonly (Flow | Step)[]): Flow {
  const flows = parts.map(flowOf);
  return {
    steps: flows.flatMap((flow) => flow.steps),
    first: flows.flatMap((flow) => flow.first),
    last: flows.flatMap((flow) => flow.last),
  };
}

/** One after the other. What follows a group waits for all of it. */
export function chain(one: Flow | Step, ...others: readonly (Flow | Step)[]): Flow {
  return others.reduce<Flow>((whole, part) => {
    const following = after(whole.last, part);
    return {
      steps: [...whole.steps, ...following.steps],
      first: whole.first,
      last: following.last,
    };
  }, flowOf(one));
}

/** A flow, or a job, that waits for these jobs of the queue. */
export function after(ids: readonly Id[], part: Flow | Step): Flow {
  const flow = flowOf(part);
  const steps = flow.steps.map(
    ([each, before]) =>
      [each, flow.first.includes(each.id) ? [...ids, ...before] : before] as const,
  );
  return { ...flow, steps };
}
