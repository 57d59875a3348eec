// Prompts, cards, macros, scripts and dialogues.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { crc32 } from "node:zlib";

import { TambourError } from "@tambour/core";
import { Dialogue, importCard, migrateMacros, renderPrompt, Script, ScriptError } from "@tambour/core/prompts";

const file = (path) => readFileSync(new URL(`../../../${path}`, import.meta.url));
const card = file("examples/roleplay/brunn.json");

/** Picture with a card in it. */
function png(text) {
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
  };
  const head = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
  const data = Buffer.concat([Buffer.from("chara\0"), Buffer.from(text.toString("base64"))]);
  const start = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([start, chunk("IHDR", head), chunk("tEXt", data), chunk("IEND", Buffer.alloc(0))]);
}

test("F-013: a card as text, as bytes and in a picture", () => {
  const expected = importCard(card, { name: "brunn.json" });
  assert.deepEqual([expected.kind, expected.version, expected.name], ["card", "v2", "Brunn"]);
  assert.ok(expected.entries.length > 0);
  for (const data of [card.toString(), new Uint8Array(card).buffer, png(card)]) {
    const { skein, ...rest } = importCard(data, { name: "brunn.json" });
    assert.deepEqual([rest.kind, rest.name, rest.entries], ["card", "Brunn", expected.entries]);
    assert.equal(typeof skein, "string");
  }
  for (const data of [Buffer.from("GIF89a"), png(card).subarray(0, 60), "", "[1]"]) {
    assert.throws(() => importCard(data, { name: "ada.png" }), (error) => error instanceof TambourError && /ada\.png/.test(error.message));
  }
});

test("F-013: the cards of the fixtures", () => {
  let count = 0;
  for (const line of file("fixtures/import/independent.jsonl").toString().split("\n").filter(Boolean)) {
    const row = JSON.parse(line);
    if (row.do !== "import" || row.expect?.kind === undefined || row.file === undefined) continue;
    const imported = importCard(JSON.stringify(row.file), { name: "card.json" });
    for (const name of ["kind", "version", "name"]) {
      if (row.expect[name] !== undefined) assert.equal(imported[name], row.expect[name], row.id);
    }
    count += 1;
  }
  assert.ok(count > 10, `${count}`);
});

test("a card, a book and a preset as one prompt", () => {
  const context = JSON.parse(file("examples/roleplay/context.json"));
  const [brunn, book, preset] = ["brunn", "reef-book", "slow-scene"].map((name) =>
    importCard(file(`examples/roleplay/${name}.json`), { name: `${name}.json` }),
  );
  assert.deepEqual([brunn.kind, book.kind, preset.kind], ["card", "lorebook", "preset"]);
  const settings = { others: [brunn.skein, book.skein], language: "en", seed: 7 };
  const prompt = renderPrompt(preset.skein, context, settings);
  assert.ok(prompt.lore_titles.length > 0);
  assert.ok(prompt.messages.length > 1);
  assert.ok(prompt.tokens > 0);
  assert.deepEqual(renderPrompt(preset.skein, context, settings), prompt);
  // The card itself is a prompt, from its bytes as well.
  const alone = renderPrompt(brunn.skein, context, { seed: 7 }).text;
  for (const data of [new Uint8Array(card), new Uint8Array(card).buffer]) {
    assert.equal(renderPrompt(data, context, { seed: 7 }).text, alone);
  }
  const others = [new Uint8Array(card), book.skein, new Uint8Array(file("examples/roleplay/reef-book.json"))];
  assert.ok(renderPrompt(preset.skein, context, { ...settings, others }).lore_titles.length > 0);
});

const SKEIN = { blocks: [{ tag: "place", text: "{{ name }}" }] };

test("prompts with variables", () => {
  for (const source of [SKEIN, 'blocks:\n  - tag: place\n    text: "{{ name }}"\n']) {
    const prompt = renderPrompt(source, { name: "Ruins" });
    assert.equal(prompt.text, "<place>\nRuins\n</place>");
    assert.equal(prompt.messages[0].role, "system");
  }
  const random = { blocks: [{ tag: "a", text: "{{ roll('9d1000') }}" }] };
  assert.equal(renderPrompt(random, {}, { seed: 7 }).text, renderPrompt(random, {}, { seed: 7 }).text);
  assert.notEqual(renderPrompt(random, {}, { seed: 7 }).text, renderPrompt(random, {}, { seed: 8 }).text);
  const short = renderPrompt({ blocks: [{ tag: "a", text: "x ".repeat(500) }] }, {}, { maxContext: 10 });
  assert.equal(short.dropped_parts.length, 1);
});

