/** The fields of what the server shows, and their types in JavaScript. */

import { blob, moment, text } from "./words.ts";

const READERS = {
  text,
  bytes: blob,
  integer: Number,
  boolean: (word: unknown) => Number(word) !== 0,
  time: moment,
};

type Kind = keyof typeof READERS;
type Fields = Readonly<Record<string, Kind | `${Kind}?`>>;
type Camel<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;
type Value<K> = K extends `${infer Plain extends Kind}?`
  ? ReturnType<(typeof READERS)[Plain]> | null
  : K extends Kind
    ? ReturnType<(typeof READERS)[K]>
    : never;
/** `kept-until` is `keptUntil`. */
export type Shown<F extends Fields> = {
  readonly [Name in keyof F & string as Camel<Name>]: Value<F[Name]>;
};

export const JOB = {
  id: "text",
  body: "bytes",
  state: "text",
  due: "time?",
  deadline: "time?",
  priority: "integer",
  ttr: "integer",
  attempts: "integer",
  attempt: "integer",
  "attempts-left": "integer?",
  lease: "integer?",
  created: "time",
  since: "time?",
  "backoff-base": "integer",
  "backoff-max": "integer",
  ttl: "integer",
  expires: "time?",
  keep: "integer",
  late: "integer",
  "kept-until": "time?",
  reason: "text?",
  "timed-out": "integer",
  released: "integer",
  buried: "integer",
  kicked: "integer",
  group: "text?",
  note: "text?",
  result: "bytes?",
} as const;

export const EDGES = {
  pending: "integer",
  after: "integer",
  before: "integer",
  "on-hold": "boolean",
} as const;

export const SCHEDULE = {
  every: "integer?",
  cron: "text?",
  tz: "text?",
  misfire: "text",
  jitter: "integer",
  runs: "integer",
  until: "time?",
  occurrence: "time",
  next: "time?",
  "runs-begun": "integer",
  "failed-runs": "integer",
  missed: "integer",
} as const;

export const GROUP = {
  group: "text",
  ready: "integer",
  reserved: "integer",
  delayed: "integer",
  paused: "boolean",
  "paused-until": "time?",
  "blocked-until": "time?",
} as const;

export const INFO = {
  "default-ttr": "integer",
  "default-attempts": "integer",
  "default-backoff-base": "integer",
  "default-backoff-max": "integer",
  "default-keep": "integer",
  "default-late": "integer",
  "max-jobs": "integer",
  "dead-keep": "integer",
  concurrency: "integer",
  rate: "integer",
  "rate-per-ms": "integer",
  "rate-burst": "integer",
  "group-concurrency": "integer",
  "group-rate": "integer",
  "group-rate-per-ms": "integer",
  "group-rate-burst": "integer",
  paused: "boolean",
  "paused-until": "time?",
  "rate-left": "integer?",
  "blocked-until": "time?",
  jobs: "integer",
  delayed: "integer",
  ready: "integer",
  reserved: "integer",
  dead: "integer",
  done: "integer",
  held: "integer",
  "held-behind-dead": "integer",
  groups: "integer",
  "waiting-consumers": "integer",
  "oldest-ready-ms": "integer?",
  "next-due": "time?",
  "last-lease": "integer?",
  memory: "integer",
  "total-added": "integer",
  "total-replaced": "integer",
  "total-popped": "integer",
  "total-finished": "integer",
  "total-released": "integer",
  "total-timed-out": "integer",
  "total-buried": "integer",
  "total-dead": "integer",
  "total-kicked": "integer",
  "total-deleted": "integer",
  "total-purged": "integer",
  "lateness-p50-ms": "integer?",
  "lateness-p90-ms": "integer?",
  "lateness-p99-ms": "integer?",
  "lateness-p999-ms": "integer?",
  "lateness-max-ms": "integer?",
  schedules: "integer",
  "total-missed": "integer",
  "lateness-within-1-ms": "integer",
  "lateness-within-10-ms": "integer",
  "lateness-within-100-ms": "integer",
  "lateness-within-1000-ms": "integer",
  "lateness-within-10000-ms": "integer",
  "lateness-within-60000-ms": "integer",
  "lateness-within-600000-ms": "integer",
  "lateness-within-3600000-ms": "integer",
  "lateness-count": "integer",
  "lateness-sum-ms": "integer",
  watchers: "integer",
  sink: "text?",
  "sink-maxlen": "integer?",
  "sink-error": "text?",
} as const;

export function camel(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** What a newer server tells besides is left out. What an older one doesn't tell is null. */
export function shown<F extends Fields>(kinds: F, told: ReadonlyMap<string, unknown>): Shown<F> {
  const read = Object.entries(kinds).map(([name, kind]) => {
    const word = told.get(name) ?? null;
    const plain = kind.replace("?", "") as Kind;
    return [camel(name), word === null ? null : READERS[plain](word)];
  });
  return Object.fromEntries(read) as Shown<F>;
}
