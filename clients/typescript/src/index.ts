/** A client for DQ, a delay queue for Redis and Valkey. README.md begins with a start. */

export { type Codec, JSON_CODEC, RAW } from "./codec.ts";
export type { Command, Key, Lease, State, Tracing } from "./commands/base.ts";
export type {
  DoneOptions,
  Leased,
  PopOptions,
  ReleaseOptions,
  TouchOptions,
} from "./commands/consume.ts";
export type { NextOptions, PeekOptions, ScanOptions } from "./commands/look.ts";
export type { AlterOptions } from "./commands/manage.ts";
export type { Add, AddManyOptions, AddOptions, JobOptions, OneOfMany } from "./commands/produce.ts";
export { type Headers, unwrapped, wrapped } from "./envelope.ts";
export {
  DQError,
  Exists,
  Full,
  Invalid,
  LeaseLost,
  NoJob,
  NoModule,
  NotHeld,
  WrongType,
} from "./errors.ts";
export { after, chain, type Flow, flowOf, group, type Step, step } from "./flow.ts";
export { Pipelined, Queue, type QueueOptions } from "./queue.ts";
export {
  type Added,
  Delivery,
  Dep,
  type Deps,
  type Edges,
  type FinishedAndTaken,
  type Group,
  type Info,
  type Job,
  Outcome,
  type Page,
  type Schedule,
} from "./replies.ts";
export { type Client, executed, Later, type Pipeline } from "./seam.ts";
export { Topic } from "./topic.ts";
export type { Backoff, Cron, Duration, Id, Rate, Sink } from "./words.ts";
export type { OnError } from "./worker/failures.ts";
export type { Warn } from "./worker/net.ts";
export { Bury, Done, Retry } from "./worker/outcomes.ts";
export { RunningJob } from "./worker/running.ts";
export { type Served, Worker, type WorkerOptions } from "./worker/worker.ts";
