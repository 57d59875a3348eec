// Hostile values: they end in an error of the right kind, in events or in findings, and never with the process.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import engine from "#engine";
import * as core from "@tambour/core";
import * as prompts from "@tambour/core/prompts";
import { check, decode, decodeInto, Pipeline, State, TambourError } from "@tambour/core";

const PLAIN = { dialect: "plain" };
const answer = (events) => events.filter((event) => event.event === "final_delta").map((event) => event.data.text).join("");

/** Fails unless a call throws an error that a caller can expect. */
function refuses(call, about = String(call)) {
  assert.throws(
    call,
    (error) => {
      const isExpected = [TambourError, TypeError, RangeError].some((kind) => error instanceof kind);
      assert.ok(isExpected, `${about}: ${error}`);
      assert.notEqual(error.code, "internal", `${about}: ${error}`);
      return true;
    },
    about,
  );
}

/** The names of all properties that any object has. */
const shared = () => [Object, Array, Function, String, Number].map((kind) => Reflect.ownKeys(kind.prototype).length);
const before = shared();

afterEach(() => {
  // No prototype was changed.
  assert.deepEqual(shared(), before);
  assert.equal({}.polluted, undefined);
  assert.equal([].polluted, undefined);
});

const LONE = ["\ud83d", "\udc00", "\udc00\ud83d", "\ud83d\ud83d\ude00", "a\ud83db", "\ud800\u0041"];

test("lone surrogates are replaced and reported, wherever a chunk ends (J-038)", () => {
  for (const text of LONE) {
    for (const chunks of [[text], text.split(""), [text, new Uint8Array([33])], [new Uint8Array([33]), text]]) {
      const reader = decode(["It ", ...chunks, " is"], PLAIN);
      const events = [...reader];
      assert.ok(answer(events).includes("\ufffd"), JSON.stringify(chunks));
      assert.ok(answer(events).endsWith(" is"));
      assert.ok(reader.findings.some((finding) => finding.code === "not_utf8"), JSON.stringify(chunks));
    }
    const pipeline = new Pipeline(PLAIN);
    pipeline.push(`It is${text}`);
    pipeline.finish();
    assert.ok(pipeline.findings.some((finding) => finding.code === "not_utf8"));
    assert.ok(core.check(text, { contract: "plain" }).findings.some((finding) => finding.code === "not_utf8"));
  }
  // A pair that is whole again is none.
  const reader = decode(["\ud83d", "", "\ude00"], PLAIN);
  assert.equal(answer([...reader]), "\u{1f600}");
  assert.deepEqual(reader.findings, []);
});

test("lone surrogates in arguments are replaced", () => {
  for (const text of LONE) {
    const pipeline = new Pipeline({ dialect: "toolcall", tools: { [text]: { type: "object" } }, caller: text });
    pipeline.setUsage({ [text]: text });
    const events = [...pipeline.pushReasoning(text), ...pipeline.pushCall(text, JSON.stringify({ a: text }))];
    events.push(...pipeline.fail(text, { code: text }));
    assert.equal(events.at(-1).event, "error");
    assert.ok(events.at(-1).data.message.includes("\ufffd"));
    const state = new State({ [text]: text });
    assert.ok(JSON.stringify(state.value).includes("\ufffd"));
    assert.equal(core.sanitize(text), text.toWellFormed());
    assert.equal(prompts.migrateMacros(text).text, text.toWellFormed());
    assert.deepEqual(core.loads(`{"a": "${text}"}`), { a: text.toWellFormed() });
    const skein = { blocks: [{ tag: "a", text: "{{ name }}" }] };
    assert.ok(prompts.renderPrompt(skein, { name: text }).text.includes("\ufffd"));
  }
  // An escape in a text is no surrogate.
  const escape = "\\ud83d \\\\udc00 \\u0041";
  assert.deepEqual(new State({ [escape]: escape }).value, { [escape]: escape });
  const both = `${escape}\ud83d\\\ud83d`;
  assert.deepEqual(new State({ both }).value, { both: both.toWellFormed() });
});

// Engines differ in what they do with a buffer that was given away.
const detached = () => {
  const bytes = new Uint8Array([65, 66]);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return bytes;
};

const WRONG = [undefined, null, 0, NaN, -1, 1n, true, Symbol("a"), () => "a", {}, new Date(), new Map(), /a/, Object.create(null)];

