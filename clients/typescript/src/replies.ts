/** What comes back: each reply as a type. Lengths of time are in milliseconds, times are Dates. */

import type { Codec } from "./codec.ts";
import { type Headers, unwrapped } from "./envelope.ts";
import { EDGES, GROUP, INFO, JOB, SCHEDULE, type Shown, shown } from "./shown.ts";
import { blob, fields, moment, text } from "./words.ts";

/**
 * What came of an `add`. `taken`: with `nx`, the id is taken, and the job that has it stays as it
 * is. `over`: with `ensure`, the schedule has no run left.
 */
export interface Added {
  readonly state: "added" | "taken" | "over";
  readonly id: string;
}

/**
 * A job that was taken. Its body is decoded when it is asked for, so that one that can't be decoded
 * is the handler's failure, and not that of a whole batch.
 */
export class Delivery {
  readonly key: string;
  readonly id: string;
  /** null with `noack`. */
  readonly lease: number | null;
  readonly attempt: number;
  /** With `withdue`. */
  readonly due: Date | null;
  /** The bytes as they were added, without an envelope. */
  readonly payload: Buffer;
  readonly headers: Headers;
  /** Of the queue that it was taken by. */
  #codec: Codec;

  constructor(reply: readonly unknown[], key: string, codec: Codec) {
    const [id, body, lease, attempt, due] = reply;
    const { body: payload, headers } = unwrapped(blob(body));
    this.key = key;
    this.id = text(id);
    this.lease = lease === null ? null : Number(lease);
    this.attempt = Number(attempt);
    this.due = due === undefined ? null : moment(due);
    this.payload = payload;
    this.headers = headers;
    this.#codec = codec;
  }

  get body(): unknown {
    return this.#codec.decode(this.payload);
  }

  /** With the codec of its own queue, where several were asked. */
  withCodec(codec: Codec): this {
    this.#codec = codec;
    return this;
  }
}

/** The reply of a POP that finished jobs first. */
export interface FinishedAndTaken {
  /** How many of the leases were valid. */
  readonly finished: number;
  readonly jobs: Delivery[];
}

export type Edges = Shown<typeof EDGES>;
export type Schedule = Shown<typeof SCHEDULE>;
export type Group = Shown<typeof GROUP>;
/** A queue's settings, counts, totals and lateness. */
export type Info = Shown<typeof INFO>;

/** All that there is to a job: GET and PEEK. */
export interface Job extends Omit<Shown<typeof JOB>, "body" | "result"> {
  /** The bytes as they were added, with an envelope if there is one. */
  readonly payload: Buffer;
  readonly resultPayload: Buffer | null;
  /** Of a job that waits for others, or that others wait for. */
  readonly edges: Edges | null;
  /** Of a job that comes back. */
  readonly schedule: Schedule | null;
  /** Decoded when it is asked for. */
  readonly body: unknown;
  /** undefined when it has none. */
  readonly result: unknown;
}

export function job(reply: unknown, codec: Codec): Job {
  const told = fields(reply);
  const { body: payload, result: resultPayload, ...plain } = shown(JOB, told);
  return {
    ...plain,
    payload,
    resultPayload,
    edges: told.has("pending") ? shown(EDGES, told) : null,
    schedule: told.has("misfire") ? shown(SCHEDULE, told) : null,
    get body() {
      return codec.decode(unwrapped(payload).body);
    },
    get result() {
      return resultPayload === null ? undefined : codec.decode(resultPayload);
    },
  };
}

export function info(reply: unknown): Info {
  return shown(INFO, fields(reply));
}

export function group(reply: unknown): Group {
  return shown(GROUP, fields(reply));
}

/** What came of a job: RESULT. */
export class Outcome {
  readonly state: string;
  readonly payload: Buffer | null;
  readonly #codec: Codec;

  constructor(state: unknown, what: unknown, codec: Codec) {
    this.state = text(state);
    this.payload = what === null ? null : blob(what);
    this.#codec = codec;
  }

  get isDone(): boolean {
    return this.state === "done";
  }

  get isDead(): boolean {
    return this.state === "dead";
  }

  /** The result of a done job; undefined when it was finished without one. */
  get value(): unknown {
    return this.isDone && this.payload !== null ? this.#codec.decode(this.payload) : undefined;
  }

  /** Of a dead job. */
  get reason(): string | null {
    return this.isDead && this.payload !== null ? this.payload.toString() : null;
  }
}

/** A job that another one waits for, or has waited for. One that was removed is `gone`. */
export class Dep extends Outcome {
  readonly id: string;

  constructor(id: unknown, state: unknown, what: unknown, codec: Codec) {
    super(state, what, codec);
    this.id = text(id);
  }
}

/** Some of them, and where to go on: null when there are no more. */
export interface Deps {
  readonly next: number | null;
  readonly items: readonly Dep[];
}

/** A part of a scan. The scan goes on at the cursor, and is over when that is 0. */
export interface Page<Item> {
  readonly cursor: number;
  readonly items: readonly Item[];
}
