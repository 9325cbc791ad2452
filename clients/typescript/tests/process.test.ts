/** What a handler may do to the process, and that the process ends when it is told to. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { Queue, Worker } from "../src/index.ts";
import { firstOf, Gate } from "../src/worker/gate.ts";
import { LIBRARIES, type Library } from "./clients.ts";
import { eventually, used } from "./server.ts";

const server = used();
const CLIENTS = new URL("./clients.js", import.meta.url);
const INDEX = new URL("../src/index.js", import.meta.url);

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

interface Running {
  readonly signal: (name: NodeJS.Signals) => void;
  /** How it ended, and when, in milliseconds from `begun`. */
  readonly ended: Promise<{ code: number | null; signal: string | null; at: number }>;
  readonly said: () => string;
}

/** A program with a worker of `q`, whose handler is this text. */
function program(library: Library, handler: string, options = "{}", behind = ""): Running {
  const folder = mkdtempSync(join(tmpdir(), "dq-"));
  const path = join(folder, "program.mjs");
  writeFileSync(
    path,
    `import { Queue, Worker } from "${INDEX}";
     import { close, connected } from "${CLIENTS}";
     const client = await connected("${library}", "${server.url}");
     const worker = new Worker(new Queue(client, "q"), ${handler}, ${options});
     ${behind}
     await worker.run();
     console.log("over");
     close(client);`,
  );
  const child = spawn(process.execPath, [path], { stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data) => {
      said += data;
    });
  }
  const ended = once(child, "exit").then(([code, signal]) => {
    rmSync(folder, { recursive: true });
    return { code, signal, at: Date.now() };
  });
  return { signal: (name) => child.kill(name), ended, said: () => said };
}

