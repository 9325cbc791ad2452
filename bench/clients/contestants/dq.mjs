// DQ's TypeScript client, on node-redis.
//
// node dq.mjs URL add COUNT | late COUNT | worker CONCURRENCY
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { Queue, Worker } from "dq-client";
import { createClient } from "redis";

// As in told.py.
const DELAY_MS = 500;
const EVERY_MS = 20;

const [url, load, number] = process.argv.slice(2);
const client = await createClient({ url }).connect();
const queue = new Queue(client, "queue");
const now = () => performance.timeOrigin + performance.now();

async function handle(job) {
  if (job.body.due) appendFileSync(process.env.LATE_FILE, `${now() - job.body.due}\n`);
}

if (load === "worker") {
  await new Worker(queue, handle, { concurrency: Number(number) }).run();
} else {
  for (let done = 0; done < Number(number); ) {
    if (load === "add") {
      const many = Array.from({ length: 1_000 }, (_, n) => queue.add(`job:${done + n}`, {}));
      done += (await Promise.all(many)).length;
    } else {
      await queue.add(`late:${done++}`, { due: Math.floor(now()) + DELAY_MS }, { delay: DELAY_MS });
      await sleep(EVERY_MS);
    }
  }
}
client.destroy();