test("wrong types of chunks and texts", () => {
  for (const value of [...WRONG, ["a"]]) {
    const about = Object.prototype.toString.call(value);
    refuses(() => new Pipeline(PLAIN).push(value), about);
    refuses(() => [...decode([value], PLAIN)], about);
    for (const name of ["check", "repair", "loads", "loadsWithFindings", "sanitize", "sanitizeWithFindings"]) {
      refuses(() => core[name](value), `${name}: ${about}`);
    }
    for (const name of ["importCard", "migrateMacros"]) refuses(() => prompts[name](value), `${name}: ${about}`);
  }
  for (const value of WRONG.filter((value) => !(value instanceof Map))) {
    refuses(() => decode(value, PLAIN));
    refuses(() => decodeInto({}, value));
  }
  for (const value of [null, 0, "schema", Symbol("a")]) refuses(() => decodeInto(value, "{}"));
  try {
    new Pipeline(PLAIN).push(detached());
  } catch (error) {
    assert.ok(error instanceof TypeError);
  }
});

test("wrong types of arguments", () => {
  for (const value of [1n, Symbol("a"), () => 1]) {
    refuses(() => new Pipeline(PLAIN).setUsage(value));
    refuses(() => new Pipeline(PLAIN).insert({ event: value, data: {} }));
    refuses(() => new Pipeline(PLAIN).finish(value));
    refuses(() => new Pipeline({ dialect: value }));
    refuses(() => new State(value));
    refuses(() => State.restore(value));
    refuses(() => new State().apply(value));
    refuses(() => new State().forget(value));
    refuses(() => decode("a", { ...PLAIN, finish: value }));
  }
  for (const value of [null, 0, "x", [], true]) {
    refuses(() => new Pipeline({ dialect: value }));
    refuses(() => State.restore(value));
    refuses(() => new Pipeline(PLAIN).insert(value));
  }
  for (const value of [null, 0, "x", {}, true]) refuses(() => new State().apply(value));
  for (const value of [0, "x", [], {}, true]) refuses(() => new Pipeline(PLAIN).finish(value));
  for (const value of [NaN, Infinity, -1, 0, 1.5, 1e300, "one", null, {}]) {
    refuses(() => new Pipeline({ "limits.input": value }), String(value));
  }
  for (const value of [null, "plain"]) refuses(() => new Pipeline(value));
});

test("cyclic, huge and deep values", () => {
  const cycle = {};
  cycle.cycle = cycle;
  let deep = [];
  for (let level = 0; level < 3000; level += 1) deep = [deep];
  let deeper = [];
  for (let level = 0; level < 200_000; level += 1) deeper = [deeper];
  const thrower = { toJSON: () => assert.fail(new TypeError("no")) };
  for (const value of [cycle, deep, deeper, thrower, [1n]]) {
    refuses(() => new Pipeline({ dialect: "json_value", "json_value.schema": value }), "schema");
    refuses(() => new Pipeline({ dialect: "toolcall", tools: value }), "tools");
    refuses(() => new Pipeline(PLAIN).setUsage(value), "usage");
    refuses(() => new State(value), "state");
    refuses(() => new State({}, { schema: value }), "schema of a state");
    refuses(() => State.restore(value), "saved");
    refuses(() => new State().apply([["SET", "a", value]]), "operation");
    refuses(() => prompts.renderPrompt({ blocks: [] }, { value }), "context");
    refuses(() => prompts.renderPrompt(value, {}), "prompt");
    refuses(() => new prompts.Dialogue(script(), { saved: value }), "dialogue");
  }
  const wide = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`k${at}`, at]));
  assert.equal(Object.keys(new State(wide).value).length, 200_000);
  refuses(() => new Pipeline(wide), "options");
});

const script = () =>
  new prompts.Script(
    "sessions: [{session: s, phases: [{phase: p, steps: [{topic: t, actions: [{type: ai_say, content: Hi.}]}]}]}]",
    { language: "en" },
  );

test("proxies and getters that throw", () => {
  const thrown = new TypeError("no entry");
  const fail = () => {
    throw thrown;
  };
  const traps = Object.fromEntries(Reflect.ownKeys(Reflect).filter((name) => typeof name === "string").map((name) => [name, fail]));
  const proxy = new Proxy({}, traps);
  const getter = { get dialect() { return fail(); }, get tools() { return fail(); }, get blocks() { return fail(); } };
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const value of [proxy, getter, revoked]) {
    assert.throws(() => new Pipeline(value), TypeError);
    assert.throws(() => decode("a", value), TypeError);
    assert.throws(() => new State(value === getter ? { getter: value } : value), TypeError);
    assert.throws(() => prompts.renderPrompt(value, {}), TypeError);
    if (value !== getter) {
      assert.throws(() => new Pipeline(PLAIN).push(value), TypeError);
      assert.throws(() => decode(value), TypeError);
      assert.throws(() => decodeInto(value, "{}"), TypeError);
      assert.throws(() => core.check(value), TypeError);
      assert.throws(() => new Pipeline({ state: value }), TypeError);
    }
  }
  // A proxy of a chunk or a class is none.
  refuses(() => new Pipeline(PLAIN).push(new Proxy(new Uint8Array(3), {})));
  refuses(() => new Pipeline({ state: new Proxy(new State(), {}) }));
});

