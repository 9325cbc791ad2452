/** A cluster of three primaries, without replicas, for the tests of workers. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createClient } from "redis";
import { eventually } from "./server.ts";

const SLOTS = 16_384;

export interface Node {
  readonly port: number;
  readonly process: ChildProcess;
}

export class TestCluster {
  readonly nodes: readonly Node[];
  readonly #folder: string;

  private constructor(nodes: readonly Node[], folder: string) {
    this.nodes = nodes;
    this.#folder = folder;
  }

  static async start(): Promise<TestCluster> {
    const folder = await mkdtemp(join(tmpdir(), "dq-"));
    const nodes: Node[] = [];
    for (let at = 0; at < 3; at += 1) nodes.push(await started(folder));
    const cluster = new TestCluster(nodes, folder);
    const each = SLOTS / nodes.length;
    for (const [at, { port }] of nodes.entries()) {
      const [from, to] = [Math.ceil(at * each), Math.ceil((at + 1) * each) - 1];
      await said(port, "CLUSTER", "ADDSLOTSRANGE", String(from), String(to));
      await said(port, "CLUSTER", "MEET", "127.0.0.1", String(nodes[0]?.port));
    }
    for (const { port } of nodes) {
      await eventually(async () => {
        const info = await said(port, "CLUSTER", "INFO");
        return /cluster_state:ok/.test(info) && /cluster_known_nodes:3/.test(info);
      });
    }
    return cluster;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.nodes[0]?.port}`;
  }

  async stop(): Promise<void> {
    for (const { process } of this.nodes) {
      if (process.exitCode !== null || process.signalCode !== null) continue;
      const ended = once(process, "exit");
      process.kill("SIGKILL");
      await ended;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function started(folder: string): Promise<Node> {
  const port = await freePort();
  const words = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""];
  words.push("--cluster-enabled", "yes", "--cluster-config-file", `nodes-${port}.conf`);
  // A node that is away is no reason for the others to refuse what is theirs.
  words.push("--cluster-require-full-coverage", "no", "--cluster-node-timeout", "5000");
  words.push("--loadmodule", resolve(process.env.DQ_MODULE ?? ""));
  const child = spawn(process.env.DQ_SERVER ?? "redis-server", words, { stdio: "ignore" });
  await eventually(() =>
    said(port, "PING").then(
      () => true,
      () => false,
    ),
  );
  return { port, process: child };
}

/** The port of the cluster's bus is 10,000 above it. */
async function freePort(): Promise<number> {
  for (;;) {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as AddressInfo;
    probe.close();
    if (port < 55_000) return port;
  }
}

async function said(port: number, ...words: string[]): Promise<string> {
  const client = createClient({
    url: `redis://127.0.0.1:${port}`,
    socket: { reconnectStrategy: false },
  });
  client.on("error", () => {});
  await client.connect();
  try {
    return String(await client.sendCommand(words));
  } finally {
    client.destroy();
  }
}
