/** A flow is added as a whole or not at all, whatever one of its steps is refused for. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  after,
  chain,
  Exists,
  type Flow,
  Full,
  group,
  Invalid,
  NoJob,
  Queue,
  RAW,
  type Step,
  step,
} from "../src/index.ts";
import { LIBRARIES, raw } from "./clients.ts";
import { used } from "./server.ts";

const server = used();

const wide = (many: number) => group(...Array.from({ length: many }, (_, n) => step(n, `w${n}`)));
const long = (part: Flow | Step): Flow => chain(step(0, "first"), wide(1_100), part);

for (const library of LIBRARIES) {
  const queue = () => new Queue(server.client(library), "q");

  /** Nothing is left that runs, and nothing but what was there before. */
  async function refused(flow: Flow | Step, kind: new (...given: never[]) => Error, there = 0) {
    await assert.rejects(queue().start(flow), kind);
    assert.equal(await queue().len(), there);
  }

  for (const [name, make] of [
    ["a chain", (last: Step) => chain(step(1, "a"), step(2, "b"), last)],
    ["a flow of more steps than one command takes", (last: Step) => long(last)],
  ] as const) {
    test(`${library}: ${name} with an id that is taken`, async () => {
      await queue().add("taken", 0, { delay: { hours: 1 } });
      await refused(make(step(3, "taken")), Exists, 1);
      // A done job: what follows it would be ready at once.
      await queue().add("done", 0, { keep: { hours: 1 } });
      const [job] = await queue().pop({ id: "done" });
      await queue().done("done", job?.lease ?? 0);
      await refused(chain(make(step(3, "done")), step(4, "z")), Exists, 2);
    });

    test(`${library}: ${name} with a body that is too long`, async () => {
      await refused(make(step("x".repeat(1_100_000), "c")), Invalid);
    });

    test(`${library}: ${name} with options that the server refuses`, async () => {
      await refused(make(step(3, "c", { priority: 300 })), Invalid);
      await refused(after(["nobody"], make(step(3, "c"))), NoJob);
      await refused(make(step(3, "c", { after: ["nobody"] })), NoJob);
    });

    test(`${library}: ${name} in a queue that is nearly full`, async () => {
      await queue().alter({ maxjobs: 2 });
      await refused(make(step(3, "c")), Full);
    });

    test(`${library}: ${name} with the same id twice`, async () => {
      await refused(chain(make(step(3, "x")), step(3, "x")), Exists);
    });
  }

  test(`${library}: a flow that just fits into a queue`, async () => {
    await queue().alter({ maxjobs: 3 });
    await queue().start(chain(step(1, "a"), step(2, "b"), step(3, "c")));
    assert.equal(await queue().len(), 3);
  });

  test(`${library}: a step behind more jobs than the server allows`, async () => {
    await refused(chain(wide(10_001), step(0, "last")), Invalid);
  });

  test(`${library}: a long flow is ready where it begins, and on hold where it says so`, async () => {
    const added = await queue().start(long(step(9, "last", { hold: true })));
    assert.equal(added.length, 1_102);
    assert.equal(await queue().len("ready"), 1);
    assert.equal((await queue().get("first"))?.edges?.onHold, false);
    assert.equal((await queue().get("w7"))?.edges?.onHold, false);
    assert.equal((await queue().get("last"))?.edges?.onHold, true);
    assert.equal((await queue().get("last"))?.edges?.pending, 1_100);
  });

  test(`${library}: NX leaves a job that is there, and no flow leaves a trace of its own`, async () => {
    await queue().add("b", 0, { delay: { hours: 1 } });
    const added = await queue().start(
      chain(step(1, "a"), step(2, "b", { nx: true }), step(3, "c")),
    );
    assert.deepEqual(
      added.map(({ state }) => state),
      ["added", "taken", "added"],
    );
    assert.equal(await queue().len(), 3);
    assert.deepEqual(await queue().start(group()), []);
  });

  test(`${library}: a flow of a codec that can't say nothing`, async () => {
    const bytes = new Queue(server.client(library), "raw", {
      codec: RAW,
    });
    await bytes.start(chain(step("a", "a"), step("b", "b")));
    assert.equal(await bytes.len(), 2);
    await raw(bytes.client, [Buffer.from("DEL"), Buffer.from("raw")]);
  });
}
