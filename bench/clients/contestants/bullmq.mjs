// BullMQ: one process, a worker with concurrency, finished jobs removed.
//
// node bullmq.mjs PORT add COUNT | late COUNT | worker CONCURRENCY
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";

// As in told.py.
const DELAY_MS = 500;
const EVERY_MS = 20;

const [port, load, number] = process.argv.slice(2);
const connection = new Redis(Number(port), "127.0.0.1", { maxRetriesPerRequest: null });
const now = () => performance.timeOrigin + performance.now();

if (load === "worker") {
  const handle = async (job) => {
    if (job.data.due) appendFileSync(process.env.LATE_FILE, `${now() - job.data.due}\n`);
  };
  new Worker("bench", handle, { connection, concurrency: Number(number) });
} else {
  const queue = new Queue("bench", { connection });
  const opts = { removeOnComplete: true };
  for (let done = 0; done < Number(number); ) {
    if (load === "add") {
      const jobs = Array.from({ length: 100 }, () => ({ name: "job", data: {}, opts }));
      await queue.addBulk(jobs);
      done += jobs.length;
    } else {
      await queue.add("job", { due: Math.floor(now()) + DELAY_MS }, { ...opts, delay: DELAY_MS });
      done += 1;
      await sleep(EVERY_MS);
    }
  }
  process.exit(0);
}
