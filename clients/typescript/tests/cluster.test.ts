/** A node of a cluster that is away holds up its own jobs, and no others. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Topic, Worker } from "../src/index.ts";
import { slotOf } from "../src/slots.ts";
import { close, connected, LIBRARIES } from "./clients.ts";
import { TestCluster } from "./cluster.ts";
import { eventually } from "./server.ts";

let cluster: TestCluster;
before(async () => {
  cluster = await TestCluster.start();
});
after(() => cluster?.stop());

for (const library of LIBRARIES) {
  for (const away of ["says nothing", "is gone"] as const) {
    // The first one is the one that the client was made with.
    const which = away === "says nothing" ? 2 : 1;
    test(`${library}: jobs of other nodes run once while one ${away}`, async () => {
      const client = await connected(library, cluster.url, { cluster: true });
      const topic = new Topic(client, `${library}-${which}`, 3);
      const runs = new Map<string, number>();
      const ours = (id: string) =>
        Math.floor((slotOf(topic.queueOf(id).name) * 3) / 16_384) !== which;
      const ids = Array.from({ length: 90 }, (_, n) => `${n}`);
      for (const id of ids) await topic.add(id, null, { attempts: 25 });
      const worker = new Worker(
        topic,
        async ({ id }) => {
          runs.set(id, (runs.get(id) ?? 0) + 1);
          await new Promise((goOn) => setTimeout(goOn, 400));
        },
        { concurrency: 15, ttr: 2_000, warn: () => {} },
      );
      const node = cluster.nodes[which]?.process;
      assert.ok(node);
      const serving = worker.serve();
      try {
        await eventually(() => ids.some((id) => !ours(id) && runs.has(id)));
        node.kill("SIGSTOP");
        if (away === "is gone") {
          await new Promise((goOn) => setTimeout(goOn, 6_000));
        }
        const others = ids.filter(ours);
        assert.ok(others.length > 20);
        const begun = Date.now();
        await eventually(() => others.every((id) => runs.has(id)));
        // As with a node less: 30 jobs in 5 places, 0.4 s each, and not a pause of seconds for each.
        assert.ok(Date.now() - begun < 12_000, `${Date.now() - begun} ms`);
        await new Promise((goOn) => setTimeout(goOn, 4_000));
        const twice = others.filter((id) => runs.get(id) !== 1);
        assert.deepEqual(twice, []);
        node.kill("SIGCONT");
        // The cluster is down until the node is back.
        const left = () => topic.length().catch(() => -1);
        await eventually(async () => (await left()) === 0);
      } finally {
        node.kill("SIGCONT");
        worker.stop();
        await serving;
        close(client);
      }
    });
  }
}
