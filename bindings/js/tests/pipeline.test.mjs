// Pipelines: ends, calls, options, mistakes, states.
import assert from "node:assert/strict";
import { test } from "node:test";

import { decode, decodeStream, Pipeline, State, StateError, TambourError } from "@tambour/core";

const TOOLS = { add: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] } };
const CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>';
const REPLY = '<content>She smiles.</content><state_update>[["ADD", "trust", 3]]</state_update>';

const names = (events) => events.map((event) => event.event);
const pick = (events, name) => events.filter((event) => event.event === name).map((event) => event.data);
const answer = (events) => pick(events, "final_delta").map((data) => data.text).join("");

/** Expectation for `assert.throws`. */
const fails = (pattern, fields = {}) => (error) => {
  assert.ok(error instanceof TambourError, String(error));
  assert.equal(error.name, "TambourError");
  assert.match(error.message, pattern);
  for (const [name, value] of Object.entries(fields)) assert.equal(error[name], value, name);
  return true;
};

test("the first page", () => {
  const events = [...decode(["<think>2 + 2</thi", "nk>It is 4."], { dialect: "plain" })];
  const [thinking, phase] = [["thinking_start", "phase_start", "phase_delta", "thinking_end"], { id: 1, text: "2 + 2" }];
  assert.deepEqual(names(events), [...thinking, "final_delta", "final_end", "completed"]);
  assert.deepEqual(pick(events, "phase_delta"), [phase]);
  assert.deepEqual(events.at(-1).data.metadata.dialect, "plain");
});

test("J-037: text comes while it arrives", () => {
  const pipeline = new Pipeline({ dialect: "plain" });
  assert.equal(answer(pipeline.push("It is")), "It is");
  assert.deepEqual(pipeline.push(""), []);
  assert.deepEqual(pipeline.push(new Uint8Array()), []);
  assert.equal(answer(pipeline.push(" 4.")), " 4.");
  assert.equal(pipeline.heldBytes, 0);
  pipeline.push("<th");
  assert.equal(typeof pipeline.heldBytes, "number");
});

test("J-035: ends", () => {
  const last = (settings) => [...decode("It is", { dialect: "plain", ...settings })].at(-1).data;
  assert.equal(last({}).metadata.truncated, false);
  for (const finish of ["length", "content_filter", null]) {
    assert.equal(last({ finish }).metadata.truncated, true, finish);
  }
  assert.equal(last({ finish: null }).finish_reason, "length");
  assert.equal(last({ finish: "cancelled" }).finish_reason, "cancelled");
  assert.equal(last({ incomplete: true }).metadata.truncated, true);
  const pipeline = new Pipeline({ dialect: "plain" });
  pipeline.push("It is");
  const failure = { code: "gone", message: "the line is down", retryable: false };
  const events = pipeline.fail(failure.message, failure);
  assert.deepEqual(events.at(-1), { event: "error", data: failure });
  assert.deepEqual(pipeline.outcome.failure, failure);
  // Nothing happens after the end.
  for (const more of [pipeline.push("x"), pipeline.push(new Uint8Array(1)), pipeline.pushReasoning("x")]) {
    assert.deepEqual(more, []);
  }
  for (const more of [pipeline.finish(), pipeline.fail("x"), pipeline.abandon()]) assert.deepEqual(more, []);
  const fallback = new Pipeline({ dialect: "plain" }).fail("down").at(-1).data;
  assert.deepEqual(fallback, { code: "upstream_failed", message: "down", retryable: true });
});

test("usage and reasoning", () => {
  const pipeline = new Pipeline({ dialect: "plain" });
  pipeline.setUsage({ total_tokens: 7 });
  const events = [...pipeline.pushReasoning("Hm."), ...pipeline.push("Yes."), ...pipeline.finish()];
  assert.deepEqual(pick(events, "phase_delta"), [{ id: 1, text: "Hm." }]);
  assert.deepEqual(events.at(-1).data.usage, { total_tokens: 7 });
  const without = new Pipeline({ dialect: "plain" });
  without.setUsage(undefined);
  assert.equal(without.finish().at(-1).data.usage, null);
});

test("reasoning that is cut within a character is joined", () => {
  const pipeline = new Pipeline({ dialect: "plain" });
  const events = ["a \ud83d", "\ude00", " b\ud83d"].flatMap((text) => pipeline.pushReasoning(text));
  events.push(...pipeline.push("Yes."), ...pipeline.finish());
  assert.equal(pick(events, "phase_delta").map((data) => data.text).join(""), "a \u{1f600} b\ufffd");
  assert.equal(answer(events), "Yes.");
});

