import { describe, expect, it } from "vitest";
import { SAY_DEFAULTS, sayValues, writeSay } from "./actions.ts";
import { fieldAt, flatten, outlineOf } from "./outline.ts";
import { parse } from "./parse.ts";
import { addPart, newPart, placePart, shiftPart } from "./structure.ts";
import { usedIn, variablesAt } from "./variables.ts";

const script = (action: string) => `sessions:
  - session: s
    declare:
      - {var: 用户名, value: 小明}
    phases:
      - phase: p
        steps:
          - topic: one
            actions:
${action}
          - topic: two # second
            actions: []
`;

const PATH = ["sessions", 0, "phases", 0, "steps", 0, "actions", 0];
const legacy = script(`              - type: ai_say
                condition: age > 17 # kept
                ai_say: |
                  讲解 {用户名} {谁} {%time%} {%nothing%}`);

describe("ai_say", () => {
  it("begins with the older key and the defaults", () => {
    expect(sayValues(parse(legacy), PATH)).toEqual({
      ...SAY_DEFAULTS,
      content: "讲解 {用户名} {谁} {%time%} {%nothing%}\n",
    });
    expect(sayValues(parse(script("              - type: ai_say")), PATH)).toEqual(SAY_DEFAULTS);
  });

  it("changes nothing when nothing was changed", () => {
    expect(writeSay(legacy, PATH, sayValues(parse(legacy), PATH))).toBe(legacy);
  });

  it("moves the older key, writes what differs, and keeps other fields", () => {
    const changed = writeSay(legacy, PATH, { ...sayValues(parse(legacy), PATH), max_rounds: 3 });
    expect(changed).toBe(
      legacy.replace("ai_say: |", "content: |").replace("{%nothing%}\n", "{%nothing%}\n                max_rounds: 3\n"),
    );
    const both = legacy.replace("                ai_say: |", "                content: new\n                ai_say: |");
    const kept = writeSay(both, PATH, { ...sayValues(parse(both), PATH), has_questions: true });
    expect(kept).toContain("                content: new\n                exit_criteria:\n                  has_questions: true\n");
    expect(kept).not.toContain("ai_say: |");
    expect(kept).toContain("condition: age > 17 # kept");
  });

  it("writes into criteria that are there", () => {
    const text = script("              - {type: ai_say, content: x, exit_criteria: {expressed_threshold: null}}");
    expect(writeSay(text, PATH, { ...sayValues(parse(text), PATH), understanding_threshold: 90 })).toContain(
      "exit_criteria: {expressed_threshold: null, understanding_threshold: 90}}",
    );
  });
});

describe("a script", () => {
  const parsed = parse(legacy);
  const nodes = outlineOf(parsed);

  it("has its parts", () => {
    const step = nodes[0]?.children[0]?.children[1];
    expect(step).toMatchObject({ kind: "step", name: "two", id: "sessions[0].phases[0].steps[1]", line: 14 });
    expect(outlineOf(parse("session:\n  session_name: s\n  phases:\n    - phase_name: p\n      topics: []\n"))[0]).toMatchObject({
      name: "s",
      flat: true,
      children: [{ name: "p" }],
    });
  });

  it("has a field at a place", () => {
    const texts = [legacy, script("              - {type: ai_say, condition: 😀 == 1, content: x}")];
    const fields = texts.map((text) => {
      const parsed = parse(text);
      const action = flatten(outlineOf(parsed)).find(({ kind }) => kind === "action");
      return (line: number, column: number) => (action === undefined ? null : fieldAt(parsed, action, line, column));
    });
    expect([fields[0]?.(10, 17), fields[0]?.(11, 30), fields[0]?.(13, 25), fields[0]?.(99, 1)]).toEqual([null, "condition", "ai_say", null]);
    expect([fields[1]?.(10, 17), fields[1]?.(10, 35), fields[1]?.(10, 60)]).toEqual([null, "condition", "content"]);
  });

  it("knows variables", () => {
    const action = nodes[0]?.children[0]?.children[0]?.children[0];
    const known = action === undefined ? [] : variablesAt(parsed, nodes, action);
    expect(known).toEqual(["用户名"]);
    expect(usedIn("{用户名} {谁} {%time%} {%nothing%} { no }", known).map(({ name, known: is }) => [name, is])).toEqual([
      ["time", true],
      ["nothing", false],
      ["用户名", true],
      ["谁", false],
    ]);
  });

  it("is moved by keys, also to the next part", () => {
    const [one, two] = nodes[0]?.children[0]?.children ?? [];
    if (one === undefined || two === undefined) throw new Error("there are two steps");
    const moved = shiftPart(legacy, nodes, one, 1);
    expect(moved.chosen).toBe("sessions[0].phases[0].steps[1]");
    expect(outlineOf(parse(moved.text))[0]?.children[0]?.children.map(({ name }) => name)).toEqual(["two", "one"]);
    const say = one.children[0];
    if (say === undefined) throw new Error("there is an action");
    const next = shiftPart(legacy, nodes, say, 1);
    expect(next.chosen).toBe("sessions[0].phases[0].steps[1].actions[0]");
    expect(outlineOf(parse(next.text))[0]?.children[0]?.children.map(({ children }) => children.length)).toEqual([0, 1]);
    expect(placePart(legacy, say, two, 0).text).toBe(next.text);
    const added = addPart(legacy, two, 0, newPart("action", ""));
    expect(added.chosen).toBe("sessions[0].phases[0].steps[1].actions[0]");
    expect(parse(added.text).error).toBeNull();
  });
});
