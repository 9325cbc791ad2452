/** The contract's values in JavaScript's types, and back. */

import { parted, refusal } from "../src/errors.ts";
import { type Add, type Added, Delivery, Dep, DQError, Outcome } from "../src/index.ts";
import { camel, EDGES, GROUP, INFO, JOB, SCHEDULE } from "../src/shown.ts";
import { sent } from "../src/words.ts";

export type Raw = Record<string, unknown>;

export function valueIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(valueIn);
  if (typeof value !== "object" || value === null) return value;
  const told = value as Raw;
  if ("ms" in told) return told.ms;
  if ("unix-ms" in told) return new Date(told["unix-ms"] as number);
  if ("base64" in told) return Buffer.from(told.base64 as string, "base64");
  return Object.fromEntries(Object.entries(told).map(([name, part]) => [name, valueIn(part)]));
}

/** The method of a command with these arguments. */
export function methodOf(command: string, told: Raw): string {
  if (command === "madd") return "addMany";
  if (told.finish === undefined) return command;
  return command === "pop" ? "finishAndPop" : "finishAndMpop";
}

/** What the method of a command takes. */
export function argumentsIn(command: string, told: Raw): unknown[] {
  const given = valueIn(told) as Raw;
  const taken = (name: string): unknown => {
    const value = given[name];
    delete given[name];
    return value;
  };
  switch (command) {
    case "add":
      return [taken("id") ?? "*", taken("body"), given];
    case "madd":
      return [taken("job"), given];
    case "pop":
      return given.finish === undefined ? [given] : [taken("finish"), given];
    case "mpop":
      return given.finish === undefined ? [given] : [claimsIn(taken("finish") as Raw), given];
    case "finish":
      return given.job as unknown[];
    case "del":
    case "kickjob":
      return given.id as unknown[];
    case "renew":
      return [given.ttr, given.block, given.job];
    case "done":
    case "release":
    case "touch":
    case "bury":
      return [taken("id"), taken("lease"), given];
    case "get":
    case "deps":
      return [taken("id"), given];
    case "cancel":
      return [given.id];
    case "result":
      return [given.id, given.block];
    case "len":
    case "length":
      return [given.state];
    case "scan":
    case "groups":
      return [taken("cursor"), given];
    case "forecast":
      return [taken("step"), taken("count"), given];
    case "purge":
      return [taken("state"), given];
    case "next":
      return [taken("expression"), given];
    default:
      return [given];
  }
}

/** Jobs of one of several queues. */
function claimsIn({ key, job }: Raw): unknown {
  return (job as Raw[]).map((each) => ({ ...each, key }));
}

export function addIn(told: Raw): Add {
  return valueIn(told) as unknown as Add;
}

export function payloadIn(value: unknown): Buffer {
  return Buffer.from(valueIn(value) as string);
}

export function valueOut(value: unknown): unknown {
  if (value instanceof Date) return value.getTime();
  if (value instanceof Uint8Array) return bytesOut(Buffer.from(value));
  if (Array.isArray(value)) return value.map(valueOut);
  return value ?? null;
}

function bytesOut(value: Buffer): unknown {
  const text = value.toString();
  return Buffer.from(text).equals(value) ? text : { base64: value.toString("base64") };
}

function idOut(id: string): unknown {
  return bytesOut(Buffer.from(sent(id)));
}

export function replyOut(command: string, reply: unknown): unknown {
  if (command === "madd") {
    return (reply as (string | null)[]).map((id) => (id === null ? null : idOut(id)));
  }
  if (Array.isArray(reply)) {
    const items = reply.map((each) => replyOut(command, each));
    if (command === "mpop") return mpopOut(reply, items);
    return command === "done" ? { added: items } : items;
  }
  if (reply === null || reply === undefined) return null;
  if (reply instanceof Delivery) {
    const { key, id, body, lease, attempt, due } = reply;
    return { key, id: idOut(id), body: valueOut(body), lease, attempt, due: valueOut(due) };
  }
  if (reply instanceof Outcome) return outcomeOut(reply);
  if (typeof reply !== "object" || reply instanceof Uint8Array || reply instanceof Date) {
    return valueOut(reply);
  }
  return objectOut(command, reply as Raw);
}

function mpopOut(reply: Delivery[], items: unknown[]): unknown {
  const [first] = reply;
  return first === undefined ? null : { key: first.key, jobs: items };
}

function outcomeOut(reply: Outcome): unknown {
  const what = valueOut(reply.isDone ? reply.value : reply.reason);
  const named = reply instanceof Dep ? { id: reply.id } : {};
  return { ...named, state: reply.state, what };
}

function objectOut(command: string, reply: Raw): unknown {
  if ("items" in reply) {
    const { items, ...place } = reply;
    return { ...place, items: (items as unknown[]).map((each) => replyOut(command, each)) };
  }
  if ("finished" in reply) {
    return { finished: reply.finished, taken: replyOut(command, reply.jobs) };
  }
  if ("payload" in reply) return jobOut(reply);
  if ("ready" in reply) return fieldsOut("jobs" in reply ? INFO : GROUP, reply);
  const { state, id } = reply as unknown as Added;
  return state === "added" ? { added: idOut(id) } : {};
}

function jobOut(job: Raw): unknown {
  const shown = fieldsOut(JOB, { ...job, body: job.payload, result: job.resultPayload });
  for (const name of ["group", "note", "result"]) if (shown[name] === null) delete shown[name];
  for (const [part, kinds] of [
    ["edges", EDGES],
    ["schedule", SCHEDULE],
  ] as const) {
    if (job[part] !== null) Object.assign(shown, fieldsOut(kinds, job[part] as Raw));
  }
  return shown;
}

function fieldsOut(kinds: object, reply: Raw): Raw {
  return Object.fromEntries(Object.keys(kinds).map((name) => [name, valueOut(reply[camel(name)])]));
}

export function errorOut(error: unknown): Raw {
  const typed = refusal(error) ?? (error as Error);
  if (typed instanceof DQError) {
    // As the server says it: the client's own error may name the job and its queue.
    const { cause } = typed;
    const message = cause instanceof Error ? parted(cause.message)[1] : typed.message;
    return { type: typed.name, code: typed.code, message };
  }
  const [code, message] = parted(typed.message);
  return { type: typed.name, code, message };
}
