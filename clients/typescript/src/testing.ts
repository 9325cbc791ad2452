/**
 * A real server with the module, for a program's own tests: in node:test, vitest and others.
 *
 * The module is the file that DQ_MODULE names. The server is DQ_SERVER, or redis-server.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const START_WITHIN_MS = 30_000;

export class DQServer {
  readonly port: number;
  readonly #process: ChildProcess;
  readonly #folder: string;

  private constructor(port: number, process: ChildProcess, folder: string) {
    this.port = port;
    this.#process = process;
    this.#folder = folder;
  }

  /** Starts a server on a free port. Fails with its log when it doesn't come up. */
  static async start(): Promise<DQServer> {
    const { DQ_MODULE: module, DQ_SERVER: program = "redis-server" } = process.env;
    if (module === undefined) throw new Error("DQ_MODULE must be the path of the module, libdq.so");
    const folder = await mkdtemp(join(tmpdir(), "dq-"));
    const port = await freePort();
    const words = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder];
    words.push("--save", "", "--loadmodule", resolve(module));
    const log = openSync(join(folder, "server.log"), "w");
    const child = spawn(program, words, { stdio: ["ignore", log, log] });
    closeSync(log);
    const server = new DQServer(port, child, folder);
    await server.#started();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}/0`;
  }

  /** Removes all that is there, between two tests. */
  async flush(): Promise<void> {
    const said = await this.#said("FLUSHALL SYNC");
    if (said !== "+OK") throw new Error(`FLUSHALL: ${said}`);
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = once(this.#process, "exit");
      if (this.#process.kill("SIGKILL")) await ended;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #started(): Promise<void> {
    let failure: Error | undefined;
    this.#process.once("error", (error) => {
      failure = error;
    });
    const deadline = Date.now() + START_WITHIN_MS;
    while ((await this.#said("PING").catch(() => "")) !== "+PONG") {
      if (failure || this.#process.exitCode !== null || Date.now() > deadline) {
        const log = await readFile(join(this.#folder, "server.log"), "utf8");
        if (!failure) await this.stop();
        throw new Error(`the server did not start: ${failure?.message ?? log}`);
      }
      await pause(10);
    }
  }

  /** The reply to a command in plain text, which needs no client library. */
  async #said(command: string): Promise<string> {
    const socket = connect(this.port, "127.0.0.1");
    try {
      await once(socket, "connect");
      socket.write(`${command}\r\n`);
      const [reply] = await once(socket, "data");
      return String(reply).trim();
    } finally {
      socket.destroy();
    }
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  return port;
}
