/** The commands take what the contract says, and read all that it shows. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type Command, Key } from "../src/commands/base.ts";
import { commands } from "../src/commands/index.ts";
import { EDGES, GROUP, INFO, JOB, SCHEDULE } from "../src/shown.ts";
import { ms, options } from "../src/words.ts";
import { argumentsIn, methodOf, type Raw } from "./values.ts";

interface Parameter {
  readonly name: string;
  readonly type: string;
  readonly token?: string;
  readonly repeated?: boolean;
  readonly optional?: boolean;
  readonly values?: readonly string[];
  readonly fields?: readonly Parameter[];
}
interface Contract {
  readonly commands: Record<string, { readonly call: readonly Parameter[] }>;
  readonly fields: Record<string, Record<string, string>>;
}

const folder = process.env.DQ_CONTRACT ?? "../contract";
const contract: Contract = JSON.parse(readFileSync(`${folder}/commands.json`, "utf8"));

function sample({ type, values, fields, repeated }: Parameter): unknown {
  const samples: Record<string, unknown> = {
    string: "text",
    bytes: "bytes",
    integer: 7,
    lease: 8,
    duration: { ms: 1500 },
    time: { "unix-ms": 1_795_265_400_000 },
    flag: true,
    choice: values?.[0],
    add: { body: "next" },
    record: Object.fromEntries((fields ?? []).map((part) => [part.name, sample(part)])),
  };
  return repeated ? [samples[type]] : samples[type];
}

for (const [name, { call }] of Object.entries(contract.commands)) {
  test(`${name} takes all that the grammar knows`, () => {
    const others = call.filter(({ type }) => type !== "key");
    for (const option of others) {
      const given = others.filter((one) => one === option || !one.optional);
      const told: Raw = Object.fromEntries(given.map((one) => [one.name, sample(one)]));
      const words = wordsOf(name, told);
      assert.equal(words[0], `DQ.${name.toUpperCase()}`);
      for (const { token } of given)
        if (token) assert.ok(words.includes(token), `${token}: ${words}`);
      for (const part of option.fields ?? []) {
        if (part.token) assert.ok(words.includes(part.token), `${part.token}: ${words}`);
      }
    }
  });
}

function wordsOf(name: string, told: Raw): string[] {
  const given = argumentsIn(name, told);
  if (name === "mpop") given.splice(-1, 0, ["other"]);
  const build = commands[methodOf(name, told) as keyof typeof commands] as (
    ...given: unknown[]
  ) => Command<unknown>;
  return build(new Key("q"), ...given).words.map(String);
}

const KINDS: Record<string, string> = { string: "text", duration: "integer" };
const SHOWN = { job: JOB, edges: EDGES, schedule: SCHEDULE, info: INFO, group: GROUP };

for (const [name, kinds] of Object.entries(SHOWN)) {
  test(`all fields of ${name} are read`, () => {
    const plain = Object.entries(kinds).map(([field, kind]) => [field, kind.replace("?", "")]);
    const told = Object.entries(contract.fields[name] ?? {});
    const wanted = told.map(([field, type]) => [field, KINDS[type] ?? type]);
    assert.deepEqual(Object.fromEntries(plain), Object.fromEntries(wanted));
  });
}

test("a duration is never shorter than it was said", () => {
  assert.equal(ms(1.2), 2);
  assert.equal(ms({ days: 1, hours: 1, minutes: 1, seconds: 1, milliseconds: 0.5 }), 90_061_001);
  assert.deepEqual(options({ delay: 0.1, attempts: 3, nx: false, hold: true }), [
    ...["DELAY", "1", "ATTEMPTS", "3", "HOLD"],
  ]);
});
