/** One job never ends a worker, never touches another one's outcome, and is always in the log. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Bury, Done, LeaseLost, Queue, RAW, Retry, type RunningJob, Worker } from "../src/index.ts";
import { Failures } from "../src/worker/failures.ts";
import { Hands } from "../src/worker/hands.ts";
import { Line } from "../src/worker/line.ts";
import { Net, Outage } from "../src/worker/net.ts";
import { Settler } from "../src/worker/settling.ts";
import { close, connected, LIBRARIES, raw } from "./clients.ts";
import { eventually, used } from "./server.ts";

const server = used();

/** An error whose parts are no text, or throw. */
function broken(parts: Record<string, unknown>): Error {
  const error = new Error("x");
  for (const [name, value] of Object.entries(parts)) {
    Object.defineProperty(error, name, {
      get: () => {
        if (value instanceof Error) throw value;
        return value;
      },
    });
  }
  return error;
}

const later = (given: object) => Object.assign(new Retry("later"), given);
const throwing = (error: unknown) => () => {
  throw error;
};

/** What a handler does, and what stands in the reason of its dead job then. */
const POISON: Record<string, readonly [() => unknown, RegExp]> = {
  "an object without a prototype": [throwing(Object.create(null)), /null prototype/],
  "an object": [throwing({ code: 5 }), /code: 5/],
  undefined: [throwing(undefined), /undefined/],
  null: [throwing(null), /null/],
  "a symbol": [throwing(Symbol("s")), /Symbol\(s\)/],
  "a message that throws": [throwing(broken({ message: new Error("no") })), /outcome refused/],
  "a message that is null": [throwing(broken({ message: null })), /Error/],
  "a message that is an object": [
    throwing(broken({ message: Object.create(null) })),
    /outcome refused/,
  ],
  "a name that throws": [throwing(broken({ name: new Error("no") })), /outcome refused/],
  "a proxy that throws": [
    throwing(new Proxy({}, { getPrototypeOf: throwing(new Error("trap")) })),
    /./,
  ],
  "text with half a surrogate pair": [throwing(new Error("a\ud800")), /Error: a/],
  "a retry in null": [throwing(later({ in: null })), /outcome refused/],
  "a retry before now": [throwing(later({ in: -1_000 })), /outcome refused.*DELAY/],
  "a retry in NaN": [throwing(later({ in: Number.NaN })), /outcome refused.*NaN/],
  "a retry in a million years": [throwing(later({ in: { days: 4e8 } })), /outcome refused.*DELAY/],
  "a retry in unknown parts": [throwing(later({ in: { secs: 5 } })), /outcome refused.*secs/],
  "a retry made in the past": [() => new Retry("x", { in: -1 }), /RangeError.*before now/],
  "a retry without a message": [throwing(later({ message: 404 })), /outcome refused/],
  "a retry for an error": [throwing(new Retry(new RangeError("gone"))), /RangeError: gone/],
  "a retry for a number": [throwing(new Retry(404)), /404/],
  "priority 300": [throwing(later({ priority: 300 })), /outcome refused.*PRIORITY/],
  "priority 2.5": [throwing(later({ priority: 2.5 })), /outcome refused.*PRIORITY/],
  "priority NaN": [throwing(later({ priority: Number.NaN })), /outcome refused.*PRIORITY/],
  "a priority that is an object": [throwing(later({ priority: {} })), /outcome refused/],
  "a burial for an object": [throwing(new Bury({ code: 7 })), /code: 7/],
  "a lease lost that isn't": [throwing(new LeaseLost("other")), /LeaseLost/],
  "a result that JSON can't say": [() => 5n, /BigInt/],
  "a result in a circle": [circle, /circular/],
  "a result that throws": [() => ({ toJSON: throwing(Object.create(null)) }), /null prototype/],
  // biome-ignore lint/suspicious/noThenProperty: what a handler may return
  "a thenable that throws": [() => ({ then: throwing(new Error("then")) }), /then/],
  // biome-ignore lint/suspicious/noThenProperty: what a handler may return
  "a getter for then": [() => broken({ then: new Error("get") }), /get/],
  "a generator": [() => (function* () {})(), /TypeError: the handler returned a generator/],
  "a generator that is async": [() => (async function* () {})(), /returned a generator/],
  "done without options": [() => new Done(null as never), /TypeError/],
  "done with a keep of NaN": [() => new Done({ keep: Number.NaN }), /NaN/],
  "done with a keep before now": [() => new Done({ keep: -5 }), /outcome refused.*KEEP/],
  "done with jobs that are none": [() => new Done({ add: [null] as never }), /TypeError/],
  "done with an id that is a number": [
    () => new Done({ add: [{ id: 5, body: 1 }] as never }),
    /id/,
  ],
  "done with a body that JSON can't say": [() => new Done({ add: [{ body: undefined }] }), /JSON/],
  "done with a job that exists": [
    () => new Done({ add: [{ id: "bystander", body: 1 }] }),
    /outcome refused.*taken.*bystander/,
  ],
};

