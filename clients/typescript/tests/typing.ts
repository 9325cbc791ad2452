/** Checked by the compiler alone: what programs write, with the libraries' own types. */

import { Cluster, Redis } from "ioredis";
import { createClient, createCluster, RESP_TYPES } from "redis";
import {
  type Added,
  executed,
  type FinishedAndTaken,
  type Later,
  Queue,
  type RunningJob,
  Topic,
  Worker,
} from "../src/index.ts";

export async function clientsOfBothLibraries(): Promise<void> {
  const one = createClient();
  new Queue(one, "q");
  new Queue(await one.connect(), "q");
  new Queue(createClient({ RESP: 2 }), "q");
  const many = createCluster({ rootNodes: [] });
  new Topic(many, "t", 3);
  new Queue(new Redis(), "q");
  new Topic(new Cluster([]), "t", 3);
}

export async function pipelinesOfBothLibraries(queue: Queue): Promise<void> {
  const redis = createClient();
  const bytes = { [RESP_TYPES.BLOB_STRING]: Buffer };
  const multis = [
    redis.multi(),
    redis.withTypeMapping(bytes).multi(),
    createCluster({ rootNodes: [] }).multi("q"),
    new Redis().multi(),
    new Redis().pipeline(),
    new Cluster([]).pipeline(),
  ];
  const [pipeline] = multis;
  if (pipeline === undefined) return;
  const later: Later<Added> = queue.on(pipeline).add("a", 1);
  const added: Added = later.of(await executed(pipeline));
  queue.on(redis.multi().set("a", "1")).add("a", added.id);
}

export async function whatIsRefused(queue: Queue): Promise<void> {
  // @ts-expect-error no option of DQ.ADD
  await queue.add("a", 1, { dely: 3 });
  // @ts-expect-error a number is no time
  await queue.add("a", 1, { at: 3 });
  // @ts-expect-error schedules are added one by one
  await queue.addMany([{ body: 1 }], { every: 3 });
  // @ts-expect-error options are those of all jobs
  await queue.addMany([{ body: 1, delay: 3 }]);
  // @ts-expect-error null where the id is taken
  (await queue.addMany([{ body: 1 }], { nx: true }))[0].length;
  const both: FinishedAndTaken = await queue.finishAndPop(await queue.pop(), { count: 3 });
  // @ts-expect-error the jobs are a part of the reply
  both.length;
  // @ts-expect-error these jobs are taken as they come
  await queue.finishAndPop(both.jobs, { id: "a" });
  await queue.pop({ count: 9, min: 3, linger: { seconds: 5 } });
  // @ts-expect-error not a length of time
  await queue.finishAndPop(both.jobs, { min: 3, linger: "5s" });
  // @ts-expect-error no such state
  await queue.len("sleeping");
  // @ts-expect-error null when there is no such job
  (await queue.get("a")).due.getTime();
  new Worker<{ to: string }>(queue, async (job: RunningJob<{ to: string }>) => {
    // @ts-expect-error no such field of the body
    job.body.from;
    return job.body.to.length;
  });
}
