// The loads of dq-bench on BullMQ, as its documentation advises to use it: one process, ioredis with automatic
// pipelining, workers with concurrency, finished jobs removed.
//
//   node bench.js PORT LOAD COUNT SECONDS
//
// Says on standard output, a line each: "begin" when what is measured begins, "end" with a JSON object when it has
// ended, by COUNT jobs or after SECONDS. dq-bench runs it and reads that.

import { randomBytes } from "node:crypto";

import { FlowProducer, Queue, Worker } from "bullmq";
import { Redis } from "ioredis";

const [port, load, countText, secondsText] = process.argv.slice(2);
const count = Number(countText);
const limitMs = Number(secondsText) * 1000;

// What dq-bench's own connections have under way: 50 of 16 each.
const IN_FLIGHT = 800;
const BATCH = 16;
const WORKERS = 4;
const CONCURRENCY = 50;
// 100 bytes that can't be compressed, as those of the others.
const BODY = randomBytes(75).toString("base64");

const connect = () =>
  new Redis(Number(port), "127.0.0.1", { maxRetriesPerRequest: null, enableAutoPipelining: true });
const queue = new Queue("queue", { connection: connect() });
const workers = [];

let made = 0;
const job = (options = {}) => {
  const jobId = `job-${String(made++).padStart(12, "0")}`;
  return { name: "job", data: { body: BODY }, opts: { jobId, removeOnComplete: true, ...options } };
};
const add = (options) => {
  const { name, data, opts } = job(options);
  return queue.add(name, data, opts);
};
const addBatch = (options) => queue.addBulk(Array.from({ length: BATCH }, () => job(options)));

const nowMs = () => performance.timeOrigin + performance.now();
const say = (word, values) => console.log(values ? `${word} ${JSON.stringify(values)}` : word);

function startWorkers(handle, workerCount = WORKERS) {
  for (let number = 0; number < workerCount; number++) {
    const options = { connection: connect(), concurrency: CONCURRENCY };
    const worker = new Worker("queue", handle, options);
    worker.on("error", fail);
    workers.push(worker);
  }
  return Promise.all(workers.map((worker) => worker.waitUntilReady()));
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

// Counts what is done: says "begin" after a tenth, resolves when all is done or the time is over.
function counter() {
  let done = 0;
  let from = 0;
  let beganMs = 0;
  let finish;
  const ended = new Promise((resolve) => (finish = resolve));
  const end = () => finish({ jobs: done - from, seconds: (nowMs() - beganMs) / 1000 });
  const warmUp = count / 10;
  return {
    ended,
    more: () => done < count,
    add(jobs) {
      done += jobs;
      if (!beganMs && done >= warmUp) {
        from = done;
        beganMs = nowMs();
        setTimeout(end, limitMs);
        say("begin");
      }
      if (done >= count) end();
    },
  };
}

// Keeps IN_FLIGHT jobs under way: `produce` adds some, and resolves when as many may follow.
async function keepUp(counted, jobsEach, produce) {
  const lanes = Array.from({ length: IN_FLIGHT / jobsEach }, async () => {
    while (counted.more()) await produce();
  });
  Promise.all(lanes).catch(fail);
  return counted.ended;
}

async function enqueue(options) {
  const counted = counter();
  return keepUp(counted, 1, async () => {
    await add(options);
    counted.add(1);
  });
}

// Jobs that were added and not yet completed are kept to IN_FLIGHT: each lane waits for its own.
async function life(jobsEach, produce) {
  const counted = counter();
  const waiting = new Map();
  await startWorkers(async () => {});
  for (const worker of workers) {
    worker.on("completed", ({ id }) => {
      counted.add(1);
      waiting.get(id)?.();
      waiting.delete(id);
    });
  }
  return keepUp(counted, jobsEach, async () => {
    const first = made;
    const done = Array.from({ length: jobsEach }, (_, place) => {
      const id = `job-${String(first + place).padStart(12, "0")}`;
      return new Promise((resolve) => waiting.set(id, resolve));
    });
    await produce();
    await Promise.all(done);
  });
}

async function fill(options) {
  for (let done = 0; done < count; done += 50 * BATCH) {
    await Promise.all(Array.from({ length: 50 }, () => addBatch(options(nowMs()))));
  }
}

async function dueAtOnce() {
  // Two thousand a second can be added at the least; what isn't due together isn't this load.
  const dueMs = nowMs() + 2000 + count / 2;
  await fill((now) => ({ delay: Math.max(1, Math.round(dueMs - now)) }));
  if (nowMs() > dueMs) fail(new Error("the jobs were due before all had been added"));
  let done = 0;
  let finish;
  const ended = new Promise((resolve) => (finish = resolve));
  await new Promise((resolve) => setTimeout(resolve, dueMs - nowMs()));
  say("begin");
  const beganMs = nowMs();
  const end = () => finish({ jobs: done, seconds: (nowMs() - beganMs) / 1000 });
  setTimeout(end, limitMs);
  await startWorkers(async () => {});
  for (const worker of workers) worker.on("completed", () => ++done === made && end());
  return ended;
}

// Jobs due one after the other, for a worker that waits: how late each is begun, in microseconds.
async function lateness() {
  const lateUs = [];
  let finish;
  const ended = new Promise((resolve) => (finish = resolve));
  await startWorkers(async (job) => {
    lateUs.push(Math.round((nowMs() - job.data.dueMs) * 1000));
    if (lateUs.length === count) finish({ lateUs });
  }, 1);
  say("begin");
  for (let number = 0; number < count; number++) {
    const timestamp = Math.floor(nowMs());
    const delay = 50 + Math.floor(Math.random() * 10);
    const dueMs = timestamp + delay;
    await queue.add("job", { body: BODY, dueMs }, { timestamp, delay, removeOnComplete: true });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return ended;
}

// COUNT parents, which each wait for as many children as the last argument says.
async function flows() {
  const flow = new FlowProducer({ connection: connect() });
  const childCount = Number(secondsText);
  let ended = 0;
  let finish;
  const all = new Promise((resolve) => (finish = resolve));
  say("begin");
  await startWorkers(async (job) => {
    if (job.name === "parent" && ++ended === count) finish({ jobs: ended });
  });
  const one = () => {
    const children = Array.from({ length: childCount }, () => ({ ...job(), queueName: "queue" }));
    return { ...job(), name: "parent", queueName: "queue", children };
  };
  for (let done = 0; done < count; done += BATCH) {
    await flow.addBulk(Array.from({ length: Math.min(BATCH, count - done) }, one));
  }
  return all;
}

const LOADS = {
  enqueue: () => enqueue({}),
  delayed: () => enqueue({ delay: 3_600_000 }),
  life: () => life(1, () => add({})),
  batches: () => life(BATCH, () => addBatch({})),
  "due-at-once": dueAtOnce,
  lateness,
  flows,
  memory: async () => {
    await fill(() => ({ delay: 3_600_000 }));
    return { jobs: made };
  },
};

if (!LOADS[load]) fail(new Error(`no load is called ${load}; there are ${Object.keys(LOADS).join(", ")}`));
await queue.waitUntilReady();
say("end", await LOADS[load]());
// Whatever is under way is given up with the server.
process.exit(0);