function circle(): unknown {
  const value: Record<string, unknown> = {};
  value.itself = value;
  return value;
}

for (const library of LIBRARIES) {
  test(`${library}: no outcome ends the worker, and neighbours keep theirs`, async () => {
    const queue = new Queue(server.client(library), "q");
    await queue.add("bystander", null, { delay: { hours: 1 } });
    const names = Object.keys(POISON);
    for (const id of names) {
      await queue.add(id, null, { attempts: 1 });
      await queue.add(`beside ${id}`, null, { attempts: 1, keep: { hours: 1 } });
    }
    const lines: string[] = [];
    const failed: string[] = [];
    const worker = new Worker(
      queue,
      (job) => (job.id.startsWith("beside") ? job.id : POISON[job.id]?.[0]()),
      {
        concurrency: 200,
        warn: (what) => lines.push(what),
        onError: (job: RunningJob, _error, next) => failed.push(`${job.id}, ${next}`),
      },
    );
    const serving = worker.serve();
    await eventually(async () => (await queue.len("ready")) + (await queue.len("reserved")) === 0);
    worker.stop();
    await serving;
    for (const id of names) {
      const job = await queue.get(id);
      assert.match(`${job?.state}: ${job?.reason}`, POISON[id]?.[1] as RegExp, id);
      assert.equal(job?.state, "dead", id);
      assert.equal((await queue.result(`beside ${id}`))?.value, `beside ${id}`);
      const line = lines.find((each) => each.includes(`q: job ${JSON.stringify(id)} failed`));
      assert.match(line ?? "", /attempt 1 of 1, and is dead$/, id);
      assert.ok(failed.includes(`${id}, and is dead`), id);
    }
  });

  test(`${library}: a generator function is no handler`, () => {
    const queue = new Queue(server.client(library), "q");
    assert.throws(() => new Worker(queue, function* () {}), /no generator function/);
    assert.throws(() => new Worker(queue, async function* () {}), /no generator function/);
  });

  test(`${library}: an outcome that is refused uses its backoff, and is tried again`, async () => {
    const queue = new Queue(server.client(library), "q");
    await queue.add("a", null, { backoff: { base: { hours: 1 }, max: { hours: 1 } } });
    const lines: string[] = [];
    const worker = new Worker(queue, throwing(later({ in: Number.NaN })), {
      warn: (what) => lines.push(what),
    });
    const serving = worker.serve();
    await eventually(() => lines.some((line) => line.includes("failed")));
    worker.stop();
    await serving;
    assert.equal((await queue.get("a"))?.state, "delayed");
    assert.match(lines.join("\n"), /q: job "a" failed, attempt 1 of 25, again in \d+ s/);
  });

  test(`${library}: a result that is too long fails at once, with both lengths`, async () => {
    const client = server.client(library);
    const queue = new Queue(client, "q");
    const config = ["CONFIG", "SET", "dq.max-body-bytes"].map((word) => Buffer.from(word));
    await raw(client, [...config, Buffer.from("50")]);
    try {
      await queue.add("a", null);
      await queue.add("b", null);
      let ran = 0;
      const worker = new Worker(
        queue,
        (job) => {
          ran += 1;
          return job.id === "a" ? "x".repeat(98) : new Done({ add: [{ body: "x".repeat(98) }] });
        },
        { warn: () => {} },
      );
      const serving = worker.serve();
      await eventually(async () => (await queue.len("dead")) === 2);
      worker.stop();
      await serving;
      assert.equal(ran, 2);
      const reason = (await queue.get("a"))?.reason ?? "";
      assert.match(reason, /100 bytes.*at most 50 bytes/);
      assert.match((await queue.get("b"))?.reason ?? "", /at most 50 bytes/);
    } finally {
      await raw(client, [...config, Buffer.from("1048576")]);
    }
  });

  test(`${library}: ids that aren't UTF-8 are finished, cancelled, retried`, async () => {
    const queue = new Queue(server.client(library), "q");
    const ids = [0, 1, 2].map((n) => Buffer.from([0xff, 0x80 + n, 0x61, 0xc3]));
    for (const id of ids) await queue.add(id, null, { attempts: 3 });
    const seen: string[] = [];
    let cancelled = false;
    const worker = new Worker(
      queue,
      async (job) => {
        seen.push(job.id);
        if (job.id === seen[0] && job.attempt === 1) throw new Error("again");
        if (job.id !== seen[1]) return;
        await queue.del(job.id);
        await new Promise((goOn) => job.signal.addEventListener("abort", goOn));
        cancelled = true;
      },
      { concurrency: 1, warn: () => {} },
    );
    const serving = worker.serve();
    await eventually(async () => (await queue.len()) === 0 && cancelled);
    worker.stop();
    await serving;
    assert.equal(seen.length, 4);
    assert.equal(new Set(seen).size, 3);
  });

  test(`${library}: ids that aren't UTF-8 come back from every command as they were`, async () => {
    const queue = new Queue(server.client(library), "q", { codec: RAW });
    const id = Buffer.from([0xfe, 0x61]);
    const { id: name } = await queue.add(id, "x", { delay: 1000, group: id });
    await queue.add("behind", "x", { after: [name] });
    assert.equal((await queue.get(name))?.id, name);
    assert.equal((await queue.peek({ state: "delayed" }))[0]?.id, name);
    assert.deepEqual((await queue.scan(0, { state: "delayed" })).items, [name]);
    assert.equal((await queue.deps("behind"))?.items[0]?.id, name);
    assert.equal((await queue.groups()).items[0]?.group, name);
    assert.equal((await queue.add(name, "x", { nx: true })).state, "taken");
    assert.equal(await queue.del(name), 1);
  });
}

