/** JavaScript's values as words of a command, and the words of a reply as JavaScript's values. */

import { isUtf8 } from "node:buffer";
import { inspect } from "node:util";

export type Word = string | Buffer;

/**
 * A length of time: milliseconds, as `setTimeout` takes them, or its parts, such as
 * `{ minutes: 30 }`. What isn't a whole number of milliseconds is rounded up.
 */
export type Duration =
  | number
  | {
      readonly days?: number;
      readonly hours?: number;
      readonly minutes?: number;
      readonly seconds?: number;
      readonly milliseconds?: number;
    };

/**
 * An id, or a name. In replies it is text; each byte that isn't UTF-8 is there as half a surrogate
 * pair, U+DC80 to U+DCFF, and is sent as that byte again.
 */
export type Id = string | Uint8Array;

/** How long a job waits after a failed attempt: `base`, doubled each time, up to `max`. */
export interface Backoff {
  readonly base: Duration;
  readonly max: Duration;
}

/** At most `n` jobs in `per`, up to `burst` of them at once. */
export interface Rate {
  readonly n: number;
  readonly per: Duration;
  readonly burst?: number | undefined;
}

/** The times of a cron expression, in a time zone: UTC without one. */
export interface Cron {
  readonly expression: string;
  readonly tz?: string | undefined;
}

/** A stream to which jobs are added when they are due, trimmed to about `maxlen` entries. */
export interface Sink {
  readonly stream: string;
  readonly maxlen?: number | undefined;
}

type Value = Id | number | Date | Duration | Backoff | Rate | Cron | Sink | boolean;
type List = readonly Id[] | readonly Duration[] | readonly Date[];
export type Options = Readonly<Record<string, Value | List | undefined>>;

// ---- to the server -------------------------------------------------------------------------------

const UNITS = {
  days: 86_400_000,
  hours: 3_600_000,
  minutes: 60_000,
  seconds: 1_000,
  milliseconds: 1,
} as const;

/**
 * In whole milliseconds, rounded up: a job is never early. Throws a TypeError or RangeError for
 * what is no finite length of time.
 */
export function ms(duration: Duration): number {
  const length = span(duration);
  if (Number.isFinite(length)) return length;
  throw new RangeError(`a length of time is a finite number of milliseconds, not ${length}`);
}

/** The same, and without an end too: Infinity. */
export function span(duration: Duration): number {
  const length = typeof duration === "number" ? duration : inMilliseconds(duration);
  if (Number.isNaN(length)) throw new RangeError("a length of time is a number, not NaN");
  return Math.ceil(length);
}

function inMilliseconds(parts: unknown): number {
  if (typeof parts !== "object" || parts === null || parts instanceof Date) {
    throw new TypeError(
      `a length of time is milliseconds or parts such as { minutes: 30 }, not ${inspect(parts)}`,
    );
  }
  let length = 0;
  const given = Object.entries(parts).filter(([, count]) => count !== undefined);
  for (const [unit, count] of given) {
    if (!Object.hasOwn(UNITS, unit) || typeof count !== "number") {
      const units = Object.keys(UNITS).join(", ");
      throw new TypeError(`no part of a length of time: ${unit}: ${inspect(count)} (${units})`);
    }
    length += count * UNITS[unit as keyof typeof UNITS];
  }
  if (given.length > 0) return length;
  throw new TypeError("a length of time without any part");
}

// Options whose numbers are milliseconds.
const DURATIONS = new Set(
  "delay ttr ttl keep late every jitter block for linger older step deadkeep spread".split(" "),
);

const NUMBERS = new Set(
  "attempts burst concurrency count from groupconcurrency maxjobs maxlen min priority runs".split(
    " ",
  ),
);
// Options without a value.
const FLAGS = new Set("ensure hold noack nosink nx replace scheduled unbegun withdue".split(" "));
// Options whose values have parts.
const PARTS = new Set(["backoff", "rate", "grouprate"]);

/** `{ delay: 1000, nx: true }` as `DELAY 1000 NX`. What is undefined or false is left out. */
export function options(given: Options): Word[] {
  const found: Word[] = [];
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === false) continue;
    found.push(name.toUpperCase(), ...wordsOf(name, value));
  }
  return found;
}

function wordsOf(name: string, value: Exclude<Options[string], false | undefined>): Word[] {
  try {
    if (FLAGS.has(name)) return flag(value);
    if (DURATIONS.has(name)) return [String(ms(value as Duration))];
    if (name === "delays") return each(value, "lengths of time", ms);
    if (name === "ats") return each(value, "times", time);
    if (name === "at" || name === "until" || value instanceof Date) return [String(time(value))];
    if (PARTS.has(name)) return wordsOfParts(value);
    if (NUMBERS.has(name)) return [String(numeric(value))];
    if (Array.isArray(value)) return [String(value.length), ...value.map(sent)];
    if (typeof value !== "object" || value instanceof Uint8Array) return [sent(value as Id)];
    return wordsOfParts(value);
  } catch (error) {
    (error as Error).message = `${name}: ${(error as Error).message}`;
    throw error;
  }
}

