// Replies as values of schemas: zod, other validators, JSON Schema.
import assert from "node:assert/strict";
import { test } from "node:test";

import { z } from "zod";

import engine from "#engine";
import { decodeInto, DecodeError, TambourError } from "@tambour/core";

const Stop = z.object({ name: z.string(), day: z.string().optional(), tags: z.array(z.string()).default([]) });
const Trip = z.object({
  title: z.string(),
  kind: z.enum(["short", "long"]),
  stations: z.array(Stop),
  notes: z.record(z.string(), z.string()),
  size: z.number().int().min(1),
  best: Stop.nullable(),
  extra: z.unknown(),
});

const REPLY = `Here it is:
\`\`\`json
{'title': 'To Lyon', 'kind': 'short', "stations": [
  {"name": "Dijon", "day": "2026-05-01", "tags": ["a", "b"]},
  {"name": "Lyon \\"centre\\""},
], "notes": {"a": "b", "c": "日本 \u{1f600}"}, "size": 2, "best": {"name": "Lyon"}, "extra": [1, {"x": null}],}
\`\`\`
`;
const VALUE = {
  title: "To Lyon",
  kind: "short",
  stations: [
    { name: "Dijon", day: "2026-05-01", tags: ["a", "b"] },
    { name: 'Lyon "centre"', tags: [] },
  ],
  notes: { a: "b", c: "日本 \u{1f600}" },
  size: 2,
  best: { name: "Lyon", tags: [] },
  extra: [1, { x: null }],
};

const bytes = new TextEncoder().encode(REPLY);
const CUTS = {
  text: REPLY,
  characters: [...REPLY],
  units: REPLY.split(""),
  bytes,
  "byte by byte": Array.from(bytes, (byte) => Uint8Array.of(byte)),
};

async function* later(chunks) {
  for (const chunk of chunks) {
    await undefined;
    yield chunk;
  }
}

/** Values of a reply with a copy of each, and what was thrown. */
function collect(partials) {
  const values = [];
  let error;
  try {
    for (const value of partials) values.push(structuredClone(value));
  } catch (thrown) {
    error = thrown;
  }
  return { values, error };
}

test("J-038: the value grows to the valid one, however the reply is cut", async () => {
  for (const [how, chunks] of Object.entries(CUTS)) {
    const partials = decodeInto(Trip, chunks);
    const { values, error } = collect(partials);
    assert.equal(error, undefined, how);
    assert.deepEqual(values.at(-1), VALUE, how);
    assert.deepEqual(partials.result, VALUE, how);
    // Values before the validator have the same text, without defaults.
    assert.equal(values.at(-2).stations[1].name, 'Lyon "centre"', how);
    assert.equal(values.at(-2).stations[1].tags, undefined, how);
    assert.ok(partials.findings.some((finding) => finding.code === "json_trailing_comma"), how);
    assert.equal(partials.outcome.metadata.dialect, "json_value");
    const source = typeof chunks === "string" || chunks instanceof Uint8Array ? [chunks] : chunks;
    assert.deepEqual(await decodeInto(Trip, later(source)).final(), VALUE, how);
  }
});

test("each state goes on from the one before", () => {
  const { values } = collect(decodeInto(Trip, CUTS.units));
  assert.ok(values.some((value) => value.title === "To Ly"));
  for (let at = 1; at < values.length - 1; at += 1) {
    const [before, after] = [values[at - 1], values[at]];
    assert.ok((after.title ?? "").startsWith(before.title ?? ""));
    assert.ok((before.stations ?? []).length <= (after.stations ?? []).length);
    // A number comes as a whole.
    assert.ok([undefined, 2].includes(before.size));
    // Halves of a character are not shown.
    assert.ok((after.notes?.c ?? "").isWellFormed());
  }
});

test("it is the same object that grows, and another one at the end", () => {
  const values = [...decodeInto(Trip, CUTS.characters)];
  assert.ok(values.length > 50);
  assert.ok(values.slice(0, -1).every((value) => value === values[0]));
  assert.notEqual(values.at(-1), values[0]);
});