for (const library of LIBRARIES) {
  const queue = () => new Queue(server.client(library), "q");

  test(`${library}: run leaves no timer behind, whatever the grace time`, async () => {
    for (const grace of ["30_000", "{ days: 30 }", "Infinity"]) {
      const running = program(library, "() => {}", `{ grace: ${grace} }`);
      await queue().add("a", null);
      await eventually(async () => (await queue().len()) === 0);
      const begun = Date.now();
      running.signal("SIGTERM");
      const { code, at } = await running.ended;
      assert.equal(code, 0, running.said());
      assert.ok(at - begun < 4_000, `${at - begun} ms`);
    }
  });

  test(`${library}: a grace time of 30 days lets jobs end, and the second signal ends it`, async () => {
    await queue().add("a", null, { attempts: 1 });
    await queue().add("b", null, { attempts: 1 });
    const handler = `async ({ id }) => {
      console.log("begun");
      await new Promise((goOn) => id === "a" ? setTimeout(goOn, 1_000) : setInterval(() => {}, 50));
    }`;
    const running = program(library, handler, "{ grace: { days: 30 } }");
    await eventually(() => running.said().split("begun").length === 3);
    running.signal("SIGTERM");
    await eventually(async () => (await queue().get("a")) === null);
    assert.equal((await queue().get("b"))?.state, "reserved");
    running.signal("SIGTERM");
    const { code } = await running.ended;
    assert.equal(code, 0, running.said());
    assert.match(running.said(), /handlers still run: q: "b"/);
    assert.equal((await queue().get("b"))?.state, "ready");
  });

  test(`${library}: the process ends after the grace time, whatever its handlers do`, async () => {
    await queue().add("a", null, { attempts: 1 });
    const handler = `async (job) => {
      console.log("begun");
      for (;;) {
        try { await new Promise((goOn) => setTimeout(goOn, 20)); job.check(); } catch {}
      }
    }`;
    const running = program(library, handler, "{ grace: 200 }");
    await eventually(() => running.said().includes("begun"));
    running.signal("SIGINT");
    const { code } = await running.ended;
    assert.equal(code, 0, running.said());
    assert.match(running.said(), /over/);
    assert.equal((await queue().get("a"))?.state, "ready");
  });

  test(`${library}: an error that a handler lets escape is its failure, and the worker goes on`, async () => {
    const poison = {
      timer: `setTimeout(() => { throw new Error("timer") }, 20)`,
      tick: `process.nextTick(() => { throw new Error("tick") })`,
      event: `new (await import("node:events")).EventEmitter().emit("error", new Error("event"))`,
      emitted: `{ const e = new (await import("node:events")).EventEmitter(); setTimeout(() => e.emit("error", new Error("emitted")), 5) }`,
      listener: `job.signal.addEventListener("abort", () => { throw new Error("listener") }), void 0`,
    };
    const cases = Object.entries(poison).map(([id, text]) => `case "${id}": ${text}; break;`);
    const handler = `async (job) => {
      console.log("begun", job.id);
      switch (job.id) { ${cases.join("\n")} default: return job.id; }
      await new Promise(() => setInterval(() => {}, 50));
    }`;
    const running = program(library, handler, "{ concurrency: 1, ttr: 2_000, grace: 500 }");
    for (const id of ["timer", "tick", "event", "emitted"]) {
      await queue().add(id, null, { attempts: 1 });
      await eventually(async () => (await queue().get(id))?.state === "dead");
      assert.match((await queue().get(id))?.reason ?? "", new RegExp(`Error.*: ${id}`));
    }
    await queue().add("listener", null, { attempts: 1 });
    await eventually(() => running.said().includes("begun listener"));
    await queue().del("listener");
    await eventually(() => /threw outside of its promise.*Error: listener/s.test(running.said()));
    running.signal("SIGTERM");
    assert.equal((await running.ended).code, 0, running.said());
  });

  test(`${library}: of many jobs, the one whose error escapes is found at its next attempt`, async () => {
    const handler = `async (job) => {
      if (job.id === "poison") setTimeout(() => { throw new Error("timer") }, 5);
      if (job.id === "poison" && job.attempt > 1) await new Promise(() => {});
      await new Promise((goOn) => setTimeout(goOn, 1_500));
      if (job.id === "poison") throw new Error("again");
      return job.id;
    }`;
    await queue().add("poison", null, { attempts: 2 });
    for (let n = 0; n < 5; n += 1) await queue().add(`${n}`, null, { attempts: 1 });
    const running = program(library, handler);
    await eventually(async () => (await queue().get("poison"))?.state === "dead");
    assert.match((await queue().get("poison"))?.reason ?? "", /timer/);
    await eventually(async () => (await queue().len()) === 1);
    running.signal("SIGTERM");
    assert.equal((await running.ended).code, 0, running.said());
  });

  test(`${library}: a rejected promise that no code handles ends no worker`, async () => {
    await queue().add("a", null);
    await queue().add("b", null);
    const handler = `async ({ id }) => { if (id === "a") Promise.reject(new Error("floating")); }`;
    const running = program(library, handler, "{ concurrency: 1 }");
    await eventually(async () => (await queue().len()) === 0);
    await eventually(() => running.said().includes("floating"));
    running.signal("SIGTERM");
    assert.equal((await running.ended).code, 0, running.said());
  });

  test(`${library}: an error of the program itself ends it, as without a worker`, async () => {
    const behind = `setTimeout(() => { throw new Error("mine") }, 200);`;
    const { code } = await program(library, "() => {}", "{}", behind).ended;
    assert.equal(code, 1);
  });

  test(`${library}: a handler that holds the event loop is named`, async () => {
    await queue().add("a", null);
    const handler = `async ({ id }) => {
      for (const end = Date.now() + 2_500; Date.now() < end;);
      await new Promise((goOn) => setTimeout(goOn, 3_000));
    }`;
    const running = program(library, handler, "{ ttr: 1_000, concurrency: 1 }");
    await eventually(async () => (await queue().len()) === 0);
    running.signal("SIGTERM");
    await running.ended;
    assert.match(running.said(), /held the event loop for \d+ ms.*q: "a"/);
  });

  test(`${library}: a worker that is stopped before it serves ends at once`, async () => {
    await queue().add("a", null);
    const worker = new Worker(queue(), () => assert.fail("it ran"));
    worker.stop();
    await worker.serve();
    assert.equal(await queue().len("ready"), 1);
    await assert.rejects(worker.serve(), /serves once/);
  });

  test(`${library}: a worker is stopped while the server is away`, async () => {
    const running = program(library, "() => {}");
    await queue().add("a", null);
    await eventually(async () => (await queue().len()) === 0);
    await server.away(async () => {
      running.signal("SIGTERM");
      assert.equal((await running.ended).code, 0, running.said());
    });
  });
}

test("a wait that one gate ends leaves no timer and no listener", async () => {
  const [one, other] = [new Gate(), new Gate()];
  const waiting = firstOf([one, other], 60_000);
  one.open();
  await waiting;
  await firstOf([other], 1);
  await firstOf([other], 0);
  const long = firstOf([other], 2 ** 40);
  const isOver = await Promise.race([long.then(() => true), firstOf([new Gate()], 50)]);
  assert.equal(isOver, undefined);
  other.open();
  await long;
});