test("mistakes in prompts", () => {
  const refuses = (call, fields) => assert.throws(call, (error) => {
    assert.ok(error instanceof TambourError, String(error));
    for (const [name, value] of Object.entries(fields)) assert.equal(error[name], value, name);
    return true;
  });
  refuses(() => renderPrompt(SKEIN, {}, { strict: true }), { code: "variable_undefined", line: 1 });
  refuses(() => renderPrompt("blocks: [", {}), { line: 1, column: 9 });
  refuses(() => renderPrompt(SKEIN, {}, { language: "fr" }), {});
  refuses(() => renderPrompt(SKEIN, {}, { seed: -1 }), {});
  const loop = "{% for a in range(10000) %}{% for b in range(10000) %}{{ a }}{% endfor %}{% endfor %}";
  refuses(() => renderPrompt({ blocks: [{ tag: "a", text: loop }] }), { code: "limit_exceeded" });
});

test("a counter of tokens", () => {
  const counted = [];
  const countTokens = (text) => {
    counted.push(text);
    return text.length;
  };
  const prompt = renderPrompt(SKEIN, { name: "Ruins" }, { countTokens });
  assert.ok(counted.length > 0);
  assert.equal(prompt.tokens, prompt.text.length);
  const thrown = new RangeError("no tokenizer");
  const failing = () => {
    throw thrown;
  };
  assert.throws(() => renderPrompt(SKEIN, {}, { countTokens: failing }), (error) => error === thrown);
  for (const wrong of ["many", -1, 1.5, NaN, undefined, null, 5n, 2 ** 60]) {
    assert.throws(() => renderPrompt(SKEIN, {}, { countTokens: () => wrong }), TypeError);
  }
  // The counter may use the package.
  const nested = (text) => renderPrompt(SKEIN, { name: text }).text.length;
  assert.ok(renderPrompt(SKEIN, { name: "a" }, { countTokens: nested }).tokens > 0);
});

test("macros", () => {
  const migrated = migrateMacros("Hi {{user}}, {{roll:2d6}} {{foo::bar}}");
  assert.ok(migrated.text.startsWith("Hi {{ user }}, {{ roll('2d6') }} "));
  assert.deepEqual([migrated.translated, migrated.left], [2, 1]);
  const [{ code, name, line, column }] = migrated.warnings;
  assert.deepEqual({ code, name, line, column }, { code: "macro_unknown", name: "foo", line: 1, column: 27 });
});

const SCRIPT = `
sessions:
  - session: hello
    declare: [{var: topic, value: bread}]
    phases:
      - phase: one
        steps:
          - topic: greet
            actions:
              - {type: ai_say, content: "Say hello about {topic}.", max_rounds: 2}
              - {type: show_form, form_id: f1, variable: answer}
`;
const make = (text = SCRIPT) => new Script(text, { language: "en" });
const speak = (text = "Hi!") => JSON.stringify({ response: { Coach: text } });
const start = (settings = {}) => {
  const dialogue = new Dialogue(make(), { "ai_say.role": "Coach", ...settings });
  dialogue.input();
  return dialogue;
};
const answer = (events) => events.filter((event) => event.event === "final_delta").map((event) => event.data.text).join("");

test("S-001: problems of scripts have places", () => {
  assert.throws(() => make("sessions: []"), (error) => {
    assert.ok(error instanceof ScriptError && error instanceof TambourError);
    assert.equal(error.problems[0].finding.line, 1);
    assert.deepEqual([error.code, error.line], [error.problems[0].finding.code, 1]);
    return true;
  });
  for (const text of ["- a", "", "a: [".repeat(1000), "\ud83d"]) assert.throws(() => make(text), ScriptError, text);
  assert.throws(() => new Script(SCRIPT, { language: "fr" }), TambourError);
  const script = make();
  assert.deepEqual([script.sessions, script.actionCount], [["hello"], 2]);
  // Warnings do not keep a script from running.
  assert.ok(script.problems.length > 0);
  for (const { path, finding } of script.problems) {
    assert.equal(path, "sessions[0].phases[0].steps[0].actions[0]");
    assert.deepEqual([finding.rule, finding.severity, finding.line], ["S-043", "warning", 10]);
  }
});

test("a dialogue without input and output", () => {
  const dialogue = new Dialogue(make(), { "ai_say.role": "Coach", temperature: 0.2, maxTokens: 99 });
  assert.deepEqual(dialogue.next(), { type: "await_user", continues: true });
  dialogue.input(undefined, { now: 1_700_000_000_000 });
  const step = dialogue.next();
  assert.equal(step.type, "call");
  const { kind, temperature, max_tokens: maxTokens, round } = step.call;
  assert.deepEqual({ kind, temperature, maxTokens, round }, { kind: "ai_say", temperature: 0.2, maxTokens: 99, round: 1 });
  assert.ok(step.call.messages[0].content.includes("bread"));
  assert.deepEqual(dialogue.next(), step);
  const effect = dialogue.reply(speak());
  assert.equal(effect.asked_again, false);
  assert.equal(effect.exit_decision.round, 1);
  assert.equal(dialogue.turn.ai_message, "Hi!");
  assert.deepEqual(dialogue.history.map((message) => message.content), ["Hi!"]);
  assert.throws(() => dialogue.reply(speak()), TambourError);
});

