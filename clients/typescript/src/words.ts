/** JavaScript's values as words of a command, and the words of a reply as JavaScript's values. */

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

/** An id, or a name. In replies it is text. */
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
export type Options = Readonly<Record<string, Value | readonly Id[] | undefined>>;

// ---- to the server -------------------------------------------------------------------------------

/** In whole milliseconds, rounded up: a job is never early. */
export function ms(duration: Duration): number {
  if (typeof duration === "number") return Math.ceil(duration);
  const { days = 0, hours = 0, minutes = 0, seconds = 0, milliseconds = 0 } = duration;
  return Math.ceil((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds);
}

// Options whose numbers are milliseconds.
const DURATIONS = new Set(
  "delay ttr ttl keep late every jitter block for older step deadkeep".split(" "),
);

/** `{ delay: 1000, nx: true }` as `DELAY 1000 NX`. What is undefined or false is left out. */
export function options(given: Options): Word[] {
  const found: Word[] = [];
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === false) continue;
    found.push(name.toUpperCase());
    if (value !== true) found.push(...wordsOf(name, value));
  }
  return found;
}

function wordsOf(name: string, value: Exclude<Options[string], boolean | undefined>): Word[] {
  if (typeof value === "number") return [String(DURATIONS.has(name) ? ms(value) : value)];
  if (typeof value === "string" || value instanceof Uint8Array) return [sent(value)];
  if (Array.isArray(value)) return [String(value.length), ...value.map(sent)];
  if (value instanceof Date) return [String(value.getTime())];
  if ("base" in value) return [String(ms(value.base)), String(ms(value.max))];
  if ("per" in value) {
    return [String(value.n), String(ms(value.per)), ...options({ burst: value.burst })];
  }
  if ("expression" in value) return [value.expression, ...options({ tz: value.tz })];
  if ("stream" in value) return [value.stream, ...options({ maxlen: value.maxlen })];
  return [String(ms(value as Duration))];
}

export function sent(text: Id): Word {
  return typeof text === "string" ? text : bytes(text);
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
  return String(word);
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