for (const library of LIBRARIES) {
  test(`${library}: a user who may not say an outcome says another one, and the worker goes on`, async () => {
    const owner = server.client(library);
    const words = (text: string) => text.split(" ").map((word) => Buffer.from(word));
    const queue = new Queue(owner, "q");
    const rights = ["+@all -dq.finish", "+@all -dq.done", "+@all -dq.finish -dq.release -dq.done"];
    for (const [at, given] of rights.entries()) {
      await raw(owner, words(`ACL SETUSER worker${at} on >secret ~* &* ${given}`));
      const url = server.url.replace("redis://", `redis://worker${at}:secret@`);
      const client = await connected(library, url);
      for (const id of ["a", "b", "c"]) await queue.add(`${at}${id}`, null, { attempts: 1 });
      const lines: string[] = [];
      const worker = new Worker(
        new Queue(client, "q"),
        ({ id }) => (id.endsWith("c") ? "result" : undefined),
        { warn: (what) => lines.push(what) },
      );
      const serving = worker.serve();
      await eventually(
        async () => (await queue.len("ready")) + (await queue.len("reserved")) === 0,
      );
      worker.stop();
      await serving;
      close(client);
      const refused = [given.includes("done") && "c", given.includes("finish") && "a"];
      for (const id of refused.filter(Boolean)) {
        assert.match((await queue.get(`${at}${id}`))?.reason ?? "", /outcome refused.*NOPERM/);
      }
    }
  });
}

test("what pauses goes on when another line is answered", async () => {
  const outage = new Outage(new Net(server.client("ioredis"), () => {}));
  const [settler, source] = [{}, {}];
  for (const afterMs of [0, 200]) {
    outage.failed(settler, new Error("away"));
    outage.failed(source, new Error("away"));
    const pausing = outage.pause(3_600_000);
    await new Promise((goOn) => setTimeout(goOn, afterMs));
    outage.answered(source);
    await pausing;
  }
});

test("what the server can't be told is bounded, and its leases are kept", async () => {
  const queue = new Queue(server.client("ioredis"), "q");
  const [delivery] = await queue.add("a", null).then(() => queue.pop());
  assert.ok(delivery);
  const net = new Net(queue.client, () => {});
  const outage = new Outage(net);
  const line = new Line(net, outage);
  let isAway = true;
  const { call } = Line.prototype;
  line.call = ((command: never) =>
    isAway ? Promise.reject(new Error("away")) : call.call(line, command)) as typeof line.call;
  const settler: Settler = new Settler(line, net, new Failures(line, net, undefined), 1, (hand) =>
    hands.settled(hand),
  );
  const work = { handler: () => {}, before: [], after: [] };
  const hands = new Hands(work, 60_000, line, (told) => settler.settle(told));
  const running = settler.run();
  await hands.run(queue.key, delivery, 0);
  assert.equal(settler.hasRoom.isOpen, false);
  assert.equal(hands.none.isOpen, true);
  assert.equal(hands.of(queue.key).length, 1);
  isAway = false;
  await settler.idle.wait(30_000);
  assert.equal(settler.hasRoom.isOpen, true);
  assert.equal(hands.of(queue.key).length, 0);
  assert.equal(await queue.len(), 0);
  net.over.open();
  settler.end();
  await running;
  line.close();
});

test("an id as text is shown the same by both libraries", async () => {
  const id = Buffer.from([0xfe, 0x61]);
  const [one, other] = LIBRARIES.map((library) => new Queue(server.client(library), "q"));
  const added = await one?.add(id, null);
  assert.equal((await other?.peek())?.[0]?.id, added?.id);
});
