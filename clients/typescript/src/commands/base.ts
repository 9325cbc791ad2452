/** What every command is made of: a queue's key, words, and how the reply is read. */

import { type Codec, JSON_CODEC } from "../codec.ts";
import { type Headers, wrapped } from "../envelope.ts";
import { Delivery } from "../replies.ts";
import { type Duration, type Id, type Options, options, sent, type Word } from "../words.ts";

/** A lease, or `"*"` for the latest one of the job. */
export type Lease = number | "*";
export type State = "delayed" | "ready" | "reserved" | "dead" | "done" | "held";

/** Headers for a job, and a span around its handler. `dq-client/tracing` has one. */
export interface Tracing {
  headers(queue: string): Headers;
  processing<T>(job: Delivery, work: () => Promise<T>): Promise<T>;
}

export interface Command<T> {
  readonly words: readonly Word[];
  /** By which a cluster finds the server. */
  readonly key: string | undefined;
  /** Of the jobs that it adds, for the text of an error. */
  readonly adds?: readonly Id[] | undefined;
  parse(reply: unknown): T;
}

/** A queue's key, and how its bodies are written. */
export class Key {
  readonly name: string;
  readonly codec: Codec;
  readonly tracing: Tracing | undefined;

  constructor(name: string, codec: Codec = JSON_CODEC, tracing?: Tracing) {
    if (typeof name !== "string" || Buffer.isBuffer(sent(name))) {
      throw new TypeError("the name of a queue is text that UTF-8 can say");
    }
    this.name = name;
    this.codec = codec;
    this.tracing = tracing;
  }

  payload(body: unknown): Buffer {
    return wrapped(this.codec.encode(body), this.tracing?.headers(this.name) ?? {});
  }

  /** The bytes of an option that may be left out. */
  body(given: { readonly body?: unknown }): Buffer | undefined {
    return given.body === undefined ? undefined : this.payload(given.body);
  }

  command<T>(
    name: string,
    words: readonly Word[],
    given: Options,
    parse: (reply: unknown) => T,
  ): Command<T> {
    const all = [`DQ.${name}`, this.name, ...words, ...options(given)];
    return { words: all, key: this.name, parse };
  }

  deliveries(reply: unknown): Delivery[] {
    const jobs = (reply ?? []) as readonly (readonly unknown[])[];
    return jobs.map((each) => new Delivery(each, this.name, this.codec));
  }
}

export const integer = (reply: unknown): number => Number(reply);
export const isTrue = (reply: unknown): boolean => Number(reply) !== 0;
export const nothing = (): void => {};
export const items = (reply: unknown): readonly unknown[] => reply as readonly unknown[];

export interface Wait {
  /** How long to wait; 0 is without limit. The connection can do nothing else meanwhile. */
  readonly block?: Duration | undefined;
}
