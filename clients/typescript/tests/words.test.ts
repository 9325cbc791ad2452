/** Values as words of a command: lengths of time, and text that isn't UTF-8. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Key } from "../src/commands/base.ts";
import { finishAndMpop, finishAndPop, mpop, pop } from "../src/commands/consume.ts";
import { addMany, addWords } from "../src/commands/produce.ts";
import { JSON_CODEC, Retry } from "../src/index.ts";
import { type Duration, ms, options, sent, span, text } from "../src/words.ts";

const NO_LENGTHS: readonly [string, unknown][] = [
  ["an unknown part", { secs: 5 }],
  ["an unknown part beside a known one", { minutes: 1, second: 5 }],
  ["a part that is text", { seconds: "5" }],
  ["no part", {}],
  ["a part that is undefined", { seconds: undefined }],
  ["null", null],
  ["text", "5"],
  ["true", true],
  ["a time", new Date()],
  ["a list", [5]],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["a part that is NaN", { seconds: Number.NaN }],
  ["a part without an end", { days: Number.POSITIVE_INFINITY }],
];

for (const [name, value] of NO_LENGTHS) {
  test(`${name} is no length of time`, () => {
    const isWrong = (error: unknown) => error instanceof TypeError || error instanceof RangeError;
    assert.throws(() => ms(value as Duration), isWrong);
    if (value === true) return;
    assert.throws(() => options({ delay: value as Duration }), isWrong);
    assert.throws(() => new Retry("later", { in: value as Duration }), isWrong);
  });
}

test("a wait without an end is a span, and has no milliseconds", () => {
  assert.equal(span({ days: Number.POSITIVE_INFINITY }), Number.POSITIVE_INFINITY);
  assert.equal(span({ days: 30 }), 30 * 86_400_000);
  assert.throws(() => span(Number.NaN), RangeError);
});

test("a retry in the past is refused where it is made", () => {
  assert.throws(() => new Retry("later", { in: -1 }), /before now/);
});

test("an option that is an object of another kind is refused", () => {
  assert.throws(() => options({ priority: {} as never }), TypeError);
  assert.throws(() => options({ at: { minutes: 5 } as never }), TypeError);
  assert.throws(() => options({ backoff: { base: 5 } as never }), TypeError);
  assert.throws(() => options({ rate: { n: 5 } as never }), TypeError);
});

test("a value of another type is refused, and takes no other option for its own", () => {
  for (const [given, what] of [
    [{ group: true, hold: true }, /^group: an id or a name is text or bytes, not true/],
    [{ group: 5 }, /^group: an id or a name/],
    [{ reason: ["a", 5] }, /^reason: an id or a name/],
    [{ at: 1_795_000_000_000 }, /^at: a time is a Date, not 1795000000000/],
    [{ until: "tomorrow" }, /^until: a time is a Date/],
    [{ at: new Date(Number.NaN) }, /^at: a time is a Date, not Invalid Date/],
    [{ priority: true }, /^priority: a number, not true/],
    [{ attempts: "3" }, /^attempts: a number, not '3'/],
    [{ min: "3" }, /^min: a number, not '3'/],
    [{ linger: "5" }, /^linger: a length of time is milliseconds or parts/],
    [{ nx: 1 }, /^nx: true or false, not 1/],
    [{ hold: "yes" }, /^hold: true or false/],
    [{ backoff: 5 }, /^backoff: not 5/],
    [{ rate: "5/s" }, /^rate: not '5\/s'/],
    [{ cron: true }, /^cron: an id or a name/],
    [{ sink: null }, /^sink: not null/],
    [{ spread: "5" }, /^spread: a length of time is milliseconds or parts/],
    [{ delays: 5 }, /^delays: a list of lengths of time, not 5/],
    [{ delays: [5, "5"] }, /^delays: a length of time is milliseconds or parts.*not '5'/],
    [{ ats: new Date(0) }, /^ats: a list of times, not 1970/],
    [{ ats: [5] }, /^ats: a time is a Date, not 5/],
  ] as const) {
    assert.throws(() => options(given as never), { name: "TypeError", message: what });
  }
  for (const name of ["after", "before"]) {
    const job = { body: 1, [name]: "bc" } as never;
    assert.throws(() => addWords(new Key("q"), job), /a list of ids, not 'bc'/);
    const many = () => addMany(new Key("q"), [{ body: 1 }], { [name]: "bc" });
    assert.throws(many, /a list of ids, not 'bc'/);
  }
});

test("what is no list of jobs is refused, and a job with options of its own", () => {
  for (const [jobs, what] of [
    ["ab", /^jobs: a list of them, not 'ab'/],
    [{ body: 1 }, /^jobs: a list of them, not \{ body: 1 \}/],
    [["a"], /^jobs: each is \{ id, body \} or \{ body \}, not 'a'/],
    [[null], /^jobs: each is .* not null/],
    [[["a", 1]], /^jobs: each is .* not \[ 'a', 1 \]/],
    [[{ id: "a", body: 1, delay: 5 }], /^jobs: each is .* not \{ id: 'a', body: 1, delay: 5 \}/],
    [[{ id: 5, body: 1 }], /an id or a name is text or bytes, not 5/],
    [[{ id: "a" }], /JSON has no word for undefined/],
  ] as const) {
    const made = () => addMany(new Key("q"), jobs as never);
    assert.throws(made, { name: "TypeError", message: what });
  }
});

test("a batch waits to be worth it", () => {
  const key = new Key("q");
  const given = { count: 9, min: 3, linger: { seconds: 5 }, block: 0 };
  const words = ["COUNT", "9", "MIN", "3", "LINGER", "5000", "BLOCK", "0"];
  const finish = ["FINISH", "1", "a", "*"];
  assert.deepEqual(pop(key, given).words, ["DQ.POP", "q", ...words]);
  assert.deepEqual(mpop(key, ["b"], given).words, ["DQ.MPOP", "2", "q", "b", ...words]);
  assert.deepEqual(finishAndPop(key, ["a"], given).words, ["DQ.POP", "q", ...words, ...finish]);
  assert.deepEqual(finishAndMpop(key, ["a"], [], given).words, [
    ...["DQ.MPOP", "1", "q", ...words],
    ...["FINISH", "q", "1", "a", "*"],
  ]);
});

test("jobs of another queue are not finished, nor what is no list of jobs", () => {
  const [a, b, c] = [
    { id: "a", lease: 1 },
    { id: "b", key: "b" },
    { id: "c", key: "q" },
  ];
  const key = new Key("q");
  assert.deepEqual(finishAndPop(key, [a, c, "d"], { count: 2, block: 5 }).words, [
    ...["DQ.POP", "q", "COUNT", "2", "BLOCK", "5"],
    ...["FINISH", "3", "a", "1", "c", "*", "d", "*"],
  ]);
  assert.deepEqual(finishAndMpop(key, [b], ["b"]).words, [
    ...["DQ.MPOP", "2", "q", "b", "FINISH", "b", "1", "b", "*"],
  ]);
  const [other, several] = [
    /^jobs of the queue "b" can't be .* "q"/,
    /^jobs of several .* "q", "b"/,
  ];
  assert.throws(() => finishAndPop(key, [b]), { name: "RangeError", message: other });
  assert.throws(() => finishAndPop(key, [a, b]), { name: "RangeError", message: several });
  assert.throws(() => finishAndMpop(key, [c, b], ["b"]), { name: "RangeError", message: several });
  for (const jobs of ["ab", { id: "a" }, 5, null]) {
    const what = { name: "TypeError", message: /^jobs: a list of them, not / };
    assert.throws(() => finishAndPop(key, jobs as never), what);
    assert.throws(() => finishAndMpop(key, jobs as never, []), what);
  }
});

test("bytes that aren't UTF-8 are text that is sent as these bytes", () => {
  const cases = [
    Buffer.from([0x80]),
    Buffer.from([0xff, 0x00, 0x61, 0xc3]),
    Buffer.from([0xe2, 0x82, 0x61, 0xe2, 0x82, 0xac]),
    Buffer.from([0xed, 0xa0, 0x80]), // a surrogate in what would be UTF-8
    Buffer.from([0xf0, 0x9f, 0x98]),
    Buffer.from("a\u{1f600}\ufffd"),
    ...Array.from({ length: 256 }, (_, n) => Buffer.from([n, 0x41, 255 - n])),
  ];
  const seen = new Set<string>();
  for (const data of cases) {
    const read = text(data);
    assert.deepEqual(Buffer.from(sent(read)), data);
    seen.add(read);
  }
  assert.equal(seen.size, cases.length);
  assert.equal(text(Buffer.from("köln")), "köln");
});

test("half of a surrogate pair is no id", () => {
  assert.throws(() => sent("a\ud800"), TypeError);
  assert.equal(sent("\u{1f600}"), "\u{1f600}");
});

test("an id is text or bytes", () => {
  for (const id of [5, null, undefined, {}, ["a"]]) {
    assert.throws(() => sent(id as never), /text or bytes/);
  }
});

test("a body that isn't UTF-8 is no JSON", () => {
  assert.throws(() => JSON_CODEC.decode(Buffer.from([0x22, 0xff, 0x22])), TypeError);
  assert.equal(JSON_CODEC.decode(Buffer.from('"\\ud800"')), "\ud800");
});
