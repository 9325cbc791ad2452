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
import type { Command, Key } from "./base.ts";

/** The options of DQ.ADD. */
export interface AddOptions {
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
  readonly every?: Duration | undefined;
  readonly cron?: Cron | string | undefined;
  readonly misfire?: "ONE" | "ALL" | undefined;
  readonly jitter?: Duration | undefined;
  readonly runs?: number | undefined;
  readonly until?: Date | undefined;
  readonly nx?: boolean | undefined;
  readonly replace?: boolean | undefined;
  readonly ensure?: boolean | undefined;
}

/** A job that is to be added by another command: by `done`, or as a step of a flow. */
export interface Add extends AddOptions {
  readonly body: unknown;
  /** The server makes one when there is none. */
  readonly id?: Id | undefined;
}

export function addWords(key: Key, { id = "*", body, ...given }: Add): Word[] {
  for (const name of ["after", "before"] as const) {
    const ids = given[name];
    if (ids === undefined || Array.isArray(ids)) continue;
    throw new TypeError(`${name}: a list of ids, not ${inspect(ids)}`);
  }
  return [sent(id), key.payload(body), ...options({ ...given })];
}

/** Adds a job, to be delivered when it is due. `"*"` lets the server make the id. */
export function add(key: Key, id: Id, body: unknown, given: AddOptions = {}): Command<Added> {
  const command = key.command("ADD", addWords(key, { ...given, id, body }), {}, (reply): Added => {
    if (reply !== null) return { state: "added", id: text(reply) };
    return { state: given.ensure ? "over" : "taken", id: text(sent(id)) };
  });
  return { ...command, adds: [id] };
}
