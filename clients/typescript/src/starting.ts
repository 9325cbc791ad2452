/** Adding a flow: all of its jobs, or none. */

import { randomUUID } from "node:crypto";
import type { Command, Key } from "./commands/base.ts";
import { commands } from "./commands/index.ts";
import type { Add } from "./commands/produce.ts";
import { Exists } from "./errors.ts";
import type { Flow } from "./flow.ts";
import type { Added } from "./replies.ts";
import { type Client, executed, type Later, put, transactionOf } from "./seam.ts";
import { type Id, sent, text } from "./words.ts";

/** So many ADDs one DQ.DONE takes. */
const MOST_OF_DONE = 1_000;
/** In one command, so that it doesn't hold the server up. */
const MOST_AT_ONCE = 1_000;

export async function started(client: Client, key: Key, { steps }: Flow): Promise<Added[]> {
  const adds = steps.map(([{ after = [], ...given }, before]): Add => {
    const named = [...after, ...before];
    return named.length > 0 ? { ...given, after: named } : given;
  });
  const twice = repeated(adds.map(({ id = "" }) => text(sent(id))));
  if (twice !== undefined) {
    throw new Exists(`two steps of the flow have the id ${JSON.stringify(twice)}`, "EXISTS");
  }
  if (adds.length === 0) return [];
  return adds.length <= MOST_OF_DONE ? inOneStep(client, key, adds) : onHold(client, key, adds);
}

function repeated(ids: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return ids.find((id) => seen.size === seen.add(id).size);
}

/** As what follows a job that is made for this alone: DQ.DONE adds all jobs or none. */
async function inOneStep(client: Client, key: Key, adds: readonly Add[]): Promise<Added[]> {
  const id = `flow:${randomUUID()}`;
  const pipeline = transactionOf(client, key.name);
  const carrier = put(
    pipeline,
    key.command("ADD", [id, ""], { hold: true }, () => {}),
  );
  const done = put(pipeline, commands.done(key, id, "*", { keep: 0, add: adds }));
  put(pipeline, commands.del(key, id));
  const replies = await executed(pipeline);
  carrier.of(replies);
  const added = done.of(replies);
  if (added === null) throw new Error(`the job ${id} was removed while it added the flow`);
  return added;
}

/** Each on hold, until all are there. When one is refused, the others are removed. */
async function onHold(client: Client, key: Key, adds: readonly Add[]): Promise<Added[]> {
  const pipeline = transactionOf(client, key.name);
  const later = adds.map(({ id = "*", body, ...given }) =>
    put(pipeline, commands.add(key, id, body, { ...given, hold: true })),
  );
  const replies = await executed(pipeline);
  const added: (Added | undefined)[] = [];
  let refused: unknown;
  for (const each of later) {
    try {
      added.push(each.of(replies));
    } catch (error) {
      refused ??= error;
      added.push(undefined);
    }
  }
  const isOurs = (at: number): boolean => added[at]?.state === "added";
  if (refused === undefined) {
    const held = adds.filter(({ hold }, at) => !hold && isOurs(at));
    await inParts(client, key, held, (ids) => commands.resume(key, { id: ids }));
    return added as Added[];
  }
  const ours = adds.filter((_, at) => isOurs(at));
  await inParts(client, key, ours, (ids) => commands.del(key, ...ids));
  throw refused;
}

async function inParts(
  client: Client,
  key: Key,
  adds: readonly Add[],
  command: (ids: Id[]) => Command<unknown>,
): Promise<void> {
  const pipeline = transactionOf(client, key.name);
  const ids = adds.map(({ id = "" }) => id);
  const later: Later<unknown>[] = [];
  for (let at = 0; at < ids.length; at += MOST_AT_ONCE) {
    later.push(put(pipeline, command(ids.slice(at, at + MOST_AT_ONCE))));
  }
  if (later.length === 0) return;
  const replies = await executed(pipeline);
  for (const each of later) each.of(replies);
}