function flag(value: unknown): Word[] {
  if (value === true) return [];
  throw new TypeError(`true or false, not ${inspect(value)}`);
}

function time(value: unknown): number {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value.getTime();
  throw new TypeError(`a time is a Date, not ${inspect(value)}`);
}

/** A word for each, without their number. */
function each(value: unknown, what: string, word: (one: Duration) => number): Word[] {
  if (Array.isArray(value)) return value.map((one) => String(word(one)));
  throw new TypeError(`a list of ${what}, not ${inspect(value)}`);
}

function numeric(value: unknown): number {
  if (typeof value === "number") return value;
  throw new TypeError(`a number, not ${inspect(value)}`);
}

function wordsOfParts(value: unknown): Word[] {
  if (value !== null && typeof value === "object") {
    const { base, max, n, per, burst, expression, tz, stream, maxlen } = value as Partial<
      Backoff & Rate & Cron & Sink
    >;
    if (base !== undefined && max !== undefined) return [String(ms(base)), String(ms(max))];
    if (n !== undefined && per !== undefined) {
      return [String(n), String(ms(per)), ...options({ burst })];
    }
    if (expression !== undefined) return [sent(expression), ...options({ tz })];
    if (stream !== undefined) return [sent(stream), ...options({ maxlen })];
  }
  throw new TypeError(`not ${inspect(value)}`);
}

/** Half of a surrogate pair. */
const LONE = /\p{Surrogate}/u;
/** A byte that isn't UTF-8, as `text` has it. */
const RAW_BYTES = /([\udc80-\udcff]+)/u;

/** Throws a TypeError for what is no text or bytes, and for text that UTF-8 can't say. */
export function sent(text: Id): Word {
  if (text instanceof Uint8Array) return bytes(text);
  if (typeof text !== "string") {
    throw new TypeError(`an id or a name is text or bytes, not ${inspect(text)}`);
  }
  // Node 20 has it, the types of ES2023 don't.
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed() ? text : unescaped(text);
}

function unescaped(text: string): Buffer {
  const parts = text.split(RAW_BYTES).map((part, at) => {
    if (at % 2 === 1) return Buffer.from([...part].map((half) => half.charCodeAt(0) & 0xff));
    if (LONE.test(part)) throw new TypeError("half of a surrogate pair is no text");
    return Buffer.from(part);
  });
  return Buffer.concat(parts);
}

export function listed(ids: Id | readonly Id[]): Word[] {
  return typeof ids === "string" || ids instanceof Uint8Array ? [sent(ids)] : ids.map(sent);
}

/** The same bytes, without a copy. */
export function bytes(data: Uint8Array): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

// ---- from the server -----------------------------------------------------------------------------

export function text(word: unknown): string {
  if (!(word instanceof Uint8Array)) return String(word);
  const data = bytes(word);
  const read = data.toString();
  return read.includes("\ufffd") && !isUtf8(data) ? escaped(data) : read;
}

/** Each byte that isn't UTF-8 becomes half of a surrogate pair, as `surrogateescape` in Python. */
function escaped(data: Buffer): string {
  let found = "";
  for (let at = 0; at < data.length; ) {
    const length = [1, 2, 3, 4].find((count) => isUtf8(data.subarray(at, at + count)));
    found += length
      ? data.toString("utf8", at, at + length)
      : String.fromCharCode(0xdc00 + (data[at] ?? 0));
    at += length ?? 1;
  }
  return found;
}

/** A pipeline whose client decodes replies gives text. */
export function blob(word: unknown): Buffer {
  return word instanceof Uint8Array ? bytes(word) : Buffer.from(String(word));
}

const LAST_TIME = 8.64e15;

/** The last times that the server knows are after the last Date: they are that one. */
export function moment(word: unknown): Date {
  return new Date(Math.min(Number(word), LAST_TIME));
}

/** A map: an object, a Map, or names and values in turn. */
export function fields(reply: unknown): Map<string, unknown> {
  if (reply instanceof Map) return new Map([...reply].map(([name, value]) => [text(name), value]));
  if (!Array.isArray(reply)) return new Map(Object.entries(reply as object));
  const found = new Map<string, unknown>();
  for (let at = 0; at < reply.length; at += 2) found.set(text(reply[at]), reply[at + 1]);
  return found;
}
