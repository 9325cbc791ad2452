/** What the server refuses, as types. Errors of the connection stay those of the client library. */

import { inspect } from "node:util";

/** The server refused a command, and nothing has changed. */
export class DQError extends Error {
  /** The first word of the server's error, such as EXISTS. */
  readonly code: string;

  constructor(message: string, code = "ERR", options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** The id is taken in this queue. */
export class Exists extends DQError {}
/** The queue holds as many jobs as its MAXJOBS allows. */
export class Full extends DQError {}
/** A job that another one is to wait for isn't in the queue. */
export class NoJob extends DQError {}
/** A job that is to wait for another one isn't held any more. */
export class NotHeld extends DQError {}
/** The key holds something else than a queue. */
export class WrongType extends DQError {}
/** The command isn't well formed: a value out of its range, options that exclude each other. */
export class Invalid extends DQError {}
/** The server has no module DQ, or an older one without this command. */
export class NoModule extends DQError {}

/** The job was deleted, replaced or finished by others, or another worker has it. */
export class LeaseLost extends Error {
  override name = "LeaseLost";
}

const BY_CODE: Readonly<Record<string, typeof DQError>> = {
  EXISTS: Exists,
  FULL: Full,
  NOJOB: NoJob,
  NOTHELD: NotHeld,
  WRONGTYPE: WrongType,
  ERR: Invalid,
};
// What a person has to put right.
const MISTAKES = new Set(["NOAUTH", "NOPERM", "WRONGPASS", "CROSSSLOT"]);

/** What a command is about, for the text of its errors. */
export interface Subject {
  readonly queue: string;
  /** Of the jobs that it adds. */
  readonly ids: readonly string[];
}

/** The typed error for one of node-redis or ioredis; undefined when it isn't about the command. */
export function refusal(error: unknown, subject?: Subject): DQError | undefined {
  if (error instanceof DQError) return error;
  if (!isReply(error)) return undefined;
  const [code, message] = parted(error.message);
  if (code === "ERR" && message.startsWith("max number of clients")) return undefined;
  if (code === "ERR" && message.startsWith("unknown command")) {
    const whole = `the server has no module DQ, or an older one without this command: ${message}`;
    return new NoModule(whole, code, { cause: error });
  }
  const kind = BY_CODE[code];
  const about = subject && kind === Exists ? taken(subject, message) : "";
  return kind && new kind(message + about, code, { cause: error });
}

/** Of the jobs of an `addMany` the server names the place, from 1. */
function taken({ queue, ids: all }: Subject, message: string): string {
  const place = /^job (\d+): /.exec(message)?.[1];
  const ids = place === undefined ? all : all.slice(Number(place) - 1, Number(place));
  const named = ids.slice(0, 10).map((id) => JSON.stringify(id));
  if (named.length < ids.length) named.push("…");
  const one = ids.length > 1 ? "one of " : "";
  return `: ${one}${named.join(", ")} in ${JSON.stringify(queue)}`;
}

/** Whether the server won't ever take this command: its words are wrong, or not allowed. */
export function isRefused(error: unknown): boolean {
  if (refusal(error) !== undefined) return true;
  return isReply(error) && parted(error.message)[0] === "NOPERM";
}

/** An error as text, whatever it is: `name: message`. Throws what the error's own text throws. */
export function textOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === "string" ? error : inspect(error);
  const { name, message } = error;
  return message ? `${name}: ${message}` : `${name}`;
}

/** The same, for a line of the log: it never throws. */
export function said(error: unknown, of: (error: unknown) => string = textOf): string {
  try {
    return of(error);
  } catch {
    return "an error without text";
  }
}

/**
 * Whether the server may take the same command later: it is restarting, failing over, loading, out
 * of memory or out of reach.
 */
export function passes(error: unknown): boolean {
  if (refusal(error) !== undefined) return false;
  return !isReply(error) || !MISTAKES.has(parted(error.message)[0]);
}

/** The first word, and the rest. */
export function parted(message: string): [string, string] {
  const [code = ""] = message.split(" ", 1);
  return [code, message.slice(code.length + 1)];
}

/** By name, so that neither library has to be installed. */
function isReply(error: unknown): error is Error {
  for (let kind = error; kind instanceof Object; kind = Object.getPrototypeOf(kind)) {
    const { name } = kind.constructor;
    if (name === "ErrorReply" || name === "ReplyError") return true;
  }
  return false;
}
