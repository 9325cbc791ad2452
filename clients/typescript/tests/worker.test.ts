/** A worker through both libraries: what the scenarios of the contract don't look at. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { context, propagation, trace } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { Invalid, NoModule, passes, refusal } from "../src/errors.ts";
import { Queue, Worker } from "../src/index.ts";
import { tracing } from "../src/tracing.ts";
import { sources } from "../src/worker/fetching.ts";
import { Gate, pauses } from "../src/worker/gate.ts";
import { LIBRARIES } from "./clients.ts";
import { eventually, used } from "./server.ts";

const server = used();

for (const library of LIBRARIES) {
  test(`${library}: the signal of a job that is cancelled is aborted`, async () => {
    const queue = new Queue(server.client(library), "q");
    await queue.add("a", null);
    let why: unknown;
    const worker = new Worker(queue, async (job) => {
      // It may be aborted before the reply to the deletion is here.
      const aborted = new Promise((goOn) => job.signal.addEventListener("abort", goOn));
      await queue.del(job.id);
      await aborted;
      why = job.signal.reason;
    });
    const serving = worker.serve();
    await eventually(() => why !== undefined);
    worker.stop();
    await serving;
    assert.equal((why as Error).name, "LeaseLost");
    assert.equal((await queue.info())?.totalReleased, 0);
  });

  test(`${library}: the span of a handler is a child of the one that made the job`, async () => {
    const exporter = new InMemorySpanExporter();
    const provider = new NodeTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(exporter)],
    });
    provider.register();
    try {
      const queue = new Queue(server.client(library), "q", { tracing: tracing(provider) });
      await queue.add("a", { to: "ann" });
      const worker = new Worker<{ to: string }>(queue, (job) => {
        worker.stop();
        throw new RangeError(`nobody is ${job.body.to}`);
      });
      await worker.serve();
      const [made, handled] = exporter.getFinishedSpans();
      assert.equal(handled?.spanContext().traceId, made?.spanContext().traceId);
      assert.equal(handled?.parentSpanContext?.spanId, made?.spanContext().spanId);
      assert.equal(handled?.attributes["error.type"], "RangeError");
    } finally {
      await provider.shutdown();
      trace.disable();
      context.disable();
      propagation.disable();
    }
  });

  test(`${library}: a hook that fails is a failure of its job`, async () => {
    const queue = new Queue(server.client(library), "q");
    await queue.add("a", null, { attempts: 1 });
    const before = [() => Promise.reject(new Error("not today"))];
    const worker = new Worker(queue, () => assert.fail("the handler ran"), { before });
    const serving = worker.serve();
    await eventually(async () => (await queue.len("dead")) === 1);
    worker.stop();
    await serving;
    assert.equal((await queue.get("a"))?.reason, "Error: not today");
  });
}

test("what can't work is told at once", () => {
  const queue = new Queue(server.client("ioredis"), "q");
  assert.throws(() => new Worker([], () => {}), RangeError);
  assert.throws(() => new Worker([[queue, 0]], () => {}), RangeError);
  const other = new Queue(server.client("node-redis"), "q");
  assert.throws(() => new Worker([queue, other], () => {}), RangeError);
  const keys = new Map([queue, new Queue(queue.client, "r")].map(({ key }) => [key, 1]));
  assert.throws(() => sources(keys, 1, true), RangeError);
  assert.equal(sources(keys, 3, true).length, 2);
});

test("pauses grow to two seconds, and are no longer than they may be", () => {
  const waits = pauses();
  const found = Array.from({ length: 10 }, () => waits.next().value);
  for (const [at, pause] of found.entries()) {
    const longest = Math.min(50 * 2 ** at, 2_000);
    assert.ok(pause <= longest && pause >= longest / 2, `${pause} of ${longest}`);
  }
});

test("errors that pass are told from mistakes", () => {
  class ReplyError extends Error {}
  for (const word of ["READONLY", "LOADING", "MOVED", "OOM", "UNBLOCKED", "CLUSTERDOWN"]) {
    assert.equal(passes(new ReplyError(`${word} or so`)), true, word);
  }
  for (const word of ["ERR", "WRONGTYPE", "NOAUTH", "NOPERM", "WRONGPASS", "CROSSSLOT"]) {
    assert.equal(passes(new ReplyError(`${word} or so`)), false, word);
  }
  assert.equal(passes(new Error("Connection is closed.")), true);
  assert.ok(refusal(new ReplyError("ERR unknown command 'DQ.ADD'")) instanceof NoModule);
  assert.ok(refusal(new ReplyError("ERR syntax error")) instanceof Invalid);
});

test("who gives up waiting at a gate leaves nothing behind", async () => {
  const gate = new Gate();
  await gate.wait(1);
  const waiting = gate.wait(60_000);
  gate.open();
  await waiting;
  await gate.wait();
});
