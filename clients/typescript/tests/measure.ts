/**
 * How fast a worker with an empty handler is, beside the raw commands of the same client library.
 *
 *     DQ_MODULE=… node target/typescript/build/tests/measure.js [JOBS]
 *
 * Each line: jobs a second until the last one is finished, and processor time of this program for a
 * job. `raw` takes as many jobs at once with DQ.POP, and finishes all of them with one DQ.FINISH.
 */

import { Queue, Worker } from "../src/index.ts";
import { DQServer } from "../src/testing.ts";
import { Gate } from "../src/worker/gate.ts";
import { close, connected, LIBRARIES, type Library, raw } from "./clients.ts";

const jobs = Number(process.argv[2] ?? 20_000);

async function measured(
  name: string,
  library: Library,
  server: DQServer,
  work: Work,
): Promise<void> {
  await server.flush();
  const client = await connected(library, server.url);
  try {
    const queue = new Queue(client, "q");
    for (let at = 0; at < jobs; at += 1_000) {
      const many = Array.from({ length: Math.min(1_000, jobs - at) }, (_, n) => at + n);
      await Promise.all(many.map((n) => queue.add(`job:${n}`, { n })));
    }
    const used = process.cpuUsage();
    const took = await work(queue);
    const { user, system } = process.cpuUsage(used);
    if ((await queue.len()) > 0) throw new Error("not all jobs are done");
    const rate = Math.round(jobs / (took / 1000));
    console.log(`${name.padEnd(24)} ${rate} a second, ${Math.round((user + system) / jobs)} µs`);
  } finally {
    close(client);
  }
}

type Work = (queue: Queue) => Promise<number>;

const rawly =
  (count: number): Work =>
  async ({ client }) => {
    const begun = performance.now();
    for (;;) {
      const pop = ["DQ.POP", "q", "COUNT", String(count)].map((word) => Buffer.from(word));
      const popped = (await raw(client, pop)) as [Buffer, Buffer, number][] | null;
      if (popped === null) return performance.now() - begun;
      const finished = popped.flatMap(([id, , lease]) => [id, Buffer.from(String(lease))]);
      await raw(client, [Buffer.from("DQ.FINISH"), Buffer.from("q"), ...finished]);
    }
  };

const worker =
  (concurrency: number): Work =>
  async (queue) => {
    let left = jobs;
    const begun = performance.now();
    const last = new Gate();
    const handler = async () => {
      left -= 1;
      if (left === 0) last.open();
    };
    const working = new Worker(queue, handler, { concurrency });
    const serving = working.serve();
    await last.wait();
    while ((await queue.len()) > 0);
    const took = performance.now() - begun;
    working.stop();
    await serving;
    return took;
  };

const server = await DQServer.start();
try {
  for (const library of [...LIBRARIES, ...LIBRARIES]) {
    for (const count of [1, 10, 100]) {
      await measured(`${library}, raw, ${count}`, library, server, rawly(count));
      await measured(`${library}, worker, ${count}`, library, server, worker(count));
    }
  }
} finally {
  await server.stop();
}
