/** Servers that go away, refuse for a while, or come back without their data. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Queue, Worker, type WorkerOptions } from "../src/index.ts";
import { DQServer } from "../src/testing.ts";
import { Address } from "./address.ts";
import { close, connected, LIBRARIES, type Library, raw } from "./clients.ts";
import { eventually, used } from "./server.ts";

const server = used();
const words = (...text: string[]) => text.map((word) => Buffer.from(word));

interface Life {
  readonly library: Library;
  readonly options: WorkerOptions<unknown>;
  readonly handler: (job: { id: string; attempt: number }) => unknown;
  readonly work: (proxy: Address, direct: Queue, lines: string[]) => Promise<void>;
}

/** A worker behind an address that can be cut, until `work` is done. */
async function life({ library, options, handler, work }: Life): Promise<void> {
  const proxy = await Address.to(server.port);
  const client = await connected(library, proxy.url);
  const lines: string[] = [];
  const warn = (what: string, error?: unknown) => lines.push(`${what}: ${String(error)}`);
  const worker = new Worker(new Queue(client, "q"), handler, { warn, ...options });
  const serving = worker.serve();
  try {
    await work(proxy, new Queue(server.client(library), "q"), lines);
    worker.stop();
    await serving;
  } finally {
    worker.stop();
    close(client);
    proxy.close();
  }
}