test("`__proto__` is a key like others", () => {
  const text = '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "a": {"__proto__": "x"}}';
  const expected = JSON.parse(text);
  assert.deepEqual(Object.keys(expected), ["__proto__", "constructor", "a"]);
  assert.deepEqual(core.loads(text), expected);
  assert.deepEqual(core.loads(`Sure: ${text.replaceAll('"', "'")}`), expected);
  for (const chunks of [[text], [...text]]) {
    const reader = decodeInto({ type: "object" }, chunks);
    const last = [...reader].at(-2);
    assert.equal(Object.getPrototypeOf(last), Object.prototype);
    assert.deepEqual(last, expected);
    assert.deepEqual(Object.keys(last.a), ["__proto__"]);
    assert.deepEqual(reader.result, expected);
  }
  const grown = [...decodeInto({ type: "object" }, [...'{"__proto__": "abc", "__proto__": ["d"]}'])].at(-2);
  assert.deepEqual(Object.getOwnPropertyDescriptor(grown, "__proto__").value, ["d"]);
  const state = new State(expected);
  assert.deepEqual(state.value, expected);
  for (const path of ["__proto__.polluted", "constructor.prototype.polluted", "a.__proto__.polluted", "__proto__"]) {
    state.apply([["SET", path, 1], ["PUSH", path, 1], ["ADD", path, 1]]);
  }
  assert.equal(Object.getPrototypeOf(state.value), Object.prototype);
  state.rollback();
  assert.deepEqual(State.restore(state.save()).value, expected);
  const tools = JSON.parse('{"__proto__": {"type": "object"}, "toString": {"type": "object"}}');
  const pipeline = new Pipeline({ dialect: "toolcall", tools });
  pipeline.pushCall("__proto__", text);
  pipeline.pushCall("toString", "{}");
  const calls = pipeline.finish("tool_calls").filter((event) => event.event === "tool_call");
  assert.deepEqual(calls.map((call) => call.data.name), ["__proto__", "toString"]);
  assert.deepEqual(calls[0].data.args, expected);
  // Settings that are inherited by all objects are no options.
  refuses(() => new Pipeline(JSON.parse('{"__proto__": {"a": 1}}')));
});

test("deep nesting of a reply", () => {
  for (const [open, close] of [["[", "]"], ['{"a":', "}"], ["(", ")"], ["<a>", "</a>"], ["<think>", "</think>"]]) {
    for (const text of [open.repeat(100_000), open.repeat(50_000) + close.repeat(50_000)]) {
      for (const dialect of ["auto", "thinkingml", "jsonseq", "aiplan", "filament", "ai_say", "toolcall", "json_value", "plain"]) {
        assert.match([...decode(text, { dialect })].at(-1).event, /^(completed|error)$/, dialect);
      }
      for (const value of decodeInto({}, [text]).findings) assert.ok(value);
      try {
        for (const value of decodeInto({}, [text])) JSON.stringify(value);
      } catch (error) {
        assert.ok(error instanceof core.DecodeError, String(error));
      }
      core.sanitize(text);
      try {
        JSON.stringify(core.loads(text));
      } catch (error) {
        assert.ok(error instanceof core.DecodeError, String(error));
      }
    }
  }
});

/** Length of the largest data that crossed to the engine during a call. */
function watchPieces(call) {
  const { prototype } = engine.Session;
  const originals = { pushText: prototype.pushText, pushBytes: prototype.pushBytes };
  let largest = 0;
  for (const [name, push] of Object.entries(originals)) {
    prototype[name] = function (data) {
      largest = Math.max(largest, data.length);
      return push.call(this, data);
    };
  }
  try {
    const result = call();
    return { largest, result };
  } finally {
    Object.assign(prototype, originals);
  }
}