test("unions, nested arrays, and values that are no objects", () => {
  const Shape = z.union([z.object({ kind: z.literal("circle"), radius: z.number() }), z.array(z.string())]);
  const Nested = z.array(z.object({ rows: z.array(z.array(z.number())) }));
  const Choice = z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("a"), a: z.string() }),
    z.object({ kind: z.literal("b"), b: z.boolean() }),
  ]);
  const Tree = z.object({ name: z.string(), get children() { return z.array(Tree).optional(); } });
  for (const [schema, value] of [
    [Shape, { kind: "circle", radius: 1.5 }],
    [Shape, ["a", "b"]],
    [Nested, [{ rows: [[1, 2], [], [-3.5e2]] }, { rows: [] }]],
    [Choice, { kind: "b", b: true }],
    [Tree, { name: "a", children: [{ name: "b", children: [{ name: "c" }] }] }],
    [z.string(), "abc"],
    [z.number(), 42],
    [z.null(), null],
    [z.array(z.boolean()), [true, false]],
  ]) {
    const text = JSON.stringify(value);
    for (const chunks of [text, [...text]]) assert.deepEqual(decodeInto(schema, chunks).final(), value, text);
  }
  const lengths = collect(decodeInto(Nested, [...'[{"rows": [[1, 2], [3]]}, {"rows": []}]'])).values.map((value) => value.length);
  assert.deepEqual(lengths, [...lengths].sort());
  assert.equal(lengths.at(-1), 2);
});

test("prose in brackets is not the value", () => {
  const { values } = collect(decodeInto(Stop, ["As [1] says {}: ", '{"name": "Ly', 'on"}']));
  assert.deepEqual(values.at(-1), { name: "Lyon", tags: [] });
  assert.ok(values.every((value) => !Array.isArray(value)));
  assert.deepEqual(values.at(-3), { name: "Ly" });
});

test("the last item is what the validator returns", () => {
  const schema = z.object({ day: z.coerce.date(), name: z.string().transform((name) => name.toUpperCase()) });
  const partials = decodeInto(schema, ['{"day": "2026-05-01", ', '"name": "a"}']);
  const { values } = collect(partials);
  assert.deepEqual(values.at(-2), { day: "2026-05-01", name: "a" });
  assert.deepEqual(values.at(-1), { day: new Date("2026-05-01"), name: "A" });
});

/** Validator without a JSON Schema. */
const validator = (validate) => ({ "~standard": { version: 1, vendor: "test", validate } });

test("validators without a JSON Schema, and ones whose schema JSON Schema cannot say", () => {
  const seen = [];
  const even = validator((value) => {
    seen.push(value);
    return value.n % 2 === 0 ? { value: value.n } : { issues: [{ message: "odd", path: ["n"] }] };
  });
  assert.equal(decodeInto(even, "{'n': 4}").final(), 4);
  assert.throws(() => decodeInto(even, "{'n': 3}").final(), {
    name: "DecodeError",
    code: "schema_invalid",
    message: "odd",
    issues: [{ message: "odd", path: ["n"] }],
  });
  // The validator sees the whole value once.
  assert.deepEqual(seen, [{ n: 4 }, { n: 3 }]);
  assert.throws(() => decodeInto(validator(() => ({ issues: [] })), "{}").final(), { code: "schema_invalid" });
  const thrown = new RangeError("validator");
  const throwing = validator(() => {
    throw thrown;
  });
  assert.throws(() => decodeInto(throwing, "{}").final(), (error) => error === thrown);
  const unsayable = z.object({ n: z.bigint().or(z.number()), at: z.date().optional() });
  assert.deepEqual(decodeInto(unsayable, '{"n": 1}').final(), { n: 1 });
});

test("asynchronous validators", async () => {
  const schema = z.object({ name: z.string().refine(async (name) => name !== "bad", "no such name") });
  assert.deepEqual(await decodeInto(schema, later(['{"name": ', '"good"}'])).final(), { name: "good" });
  await assert.rejects(decodeInto(schema, later(['{"name": "bad"}'])).final(), (error) => {
    assert.ok(error instanceof DecodeError);
    assert.equal(error.message, "no such name");
    assert.deepEqual(error.issues[0].path, ["name"]);
    return true;
  });
  const slow = validator(async (value) => ({ value: value.name }));
  assert.equal(await decodeInto(slow, later(['{"name": "a"}'])).final(), "a");
  // A source that is there would have to wait.
  assert.throws(() => decodeInto(slow, '{"name": "a"}').final(), TypeError);
  const failing = validator(() => Promise.reject(new RangeError("down")));
  assert.throws(() => decodeInto(failing, "{}").final(), TypeError);
  await assert.rejects(decodeInto(failing, later(["{}"])).final(), RangeError);
});

