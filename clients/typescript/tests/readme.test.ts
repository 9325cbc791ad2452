/** The programs of README.md do what is said of them, with either library. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Queue } from "../src/index.ts";
import { LIBRARIES, type Library } from "./clients.ts";
import { used } from "./server.ts";

const server = used();
const readme = readFileSync(`${process.env.DQ_CLIENT ?? "."}/README.md`, "utf8");

/** As README.md says how. */
function withLibrary(program: string, library: Library): string {
  if (library === "node-redis") {
    return program.replace("createClient()", `createClient({ url: "${server.url}" })`);
  }
  return program
    .replace('{ createClient } from "redis"', '{ Redis } from "ioredis"')
    .replace("await createClient().connect()", `new Redis("${server.url}")`)
    .replace("destroy", "disconnect");
}

async function ended(program: string): Promise<string[]> {
  const { lines, end } = started(program);
  const found: string[] = [];
  for await (const line of lines) found.push(line);
  assert.equal(await end, 0);
  return found;
}

function started(program: string) {
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
  const end = once(child, "exit").then(([code]) => code as number);
  return { child, lines: createInterface({ input: child.stdout }), end };
}

for (const library of LIBRARIES) {
  test(`${library}: the start takes no longer than it says`, async () => {
    // Where the package finds itself and its libraries by their names.
    const folder = mkdtempSync(join(dirname(fileURLToPath(import.meta.url)), "start-"));
    try {
      const blocks = [...readme.matchAll(/<!-- start:.*?-->\n```js\n(.*?)```/gs)];
      const [producer, worker] = blocks.map(([, program = ""], at) => {
        const path = join(folder, `${at}.mjs`);
        writeFileSync(path, withLibrary(program, library));
        return path;
      });
      assert.ok(producer && worker);
      const begun = Date.now();
      assert.deepEqual(await ended(producer), ["{ state: 'added', id: 'welcome:ann' }"]);
      assert.deepEqual(await ended(producer), ["{ state: 'taken', id: 'welcome:ann' }"]);
      const working = started(worker);
      const [line] = await once(working.lines, "line");
      assert.equal(line, "to ann@example.com attempt 1");
      assert.ok(Date.now() >= begun + 3_000);
      working.child.kill("SIGINT");
      assert.equal(await working.end, 0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

test("names of the readme are there", () => {
  const queue = new Queue(server.client("ioredis"), "q") as unknown as Record<string, unknown>;
  const names = new Set([...readme.matchAll(/\borders\.(\w+)\(/g)].map(([, name]) => name ?? ""));
  assert.ok(names.size > 5);
  for (const name of names) assert.equal(typeof queue[name], "function", name);
});
