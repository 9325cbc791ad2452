/** What can't work is refused in words that say what to do. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { createClient, createClientPool, createSentinel } from "redis";
import { type Client, executed, NoModule, Queue, Topic, Worker } from "../src/index.ts";
import { close, connected, LIBRARIES, pipelineOf } from "./clients.ts";
import { eventually, used } from "./server.ts";

const server = used();

for (const library of LIBRARIES) {
  const client = () => server.client(library);

  test(`${library}: a queue on a pipeline is refused, and a pipeline on a client`, () => {
    const pipeline = pipelineOf(client(), true);
    assert.throws(() => new Queue(pipeline as unknown as Client, "q"), /queue\.on\(pipeline\)/);
    assert.throws(() => new Topic(pipeline as unknown as Client, "t", 2), /queue\.on\(pipeline\)/);
    assert.throws(() => new Queue(client(), "q").on(client() as never), /multi\(\)/);
    assert.throws(() => new Queue(Promise.resolve(client()) as never, "q"), /await/);
    for (const none of [undefined, null, {}, "redis://"]) {
      assert.throws(() => new Queue(none as never, "q"), /needs a client/);
    }
    for (const name of [undefined, 5, Buffer.from("q"), "q\ud800"]) {
      assert.throws(() => new Queue(client(), name as never), TypeError);
    }
  });

  test(`${library}: Exists names the id and the queue`, async () => {
    const queue = new Queue(client(), "orders");
    await queue.add("order:17", 1);
    const named = /taken.*"order:17".*"orders"/;
    await assert.rejects(queue.add("order:17", 1), named);
    const pipeline = pipelineOf(client(), true);
    const added = queue.on(pipeline).add("order:17", 1);
    const replies = await executed(pipeline);
    assert.throws(() => added.of(replies), named);
    await queue.add("a", 1);
    const [job] = await queue.pop({ id: "a" });
    const add = [{ id: "order:17", body: 1 }];
    await assert.rejects(queue.done("a", job?.lease ?? 0, { add }), named);
    await assert.rejects(
      queue.addMany([{ id: "b", body: 1 }, { body: 1 }, { id: "order:17", body: 1 }]),
      /^Exists: job 3: id is taken in this queue: "order:17" in "orders"$/,
    );
    const topic = new Topic(client(), "t", 2);
    await topic.add("order:17", 1);
    await assert.rejects(
      new Topic(client(), "u", 2, { before: topic }).add("order:17", 1),
      /taken.*"order:17".*"t:\{/,
    );
  });

  test(`${library}: a worker says what is wrong with its settings`, () => {
    const queue = new Queue(client(), "q");
    for (const concurrency of [0, -1, 2.5, Number.NaN, Number.POSITIVE_INFINITY, "5"]) {
      const made = () => new Worker(queue, () => {}, { concurrency: concurrency as number });
      assert.throws(made, /concurrency is a whole number, 1 at least/);
    }
    for (const weight of [0, Number.NaN, 0.5, Number.POSITIVE_INFINITY]) {
      assert.throws(() => new Worker([[queue, weight]], () => {}), /weight/);
    }
    for (const ttr of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, { secs: 5 }]) {
      assert.throws(() => new Worker(queue, () => {}, { ttr: ttr as number }));
    }
    assert.throws(() => new Worker(queue, () => {}, { grace: -1 }), /grace/);
    assert.throws(() => new Worker(queue, undefined as never), /handler/);
  });
}

test("ioredis: a client inside a MULTI doesn't pretend to add", async () => {
  const client = await connected("ioredis", server.url);
  try {
    await (client as unknown as { multi(given: object): Promise<unknown> }).multi({
      pipeline: false,
    });
    await assert.rejects(new Queue(client, "q").add("a", 1), /inside a MULTI/);
  } finally {
    close(client);
  }
});

test("node-redis: a pool adds, and is refused by a worker; a sentinel is refused", async () => {
  const pool = createClientPool({ url: server.url });
  await pool.connect();
  try {
    const queue = new Queue(pool as unknown as Client, "q");
    assert.equal((await queue.add("a", 1)).state, "added");
    assert.throws(() => new Worker(queue, () => {}), /duplicated/);
  } finally {
    pool.destroy();
  }
  const sentinel = createSentinel({ name: "m", sentinelRootNodes: [{ host: "::1", port: 1 }] });
  assert.throws(() => new Queue(sentinel as unknown as Client, "q"), /createSentinel/);
});

/** A server without the module, for as long as `work` takes. */
async function withoutModule(work: (url: string) => Promise<void>): Promise<void> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  const words = ["--port", String(port), "--bind", "127.0.0.1", "--save", ""];
  const child = spawn(process.env.DQ_SERVER ?? "redis-server", words, { stdio: "ignore" });
  try {
    const url = `redis://127.0.0.1:${port}`;
    await eventually(async () => {
      const probe = createClient({ url, socket: { reconnectStrategy: false } });
      probe.on("error", () => {});
      const isUp = await probe.connect().then(
        () => true,
        () => false,
      );
      if (isUp) probe.destroy();
      return isUp;
    });
    await work(url);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
}

test("a server without the module is named as such, also by a pipeline and a worker", async () => {
  await withoutModule(async (url) => {
    for (const library of LIBRARIES) {
      const client = await connected(library, url);
      try {
        const queue = new Queue(client, "q");
        const isNamed = (error: unknown) =>
          error instanceof NoModule && /the server has no module DQ/.test(error.message);
        await assert.rejects(queue.add("a", 1), isNamed);
        await assert.rejects(queue.start({ body: 1, id: "a" }), isNamed);
        const pipeline = pipelineOf(client, true);
        queue.on(pipeline).add("a", 1);
        await assert.rejects(executed(pipeline), isNamed);
        await assert.rejects(new Worker(queue, () => {}).serve(), isNamed);
      } finally {
        close(client);
      }
    }
  });
});