test("a plain JSON Schema", () => {
  const schema = { type: "object", required: ["a"], properties: { a: { type: "integer" } } };
  assert.deepEqual(decodeInto(schema, "{'a': 5,}").final(), { a: 5 });
  assert.throws(() => decodeInto(schema, '{"a": "x"}').final(), { name: "DecodeError", code: "json_mismatch" });
  assert.throws(() => decodeInto({ type: 5 }, "{}"), TambourError);
  for (const value of [null, [1], 5, "a", {}]) assert.deepEqual(decodeInto({}, JSON.stringify(value)).final(), value);
});

test("replies without a valid value", async () => {
  for (const [chunks, settings, code] of [
    [["there is none"], {}, "json_missing"],
    [[], {}, "json_missing"],
    [['{"title": 1}'], {}, "json_mismatch"],
    [[REPLY.replace("'short'", "'medium'")], {}, "json_mismatch"],
    [[REPLY.slice(0, 60)], {}, "json_incomplete"],
    [[REPLY.slice(0, 60)], { finish: "length" }, "json_incomplete"],
    [[REPLY.slice(0, 60)], { finish: null }, "json_incomplete"],
  ]) {
    for (const source of [chunks, later(chunks)]) {
      const partials = decodeInto(Trip, source, settings);
      assert.throws(() => partials.result, { name: "DecodeError", code: "not_ended" });
      await assert.rejects(
        async () => partials.final(),
        (error) => {
          assert.ok(error instanceof DecodeError && error instanceof TambourError);
          assert.equal(error.code, code);
          assert.deepEqual(error.findings, partials.findings);
          assert.ok(error.findings.some((finding) => finding.code === code));
          assert.deepEqual(error.issues, []);
          return true;
        },
      );
      // There is no second end.
      assert.equal((await partials.next()).done, true);
      await assert.rejects(async () => partials.final(), { code: "not_ended" });
    }
  }
});

test("settings are checked first", () => {
  for (const settings of [{ finish: "end" }, { nothing: 1 }, { "limits.input": -1 }, { dialect: "plain" }]) {
    assert.throws(() => decodeInto(Stop, ["{}"], settings), TambourError);
    assert.throws(() => decodeInto(Stop, later(["{}"]), settings), TambourError);
  }
});

test("a wrong chunk ends the reading", () => {
  const partials = decodeInto(Stop, ['{"name": "a', 5, '"}']);
  assert.deepEqual(partials.next().value, { name: "a" });
  assert.throws(() => partials.next(), TypeError);
  assert.equal(partials.next().done, true);
  assert.throws(() => partials.final(), { code: "not_ended" });
});

/** Number of units that cross to the engine and back while a reply is read. */
function countWork(length) {
  const { prototype } = engine.Session;
  const originals = { pushText: prototype.pushText, pushBytes: prototype.pushBytes };
  let work = 0;
  for (const [name, push] of Object.entries(originals)) {
    prototype[name] = function (data) {
      const answer = push.call(this, data);
      work += data.length + answer.length + 1;
      return answer;
    };
  }
  try {
    const reply = `{"a": "${"x".repeat(length / 2)}", "b": [${"1, ".repeat(length / 6)}1]}`;
    const chunks = reply.match(/.{1,4}/g);
    const partials = decodeInto({ type: "object" }, chunks);
    let items = 0;
    while (partials.next().done !== true) items += 1;
    assert.ok(items > chunks.length / 2);
    assert.equal(partials.result.a.length, length / 2);
  } finally {
    Object.assign(prototype, originals);
  }
  return work;
}

test("the work is linear in a reply of 64 KB in chunks of 4 characters", () => {
  const [half, whole] = [countWork(32 << 10), countWork(64 << 10)];
  assert.ok(whole > 64 << 10);
  assert.ok(whole < 2.1 * half, `${half}, ${whole}`);
});