test("calls act only in a complete reply", () => {
  for (const [finish, expected] of [["tool_calls", 1], ["stop", 1], ["length", 0], [null, 0]]) {
    const pipeline = new Pipeline({ dialect: "toolcall", tools: TOOLS });
    const events = [...pipeline.pushCall("add", '{"a": 1}'), ...pipeline.finish(finish)];
    assert.equal(pick(events, "tool_call").length, expected, String(finish));
    assert.equal(pipeline.outcome.calls.length, expected);
  }
  for (const [name, parameters] of [["add", '{"a": "x"}'], ["sub", '{"a": 1}'], ["add", '{"a": ']]) {
    const pipeline = new Pipeline({ dialect: "toolcall", tools: TOOLS });
    const events = [...pipeline.pushCall(name, parameters), ...pipeline.finish("tool_calls")];
    assert.deepEqual(pick(events, "tool_call"), [], parameters);
  }
});

test("tools as services take them", () => {
  const own = { type: "function", function: { name: "add", parameters: TOOLS.add } };
  for (const tools of [[own], [{ name: "add", input_schema: TOOLS.add }], TOOLS]) {
    const events = [...decode(CALL, { dialect: "toolcall", tools })];
    assert.deepEqual(pick(events, "tool_call").map((call) => call.args), [{ a: 1 }]);
  }
  assert.throws(() => new Pipeline({ dialect: "toolcall", tools: [{}] }), fails(/no `name`/));
});

test("events from outside are put into the stream", () => {
  const pipeline = new Pipeline({ dialect: "toolcall", tools: TOOLS });
  pipeline.push(CALL);
  const result = { event: "tool_result", data: { call_id: "call_1", ok: true, result: 2, elapsed_ms: 5 } };
  assert.deepEqual(pipeline.insert(result).at(-1), result);
  assert.throws(() => pipeline.insert({ event: "final_delta", data: { text: "x" } }), fails(/extension events/));
  assert.throws(() => pipeline.insert({ event: "tool_result", data: {} }), fails(/extension events/));
});

test("a stream that has ended has no pending calls and no next reply", () => {
  const settings = { dialect: "toolcall", tools: TOOLS };
  const first = new Pipeline(settings);
  first.push(CALL);
  assert.deepEqual(pick(first.finish("tool_calls"), "tool_call").map((call) => call.call_id), ["call_1"]);
  assert.deepEqual(first.pendingCalls, []);
  assert.deepEqual(first.abandon(), []);
  assert.throws(() => first.nextReply({ dialect: "plain" }), fails(/waits for no results/));
});

test("a tool loop is one stream (X-004)", () => {
  const settings = { dialect: "toolcall", tools: TOOLS, tool_loop: true };
  const first = new Pipeline(settings);
  const events = [...first.push(CALL), ...first.finish("tool_calls")];
  assert.equal(events.some((event) => event.event === "completed"), false);
  assert.deepEqual(first.pendingCalls, [{ call_id: "call_1", name: "add", args: { a: 1 } }]);
  const result = { event: "tool_result", data: { call_id: "call_1", ok: true, result: 2, elapsed_ms: 5 } };
  assert.deepEqual(first.insert(result), [result]);
  assert.throws(() => first.nextReply({ dialect: "plane" }), fails(/`plane`.*plain/));
  assert.throws(() => first.nextReply({ nothing: 1 }), fails(/`nothing`/));
  assert.throws(() => new Pipeline({ tool_loop: "yes" }), fails(/`tool_loop` is true or false/));
  const second = first.nextReply(settings);
  events.push(...second.push(CALL), ...second.finish("tool_calls"));
  assert.deepEqual(second.pendingCalls.map((call) => call.call_id), ["call_2"]);
  const end = second.abandon();
  assert.equal(end.at(-1).event, "completed");
  assert.deepEqual(second.abandon(), []);
});

test("extensions can be left out, findings added", () => {
  const settings = { dialect: "toolcall", tools: TOOLS };
  assert.deepEqual(pick([...decode(CALL, { ...settings, extensions: false })], "tool_call"), []);
  const reader = decode("<final>Hi", { dialect: "thinkingml", findings: true });
  const found = pick([...reader], "finding");
  assert.ok(found.length > 0);
  assert.deepEqual(found, reader.findings);
});

test("options have their public names, or `_` in place of the dot", () => {
  const text = "<think>2 + 2</think>It is 4.";
  for (const name of ["plain.reasoning", "plain_reasoning"]) {
    assert.ok(answer([...decode(text, { dialect: "plain", [name]: "none" })]).includes("2 + 2"), name);
  }
  for (const name of ["limits.input", "limits_input"]) {
    const last = [...decode("x".repeat(100), { dialect: "plain", [name]: 10 })].at(-1);
    assert.equal(last.data.code, "input_too_large");
  }
  // An absent value is the default.
  assert.ok(!answer([...decode(text, { dialect: "plain", "plain.reasoning": undefined })]).includes("2 + 2"));
});

