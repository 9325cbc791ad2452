/**
 * Headers that travel with a body, such as the context of a trace.
 *
 * A body with headers begins with `dq:1 `, the headers as one line of JSON, and a newline. A body
 * without headers stays as it is, unless it begins with `dq:1 ` by itself: then it gets empty ones.
 */

import { bytes } from "./words.ts";

export type Headers = Readonly<Record<string, string>>;

const MARK = Buffer.from("dq:1 ");
const NEWLINE = 10;
const NONE: Headers = Object.freeze({});

export function wrapped(body: Uint8Array, headers: Headers): Buffer {
  const data = bytes(body);
  if (Object.keys(headers).length === 0 && !isMarked(data)) return data;
  return Buffer.concat([MARK, Buffer.from(`${JSON.stringify(headers)}\n`), data]);
}

/** The body and its headers. What only looks like an envelope is a body. */
export function unwrapped(payload: Buffer): { body: Buffer; headers: Headers } {
  if (!isMarked(payload)) return { body: payload, headers: NONE };
  const end = payload.indexOf(NEWLINE);
  const headers = end < 0 ? undefined : parsed(payload.toString("utf8", MARK.length, end));
  return headers === undefined
    ? { body: payload, headers: NONE }
    : { body: payload.subarray(end + 1), headers };
}

function isMarked(data: Buffer): boolean {
  return data.length >= MARK.length && data.compare(MARK, 0, MARK.length, 0, MARK.length) === 0;
}

function parsed(line: string): Headers | undefined {
  try {
    const told: unknown = JSON.parse(line);
    if (typeof told !== "object" || told === null || Array.isArray(told)) return undefined;
    return Object.fromEntries(Object.entries(told).map(([name, value]) => [name, String(value)]));
  } catch {
    return undefined;
  }
}
