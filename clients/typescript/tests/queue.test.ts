/** A queue through both libraries: what the contract doesn't look at. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  after,
  chain,
  Exists,
  executed,
  group,
  Invalid,
  NoJob,
  type Pipeline,
  Queue,
  RAW,
  step,
} from "../src/index.ts";
import { LIBRARIES, pipelineOf } from "./clients.ts";
import { used } from "./server.ts";

const server = used();

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test("node-redis: a pipeline that is no transaction tells its first error alone", async () => {
  const client = server.client("node-redis");
  await new Queue(client, "orders").add("taken", 1);
  const pipeline = pipelineOf(client, false);
  new Queue(client, "orders").on(pipeline).add("taken", 2);
  await assert.rejects(executed(pipeline, { transaction: false }), Exists);
});

for (const library of LIBRARIES) {
  const queue = () => new Queue(server.client(library), "orders");

  test(`${library}: what the server refuses is an error of a type`, async () => {
    await queue().add("a", 1);
    await assert.rejects(queue().add("a", 1), Exists);
    await assert.rejects(queue().add("b", 1, { priority: 1000 }), Invalid);
    const added = await queue().add("a", 1, { nx: true });
    assert.deepEqual(added, { state: "taken", id: "a" });
  });

  test(`${library}: many jobs are added in one step, or none`, async () => {
    const hour = { hours: 1 };
    const jobs = [{ body: { n: 1 } }, { id: "ann", body: [2] }, { id: "bob", body: null }];
    const [first, ...others] = await queue().addMany(jobs, { delays: [0, hour, hour] });
    assert.deepEqual(others, ["ann", "bob"]);
    const [job, ...none] = await queue().pop({ count: 3 });
    assert.deepEqual([job?.id, job?.body, none], [first, { n: 1 }, []]);
    const again = [
      { id: "bob", body: 1 },
      { body: 1, id: Buffer.from([0xff]) },
    ];
    assert.deepEqual(await queue().addMany(again, { nx: true }), [null, "\udcff"]);
    const twice = [
      { id: "c", body: 1 },
      { id: "c", body: 1 },
    ];
    await assert.rejects(queue().addMany(twice), Invalid);
    await assert.rejects(queue().addMany([]), Invalid);
    await assert.rejects(queue().addMany([{ body: 1 }], { after: ["nobody"] }), NoJob);
    assert.equal(await queue().len(), 4);
  });

  test(`${library}: jobs are finished and others are taken in one step`, async () => {
    const named = ["a", "b", "c"].map((id) => ({ id, body: id }));
    await queue().addMany(named, { ttr: { hours: 1 } });
    const first = await queue().pop({ count: 2 });
    const both = await queue().finishAndPop(first, { count: 2, withdue: true });
    const [job, ...none] = both.jobs;
    assert.deepEqual([both.finished, job?.id, job?.body, none], [2, "c", "c", []]);
    assert.ok(job?.due instanceof Date);
    const waited = await queue().finishAndPop(both.jobs, { block: 20 });
    assert.deepEqual(waited, { finished: 1, jobs: [] });
    // Again, as after a broken connection; and by an id alone.
    const again = await queue().finishAndPop([{ id: "c", lease: job?.lease }, "a"]);
    assert.deepEqual(again, { finished: 0, jobs: [] });
    assert.equal(await queue().len(), 0);
  });

  test(`${library}: jobs of one of several queues are finished`, async () => {
    const [urgent, bulk] = ["urgent", "bulk"].map(
      (name) => new Queue(server.client(library), name),
    );
    await bulk?.addMany([
      { id: "a", body: 1 },
      { id: "b", body: 2 },
    ]);
    const jobs = (await urgent?.mpop(["bulk"])) ?? [];
    const both = await urgent?.finishAndMpop(jobs, ["bulk"], { count: 5 });
    const [b] = both?.jobs ?? [];
    assert.deepEqual([both?.finished, b?.key, b?.id], [1, "bulk", "b"]);
    await urgent?.add("c", 3);
    const claim = { key: "bulk", id: "b", lease: b?.lease };
    const more = await urgent?.finishAndMpop([claim], ["bulk"]);
    const [c] = more?.jobs ?? [];
    assert.deepEqual([more?.finished, c?.key, c?.id], [1, "urgent", "c"]);
    const last = await urgent?.finishAndMpop([{ id: "c", lease: c?.lease }], ["bulk"]);
    assert.deepEqual(last, { finished: 1, jobs: [] });
  });

  test(`${library}: one job at least and 10,000 at most are finished at once`, async () => {
    await queue().add("a", 1);
    const many = Array.from({ length: 10_001 }, (_, at) => ({ id: "b", lease: at + 1 }));
    for (const jobs of [[], many]) {
      await assert.rejects(queue().finishAndPop(jobs), Invalid);
      await assert.rejects(queue().finishAndMpop(jobs, ["other"]), Invalid);
    }
    const strange = [{ id: "a", lease: 1, key: "strange" }];
    await assert.rejects(queue().finishAndMpop(strange, ["other"]), Invalid);
    assert.equal(await queue().len("ready"), 1);
  });

  test(`${library}: a pipeline finishes jobs and takes others`, async () => {
    await queue().addMany([
      { id: "a", body: 1 },
      { id: "b", body: 2 },
    ]);
    const jobs = await queue().pop();
    const pipeline = pipelineOf(server.client(library), true);
    const later = queue().on(pipeline).finishAndPop(jobs, { block: 0 });
    const both = later.of(await executed(pipeline));
    assert.deepEqual([both.finished, both.jobs.map(({ id }) => id)], [1, ["b"]]);
  });

  test(`${library}: many jobs have a time each, or come due evenly`, async () => {
    const at = new Date(4_000_000_000_000);
    const later = new Date(4_000_003_600_000);
    const named = (...ids: string[]) => ids.map((id) => ({ id, body: 1 }));
    await queue().addMany(named("c", "d"), { at, spread: { hours: 2 } });
    await queue().addMany(named("e", "f"), { ats: [at, later] });
    for (const [id, due] of [
      ["c", at],
      ["d", later],
      ["e", at],
      ["f", later],
    ] as const) {
      assert.deepEqual((await queue().get(id))?.due, due);
    }
  });

  test(`${library}: dead jobs come back evenly`, async () => {
    await queue().addMany([{ body: 1 }, { body: 2 }], { attempts: 1 });
    for (const job of await queue().pop({ count: 2 })) await queue().bury(job.id, "*");
    assert.equal(await queue().kick({ count: 2, spread: { hours: 1 } }), 2);
    assert.deepEqual([await queue().len("ready"), await queue().len("delayed")], [1, 1]);
  });

  for (const transaction of library === "ioredis" ? [true, false] : [true]) {
    const kind = transaction ? "MULTI" : "pipeline";
    test(`${library}: each reply on a ${kind} is that of its command`, async () => {
      const client = server.client(library);
      await queue().add("taken", 1);
      const pipeline = pipelineOf(client, transaction);
      set(pipeline, "before", "1");
      const taken = queue().on(pipeline).add("taken", 2);
      set(pipeline, "between", "2");
      const added = queue().on(pipeline).add("new", 3);
      const jobs = queue().on(pipeline).peek({ count: 10 });
      set(pipeline, "behind", "3");
      const replies = await executed(pipeline, { transaction });
      assert.equal(replies.length, 6);
      assert.throws(() => taken.of(replies), Exists);
      assert.deepEqual(added.of(replies), { state: "added", id: "new" });
      assert.deepEqual(
        jobs.of(replies).map((job) => job.body),
        [1, 3],
      );
    });
  }

  test(`${library}: a pipeline that is no transaction`, async () => {
    const pipeline = pipelineOf(server.client(library), false);
    const added = queue().on(pipeline).add("a", 1);
    const length = queue().on(pipeline).len();
    const replies = await executed(pipeline, { transaction: false });
    assert.deepEqual([added.of(replies), length.of(replies)], [{ state: "added", id: "a" }, 1]);
  });

  test(`${library}: iterators go through all pages`, async () => {
    const at = new Date(Date.now() + 3_600_000);
    for (let n = 0; n < 25; n += 1) await queue().add(`job:${n}`, n, { at, group: `g${n}` });
    const delayed = await collected(queue().peekAll("delayed", { count: 4 }));
    assert.deepEqual(
      delayed.map((job) => job.body),
      Array.from({ length: 25 }, (_, n) => n),
    );
    assert.deepEqual(delayed[0]?.due, at);
    const ids = new Set(await collected(queue().scanAll({ count: 3 })));
    assert.equal(ids.size, 25);
    const groups = await collected(queue().groupsAll({ count: 4 }));
    assert.equal(new Set(groups.map((each) => each.group)).size, 25);
  });

  test(`${library}: a flow is added in one step, or not at all`, async () => {
    const flow = chain(step(1, "a"), group(step(2, "b"), step(3, "c")), step(4, "d"));
    const added = await queue().start(flow);
    assert.deepEqual(
      added.map(({ id }) => id),
      ["a", "b", "c", "d"],
    );
    assert.equal((await queue().get("d"))?.edges?.pending, 2);
    await queue().start(after(["d"], step(5, "e")));
    assert.equal(await queue().len("held"), 4);
  });

  test(`${library}: bytes that are no text come back as they were`, async () => {
    const data = Buffer.from([0, 255, 254, 10]);
    const bytes = new Queue(server.client(library), "bytes", { codec: RAW });
    await bytes.add("a", data);
    const [job] = await bytes.pop();
    assert.deepEqual(job?.body, data);
  });
}

function set(pipeline: Pipeline, key: string, value: string): void {
  (pipeline as unknown as { set(key: string, value: string): void }).set(key, value);
}