test("mistakes of the caller", () => {
  assert.throws(() => new Pipeline({ dialect: "plane" }), fails(/`plane`.*plain/));
  assert.throws(() => new Pipeline({ nothing: 1 }), fails(/unknown option `nothing`/));
  assert.throws(() => new Pipeline({ "plain.reasoning": "maybe" }), fails(/plain\.reasoning/));
  assert.throws(() => new Pipeline({ dialect: "plain" }).finish("end"), fails(/finish reason `end`/));
  assert.throws(() => new Pipeline({ dialect: "plain" }).abandon("end"), fails(/finish reason `end`/));
  // Before anything is read.
  assert.throws(() => decode(["a"], { dialect: "plain", finish: "end" }), fails(/finish reason `end`/));
  assert.throws(() => decode(["a"], { dialect: "plane" }), fails(/plane/));
  // A mistake leaves the pipeline as it was.
  const pipeline = new Pipeline({ dialect: "plain" });
  for (const chunk of [1, null, undefined, ["a"], {}, Symbol("a"), 1n]) {
    assert.throws(() => pipeline.push(chunk), TypeError);
  }
  assert.throws(() => pipeline.finish("end"));
  assert.equal(answer([...pipeline.push("Yes."), ...pipeline.finish()]), "Yes.");
});

test("chunks of every kind", () => {
  const bytes = new TextEncoder().encode("-Hi.");
  for (const chunk of ["Hi.", bytes.subarray(1), Buffer.from("Hi."), bytes.slice(1).buffer, new DataView(bytes.buffer, 1)]) {
    for (const source of [chunk, [chunk], new Set([chunk]), [chunk].values()]) {
      assert.equal(answer([...decode(source, { dialect: "plain" })]), "Hi.");
    }
  }
});

test("a closed pipeline refuses calls", () => {
  const pipeline = new Pipeline({ dialect: "plain" });
  pipeline.push("It is");
  pipeline.close();
  pipeline.close();
  const closed = fails(/closed/, { code: "closed", line: undefined, column: undefined });
  const event = { event: "notice", data: { code: "a", message: "b" } };
  for (const call of [
    () => pipeline.push("x"),
    () => pipeline.push(new Uint8Array(1)),
    () => pipeline.pushReasoning("x"),
    () => pipeline.pushCall("add", "{}"),
    () => pipeline.finish(),
    () => pipeline.fail("x"),
    () => pipeline.abandon(),
    () => pipeline.insert(event),
    () => pipeline.nextReply(),
    () => pipeline.setUsage(1),
    () => pipeline.findings,
    () => pipeline.outcome,
    () => pipeline.pendingCalls,
    () => pipeline.dialect,
    () => pipeline.heldBytes,
  ]) {
    assert.throws(call, closed, String(call));
  }
});

test("a dialect is detected", () => {
  const pipeline = new Pipeline();
  assert.equal(pipeline.dialect, "auto");
  pipeline.push('{"event":"thinking_start","data":{}}\n');
  pipeline.finish();
  assert.equal(pipeline.dialect, "jsonseq");
});

test("a reply changes the state once it is complete", () => {
  const state = new State({ trust: 5 });
  const pipeline = new Pipeline({ dialect: "filament", state, message: "m1" });
  pipeline.push(REPLY);
  assert.deepEqual(state.value, { trust: 5 });
  const [update] = pick(pipeline.finish(), "state_update");
  assert.equal(update?.results?.[0].ok ?? pipeline.outcome.updates[0].results[0].ok, true);
  assert.deepEqual(state.value, { trust: 8 });
  assert.deepEqual(state.history.map((update) => update.message), ["m1"]);
  state.rollback({ before: "m1" });
  assert.deepEqual(state.value, { trust: 5 });
  // An event of a reply that was read without a state can be applied later.
  const [bare] = pick([...decode(REPLY, { dialect: "filament" })], "state_update");
  assert.equal(state.apply(bare).results[0].ok, true);
  assert.deepEqual(state.value, { trust: 8 });
});

test("a reply that broke off leaves the state as it was", () => {
  const state = new State({ trust: 5 });
  const pipeline = new Pipeline({ dialect: "filament", state });
  pipeline.push(REPLY.slice(0, -12));
  pipeline.fail("down");
  assert.deepEqual(state.value, { trust: 5 });
  const left = new Pipeline({ dialect: "filament", state });
  left.push(REPLY);
  left.close();
  assert.deepEqual(state.value, { trust: 5 });
});