test("a dialogue that is saved and restored goes on", () => {
  const dialogue = start();
  dialogue.next();
  dialogue.reply(speak());
  const saved = JSON.parse(JSON.stringify(dialogue.save()));
  const again = new Dialogue(make(), { saved, "ai_say.role": "Coach" });
  assert.deepEqual(again.history, dialogue.history);
  assert.deepEqual(again.variables, dialogue.variables);
  for (const one of [dialogue, again]) one.input("Tell me more.", { now: 5 });
  assert.deepEqual(again.next(), dialogue.next());
  assert.equal(again.next().call.round, 2);
  for (const wrong of [{}, [], 5, "x"]) assert.throws(() => new Dialogue(make(), { saved: wrong }), TambourError);
});

test("a reply that cannot be used is asked for again", () => {
  const dialogue = start({ maxReasks: 1 });
  assert.equal(dialogue.next().call.attempt, 0);
  assert.equal(dialogue.reply("no JSON here").asked_again, true);
  assert.equal(dialogue.next().call.attempt, 1);
  assert.equal(dialogue.reply(speak()).asked_again, false);
});

test("J-038: a streamed reply has the effect of the whole one", () => {
  const text = speak("Hello there, \u{1f600}.");
  const whole = start();
  whole.next();
  const effect = whole.reply(text);
  for (const size of [1, 2, 4, 1000]) {
    const dialogue = start();
    dialogue.next();
    const reader = dialogue.reader();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...reader.push(text.slice(at, at + size)));
    assert.throws(() => dialogue.accept(reader), /has not ended/);
    events.push(...reader.finish());
    assert.equal(answer(events), "Hello there, \u{1f600}.");
    assert.deepEqual(dialogue.accept(reader), effect);
    assert.deepEqual(dialogue.turn, whole.turn);
    assert.throws(() => dialogue.accept(reader), TambourError);
  }
});

test("failures are repeated", () => {
  const dialogue = start();
  dialogue.next();
  dialogue.fail("down");
  assert.equal(dialogue.turn.error.message, "down");
  assert.equal(dialogue.turn.success, false);
  dialogue.input();
  assert.equal(dialogue.next().type, "call");
  const reader = dialogue.reader();
  reader.push("{\"resp\ud83d");
  assert.equal(reader.fail("down again").at(-1).event, "error");
  assert.equal(dialogue.accept(reader).failure.message, "down again");
});

test("the client answers", () => {
  const form = "sessions: [{session: s, phases: [{phase: p, steps: [{topic: t, actions: [{type: show_form, form_id: f1, variable: answer}]}]}]}]";
  const dialogue = new Dialogue(make(form));
  dialogue.input();
  const { type, event } = dialogue.next();
  assert.deepEqual([type, event.event, event.data.form_id], ["event", "form", "f1"]);
  assert.deepEqual(dialogue.next(), { type: "await_answer", call_id: event.data.call_id });
  assert.throws(() => dialogue.input("Hi"), { code: "answer_expected" });
  assert.throws(() => dialogue.answer("call_9", 1), TambourError);
  dialogue.answer(event.data.call_id, { age: 30 });
  assert.deepEqual(dialogue.next(), { type: "finished" });
  assert.deepEqual(dialogue.variables.answer, { age: 30 });
  assert.equal(dialogue.turn.status, "completed");
});

test("sessions and variables", () => {
  const dialogue = start({ session: "hello", variables: { topic: "stone" } });
  assert.ok(dialogue.next().call.messages[0].content.includes("stone"));
  assert.throws(() => start({ session: "nobody" }), /session/);
  assert.throws(() => start({ nothing: 1 }), /unknown option `nothing`/);
});

test("the example of a coach, from its script to its end", () => {
  const lines = (name) => file(`examples/fitness-coach/${name}`).toString().split("\n");
  const replies = lines("replies.jsonl").filter(Boolean).map((line) => JSON.parse(line));
  const inputs = lines("inputs.txt");
  const dialogue = new Dialogue(new Script(file("examples/fitness-coach/script.yaml").toString()));
  const messages = [];
  let used = 0;
  dialogue.input();
  for (let step = dialogue.next(); step.type !== "finished" && used < replies.length; step = dialogue.next()) {
    if (step.type === "call") {
      const { protocol, chunks, finish_reason: finish } = replies[used++];
      assert.equal(step.call.kind, protocol);
      const reader = dialogue.reader();
      for (const chunk of chunks) reader.push(chunk);
      reader.finish(finish);
      dialogue.accept(reader);
      if (dialogue.turn.ai_message) messages.push(dialogue.turn.ai_message);
    } else if (step.type === "await_user") {
      const text = inputs.shift();
      dialogue.input(step.continues && text === "" ? undefined : text);
    } else if (step.type === "await_answer") {
      dialogue.answer(step.call_id, null);
    }
  }
  assert.equal(used, replies.length);
  assert.ok(messages.length >= 4);
  assert.ok(Object.keys(dialogue.variables).includes("目标"));
});