for (const library of LIBRARIES) {
  test(`${library}: jobs that come behind an outage longer than the TTR run once`, async () => {
    const ran: string[] = [];
    await life({
      library,
      options: { ttr: 500, concurrency: 20 },
      handler: async ({ id }) => {
        ran.push(id);
        await new Promise((goOn) => setTimeout(goOn, 1_500));
      },
      work: async (proxy, direct, lines) => {
        await eventually(async () => ((await direct.info())?.waitingConsumers ?? 1) > 0);
        proxy.cut();
        await eventually(() => lines.some((line) => line.includes("doesn't answer")));
        await new Promise((goOn) => setTimeout(goOn, 1_200));
        for (let n = 0; n < 20; n += 1) await direct.add(`${n}`, null, { attempts: 1 });
        proxy.leadTo(server.port);
        await eventually(async () => (await direct.len()) === 0);
        assert.equal(await direct.len("dead"), 0);
      },
    });
    assert.equal(new Set(ran).size, 20);
    assert.equal(ran.length, 20);
  });

  test(`${library}: an outage is one line and another one at its end`, async () => {
    let begun = 0;
    let isCut = false;
    await life({
      library,
      options: { concurrency: 100 },
      handler: async () => {
        begun += 1;
        await eventually(() => isCut);
      },
      work: async (proxy, direct, lines) => {
        for (let n = 0; n < 100; n += 1) await direct.add(`${n}`, null);
        await eventually(() => begun === 100);
        proxy.cut();
        isCut = true;
        await new Promise((goOn) => setTimeout(goOn, 3_000));
        proxy.leadTo(server.port);
        await eventually(async () => (await direct.len()) === 0);
        await eventually(() => lines.some((line) => line.includes("answers again")));
        const about = lines.filter((line) => line.includes(`127.0.0.1:${proxy.port}`));
        assert.match(about[0] ?? "", /doesn't answer/);
        assert.match(about[1] ?? "", /answers again, after \d/);
        assert.equal(about.length, 2, lines.join("\n"));
      },
    });
  });

  test(`${library}: what a handler has done in an outage longer than the TTR counts`, async () => {
    let ran = 0;
    let isDone = false;
    await life({
      library,
      options: { ttr: 400 },
      handler: async () => {
        ran += 1;
        await eventually(() => isDone);
      },
      work: async (proxy, direct, lines) => {
        await direct.add("a", null);
        await eventually(() => ran === 1);
        proxy.cut();
        await eventually(() => lines.some((line) => line.includes("is given up")));
        // No other worker takes it meanwhile.
        await direct.pause();
        isDone = true;
        proxy.leadTo(server.port);
        await eventually(async () => (await direct.len()) === 0);
        assert.equal(ran, 1);
      },
    });
  });

  test(`${library}: a schedule comes back after FLUSHALL and a cut`, async () => {
    const proxy = await Address.to(server.port);
    const client = await connected(library, proxy.url);
    const direct = new Queue(server.client(library), "q");
    const worker = new Worker(new Queue(client, "q"), () => {}, { warn: () => {} });
    worker.schedule("tick", null, { every: { hours: 1 } });
    const serving = worker.serve();
    try {
      await eventually(async () => (await direct.get("tick")) !== null);
      await raw(direct.client, words("FLUSHALL"));
      assert.equal(await direct.get("tick"), null);
      proxy.hangUp();
      await eventually(async () => (await direct.get("tick")) !== null);
    } finally {
      worker.stop();
      await serving;
      close(client);
      proxy.close();
    }
  });

  test(`${library}: a schedule of a newer program is left, and one with RUNS isn't begun again`, async () => {
    const address = await Address.to(server.port);
    const client = await connected(library, address.url);
    const direct = new Queue(server.client(library), "q");
    const worker = new Worker(new Queue(client, "q"), () => {}, { warn: () => {} });
    worker.schedule("tick", null, { every: { hours: 1 } });
    worker.schedule("once", null, { every: 1, runs: 1 });
    worker.schedule("tock", null, { every: { hours: 1 } });
    const serving = worker.serve();
    try {
      await eventually(async () => (await direct.info())?.totalFinished === 1);
      await eventually(async () => (await direct.len("delayed")) === 2);
      await direct.add("tick", null, { every: { hours: 2 }, ensure: true });
      await direct.del("tock");
      address.hangUp();
      await eventually(async () => (await direct.get("tock")) !== null);
      assert.equal((await direct.get("tick"))?.schedule?.every, 7_200_000);
      assert.equal(await direct.get("once"), null);
    } finally {
      worker.stop();
      await serving;
      close(client);
      address.close();
    }
  });

  test(`${library}: a full queue keeps no schedule, and the worker empties it`, async () => {
    const queue = new Queue(server.client(library), "q");
    await queue.alter({ maxjobs: 1 });
    await queue.add("a", null, { keep: 0 });
    const lines: string[] = [];
    const worker = new Worker(queue, () => {}, { warn: (what) => lines.push(what) });
    worker.schedule("tick", null, { every: { hours: 1 } });
    const serving = worker.serve();
    await eventually(async () => (await queue.get("a")) === null);
    worker.stop();
    await serving;
    assert.match(lines.join("\n"), /schedule "tick" can't be declared/);
  });

  test(`${library}: a schedule that the server refuses ends the worker at its start`, async () => {
    const queue = new Queue(server.client(library), "q");
    const worker = new Worker(queue, () => {}, { warn: () => {} });
    worker.schedule("tick", null, { cron: "no cron" });
    await assert.rejects(worker.serve(), /cron/i);
  });

  test(`${library}: no connection left for a worker passes`, async () => {
    const few = await DQServer.start();
    const client = await connected(library, few.url);
    try {
      const queue = new Queue(client, "q");
      await queue.add("a", null);
      await raw(client, words("CONFIG", "SET", "maxclients", "1"));
      const lines: string[] = [];
      const worker = new Worker(queue, () => {}, {
        warn: (what, error) => lines.push(`${what}: ${String(error)}`),
      });
      const serving = worker.serve();
      await eventually(() => lines.some((line) => line.includes("doesn't answer")));
      await raw(client, words("CONFIG", "SET", "maxclients", "1000"));
      await eventually(async () => (await queue.len()) === 0);
      worker.stop();
      await serving;
    } finally {
      close(client);
      await few.stop();
    }
  });

  test(`${library}: jobs in hand at a planned failover are finished once`, async () => {
    const client = server.client(library);
    const queue = new Queue(client, "q");
    for (let n = 0; n < 10; n += 1) await queue.add(`${n}`, null, { keep: { hours: 1 } });
    let ran = 0;
    let isReplica = false;
    const lines: string[] = [];
    const worker = new Worker(
      queue,
      async ({ id }) => {
        ran += 1;
        await eventually(() => isReplica);
        if (id === "9" && ran === 10) throw new Error("no route");
        return Number(id) % 2 === 0 ? undefined : id;
      },
      { warn: (what, error) => lines.push(`${what}: ${String(error)}`) },
    );
    const serving = worker.serve();
    try {
      await eventually(() => ran === 10);
      await raw(client, words("REPLICAOF", "127.0.0.1", "1"));
      isReplica = true;
      await eventually(() =>
        lines.some((line) => /doesn't answer.*(READONLY|UNBLOCKED)/.test(line)),
      );
      await new Promise((goOn) => setTimeout(goOn, 500));
      await raw(client, words("REPLICAOF", "NO", "ONE"));
      await eventually(async () => (await queue.len("done")) === 10);
    } finally {
      await raw(client, words("REPLICAOF", "NO", "ONE"));
      worker.stop();
      await serving;
    }
    assert.equal(ran, 11);
    assert.equal((await queue.get("9"))?.released, 1);
  });

  test(`${library}: a worker whose client gives up waiting soon takes jobs all the same`, async () => {
    const given = library === "ioredis" ? { commandTimeout: 100, socketTimeout: 300 } : {};
    const socket = library === "ioredis" ? {} : { socketTimeout: 100 };
    const client = await connected(library, server.url, { given, socket });
    const direct = new Queue(server.client(library), "q");
    let ran = 0;
    const lines: string[] = [];
    const handler = () => {
      ran += 1;
    };
    const worker = new Worker(new Queue(client, "q"), handler, {
      warn: (what) => lines.push(what),
    });
    const serving = worker.serve();
    await new Promise((goOn) => setTimeout(goOn, 700));
    for (let n = 0; n < 5; n += 1) await direct.add(`${n}`, null, { attempts: 1 });
    await eventually(async () => (await direct.len()) === 0);
    worker.stop();
    await serving;
    close(client);
    assert.equal(ran, 5);
    assert.deepEqual(
      lines.filter((line) => line.includes("doesn't answer")),
      [],
    );
  });
}

test("12,000 jobs in hand keep their leases", async () => {
  const queue = new Queue(server.client("ioredis"), "q");
  const many = 12_000;
  for (let at = 0; at < many; at += 1_000) {
    await Promise.all(Array.from({ length: 1_000 }, (_, n) => queue.add(`${at + n}`, null)));
  }
  let ran = 0;
  let isOver = false;
  const worker = new Worker(
    queue,
    async () => {
      ran += 1;
      while (!isOver) await new Promise((goOn) => setTimeout(goOn, 200));
    },
    { concurrency: many, ttr: 5_000, warn: () => {} },
  );
  const serving = worker.serve();
  await eventually(() => ran >= many);
  await new Promise((goOn) => setTimeout(goOn, 7_000));
  isOver = true;
  await eventually(async () => (await queue.len()) === 0);
  worker.stop();
  await serving;
  assert.equal(ran, many);
});