test("updates that do not fit come as a StateError with all events, and can be tried again", () => {
  const state = new State({ trust: 5 });
  const pipeline = new Pipeline({ dialect: "filament", state, message: "m" });
  pipeline.push(REPLY);
  state.apply([["SET", "trust", "high"]], { message: "other" });
  assert.throws(
    () => pipeline.finish(),
    (error) => {
      assert.ok(error instanceof StateError && error instanceof TambourError);
      assert.equal(error.name, "StateError");
      assert.equal(error.code, "state_conflict");
      assert.equal(error.events.at(-1).event, "completed");
      return true;
    },
  );
  assert.deepEqual(state.value, { trust: "high" });
  state.rollback({ before: "other" });
  assert.deepEqual(pipeline.finish(), []);
  assert.deepEqual(state.value, { trust: 8 });
  // Once applied, they are not applied again.
  assert.deepEqual(pipeline.finish(), []);
  assert.deepEqual(state.value, { trust: 8 });
});

test("a reader of a reply whose updates do not fit loses no event", async () => {
  const state = new State({ trust: 5 });
  const expected = names([...decode(REPLY, { dialect: "filament", state: new State({ trust: 5 }) })]);
  function* interleave() {
    yield REPLY;
    state.apply([["SET", "trust", "high"]]);
  }
  async function* later() {
    yield* interleave();
  }
  for (const source of [interleave, later]) {
    state.rollback();
    const reader = decode(source(), { dialect: "filament", state, message: "m" });
    const events = [];
    const collect = async () => {
      for await (const event of reader) events.push(event);
    };
    await assert.rejects(collect, (error) => error instanceof StateError && error.events.length === 0);
    assert.deepEqual(names(events), expected);
    assert.deepEqual(state.value, { trust: "high" });
  }
});

test("a stream of events gives all of them before a StateError", async () => {
  const expected = names([...decode(REPLY, { dialect: "filament", state: new State({ trust: 5 }) })]);
  const state = new State({ trust: 5 });
  const through = decodeStream({ dialect: "filament", state, message: "m" });
  const writer = through.writable.getWriter();
  const written = (async () => {
    await writer.write(REPLY);
    state.apply([["SET", "trust", "high"]]);
    await writer.close();
  })();
  const events = [];
  await assert.rejects(async () => {
    for await (const event of through.readable) events.push(event);
  }, StateError);
  await written;
  assert.deepEqual(names(events), expected);
  assert.deepEqual(state.value, { trust: "high" });
  // Another end tries again.
  state.rollback();
  assert.deepEqual(through.pipeline.finish(), []);
  assert.deepEqual(state.value, { trust: 8 });
});

test("state: refusals, history, schema, saved and restored", () => {
  const state = new State({ n: 1, bag: [] });
  const update = state.apply([["ADD", "n", 3], ["NOD", "x"], ["PUSH", "bag", "key"]], { message: "m1", analysis: "why" });
  assert.deepEqual(update.results.map((result) => result.ok), [true, false, true]);
  assert.equal(update.results[1].reason, "operation_unknown");
  assert.equal(state.apply([["SET", "a", 1], ["NOD", "x"]], { atomic: true }).results[0].reason, "not_applied");
  state.apply([["SET", "n", 9]], { message: "m2" });
  assert.deepEqual(state.at({ after: "m1" }), { n: 4, bag: ["key"] });
  assert.deepEqual(state.diff({ before: "m2" }), [{ path: "n", before: 4, after: 9 }]);
  const again = State.restore(JSON.parse(JSON.stringify(state.save())));
  assert.ok(again instanceof State);
  assert.deepEqual(again.value, state.value);
  assert.deepEqual(again.rollback({ before: "m2" }).map((update) => update.message), ["m2"]);
  assert.equal(again.forget("m1"), true);
  assert.equal(again.forget("m1"), false);
  assert.throws(() => again.rollback({ before: "m1" }), TambourError);
  assert.throws(() => again.rollback({ before: "m0", after: "m0" }), fails(/not both/));
  assert.throws(() => State.restore({ state: 1 }), TambourError);
  assert.throws(() => state.apply({ op: "SET" }), TambourError);
  // Values are copies.
  state.value.bag.push("lamp");
  assert.deepEqual(state.value.bag, ["key"]);
  const limited = new State({ n: 1 }, { schema: { type: "object", properties: { n: { maximum: 5 } } } });
  assert.equal(limited.apply([["ADD", "n", 9]]).results[0].reason, "schema_violation");
  assert.throws(() => new State({}, { schema: { type: 5 } }), TambourError);
});