test("replies beyond `limits.input`", () => {
  const settings = { ...PLAIN, "limits.input": 4096 };
  for (const chunks of [["x".repeat(100_000)], Array(100).fill("x".repeat(1000)), [new Uint8Array(1e6).fill(120)]]) {
    const events = [...decode(chunks, settings)];
    assert.equal(events.at(-1).data.code, "input_too_large");
    assert.ok(answer(events).length <= 4096);
  }
  // Text that is not well formed takes as little memory as other text.
  const reader = decode([`${"x".repeat(20 << 20)}\ud83d`], PLAIN);
  assert.equal([...reader].at(-1).data.code, "input_too_large");
  assert.equal(core.check("\ud83d".repeat(1 << 20), { contract: "plain", first_only: true }).passed, false);
  // A huge chunk crosses to the engine in pieces, cut anywhere; of what follows the end nothing is kept.
  const huge = `{"a": "${"x\u{1f600}".repeat(3 << 20)}"}`;
  for (const chunk of [huge, new TextEncoder().encode(huge)]) {
    const limits = { "limits.input": 64 << 20, "limits.value": 64 << 20 };
    const { largest, result } = watchPieces(() => [...decode(chunk, { ...PLAIN, ...limits })]);
    // A piece of text may begin with half a character that the one before it left.
    assert.ok(largest <= (1 << 20) + 1, `${largest}`);
    assert.equal(answer(result), huge);
    const into = watchPieces(() => decodeInto({}, [chunk], limits).final());
    // As bytes a unit of UTF-16 is three at most.
    assert.ok(into.largest <= 3 * ((1 << 20) + 1), `${into.largest}`);
    assert.equal(into.result.a.length, 9 << 20);
  }
  const value = decodeInto({}, ['{"a": "', "x".repeat(10_000), '"}'], { "limits.input": 1000 });
  let longest = 0;
  assert.throws(() => {
    for (const part of value) longest = Math.max(longest, part.a?.length ?? 0);
  }, { name: "DecodeError", code: "input_too_large" });
  assert.ok(longest <= 1000);
});

test("objects of another class", () => {
  class State2 extends State {}
  const state = new State2({ a: 1 });
  assert.deepEqual(state.value, { a: 1 });
  assert.ok(new Pipeline({ dialect: "filament", state }) instanceof Pipeline);
  const others = [{}, [], 5, "state", new Map(), new Pipeline(), Object.create(State.prototype), State, null, script()];
  for (const other of others) {
    refuses(() => new Pipeline({ state: other }));
    refuses(() => decode("a", { state: other }));
  }
  for (const other of [...others.slice(0, 9), state, Object.create(prompts.Script.prototype)]) {
    refuses(() => new prompts.Dialogue(other), "script");
  }
  const dialogue = () => {
    const made = new prompts.Dialogue(script(), { "ai_say.role": "Coach" });
    made.input();
    made.next();
    return made;
  };
  const [first, second] = [dialogue(), dialogue()];
  const [stale, reader, foreign] = [first.reader(), first.reader(), second.reader()];
  for (const other of [stale, foreign, {}, null, undefined, Object.create(prompts.ReplyReader.prototype), new Pipeline()]) {
    refuses(() => first.accept(other), "reader");
  }
  reader.push('{"response": {"Coach": "Hi!"}}');
  reader.finish();
  first.accept(reader);
  assert.equal(first.turn.ai_message, "Hi!");
  for (const method of ["push", "finish", "fail", "close", "abandon"]) {
    assert.throws(() => Pipeline.prototype[method].call({}, undefined), TypeError);
    assert.throws(() => Pipeline.prototype[method].call(state, undefined), TypeError);
  }
  assert.throws(() => State.prototype.apply.call({}, []), TypeError);
});

test("prototypes that others have changed", () => {
  // A method that a page has added to all objects is no option, and no JSON.
  Object.defineProperty(Object.prototype, "added", { value: () => 1, enumerable: true, configurable: true });
  try {
    assert.equal(answer([...decode("Hi.", PLAIN)]), "Hi.");
    assert.deepEqual(Object.keys(new State({ a: 1 }).value), ["a"]);
  } finally {
    delete Object.prototype.added;
  }
});

test("messages say what was meant", () => {
  for (const call of [() => decode("x", "thinkingml"), () => new Pipeline("plain"), () => check("x", "plain"), () => decode("x", null)]) {
    assert.throws(call, { name: "TypeError", message: /settings are an object such as/ }, String(call));
  }
  assert.throws(() => decode(new Response("x")), { name: "TypeError", message: /not Response: pass its `body`/ });
  assert.throws(() => decode(Promise.resolve("x")), { name: "TypeError", message: /not Promise: await it/ });
  assert.throws(() => decodeInto(undefined, "x"), { name: "TypeError", message: /the schema is one of/ });
  assert.throws(() => decodeInto(Date, "{}"), { name: "TypeError", message: /the schema is one of/ });
});
