import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sayValues, writeSay } from "../document/actions.ts";
import { parse, valueAt } from "../document/parse.ts";
import { askValues, clientValues, formFields, thinkValues, writeAsk, writeClient, writeThink } from "./otherValues.ts";
import { linesOf, outputAt, outputOf } from "./output.ts";

const PATH = ["actions", 0];
const action = (fields: string) => `actions:\n  - ${fields.trimEnd().replaceAll("\n", "\n    ")}\n`;

describe("the form of ai_think", () => {
  const text = action("type: ai_think\nprompt: why # kept\noutput:\n  mood: how it is # one\n  # two\n  level: |\n    from 1\n    to 5\n  none:\n");
  const values = thinkValues(parse(text), PATH);
  const write = (output: string) => writeThink(text, PATH, { ...values, output });

  it("shows descriptions of several lines, and none", () => {
    expect(values).toEqual({ prompt: "why", output: "mood: how it is\nlevel: from 1\n  to 5\n  \nnone" });
    expect(outputOf(values.output)).toEqual(outputAt(parse(text), PATH));
    expect(writeThink(text, PATH, { ...values, prompt: "what for" })).toBe(text.replace("why #", "what for #"));
  });

  it("writes what has changed, and leaves the rest", () => {
    expect(write(values.output.replace("how it is", "how it feels"))).toBe(text.replace("how it is #", "how it feels #"));
    expect(write(values.output.replace("mood", "feeling"))).toBe(text.replace("mood:", "feeling:"));
    expect(write(`${values.output}\nlast: one`)).toBe(`${text}      last: one\n`);
    expect(write("mood: how it is\nnone")).toBe(text.replace("      level: |\n        from 1\n        to 5\n", ""));
  });

  it("reads and writes lists too", () => {
    const list = action("type: ai_think\nthink_goal: why\noutput_variables:\n  - mood # plain\n  - get: level # the level\n    define: from 1 to 5\n");
    const shown = thinkValues(parse(list), PATH);
    expect(shown).toEqual({ prompt: "why", output: "mood\nlevel: from 1 to 5" });
    expect(writeThink(list, PATH, { prompt: "what", output: "mood\nlevel: up to 5" })).toBe(
      list.replace("think_goal: why", "think_goal: what").replace("from 1 to 5", "up to 5"),
    );
    expect(writeThink(list, PATH, { ...shown, output: `${shown.output}\nlast\nmore: so` })).toBe(
      `${list}      - last\n      - var: more\n        description: so\n`,
    );
    expect(writeThink(list, PATH, { ...shown, output: "level: from 1 to 5" })).toBe(list.replace("      - mood # plain\n", ""));
  });

  it("refuses lines without a name, and names that stand twice", () => {
    expect([outputOf(": x"), outputOf("a: x\na: y"), outputOf("  x")]).toEqual([null, null, null]);
    expect(outputOf("a：全角\n\nb")).toEqual([{ name: "a", about: "全角" }, { name: "b", about: "" }]);
    expect(linesOf([{ name: "a", about: "" }])).toBe("a");
  });
});

describe("the form of a form", () => {
  const interview = readFileSync(join(import.meta.dirname, "../../../../../examples/requirements-interview/script.yaml"), "utf8");
  const path = ["sessions", 0, "phases", 1, "steps", 0, "actions", 0];
  const values = clientValues(parse(interview), path, "show_form");

  it("shows and writes title and fields where they stand", () => {
    expect(values).toMatchObject({ title: "Numbers for {quality}", fields: "measure\ntarget\ndeadline", variable: "numbers" });
    expect(writeClient(interview, path, "show_form", { ...values, title: "Aims" })).toBe(interview.replace("Numbers for {quality}", "Aims"));
    expect(writeClient(interview, path, "show_form", { ...values, fields: "measure\nunit\ndeadline" })).toBe(
      interview.replace("[measure, target, deadline]", "[measure, unit, deadline]"),
    );
    const beside = action("type: show_form\ntitle: a # kept\nfields:\n  - x # first\n  - y\ntarget_variable: v");
    const shown = clientValues(parse(beside), PATH, "show_form");
    expect(shown).toEqual({ subject: "", title: "a", fields: "x\ny", variable: "v" });
    expect(writeClient(beside, PATH, "show_form", { subject: "", title: "b", fields: "x\nz", variable: "w" })).toBe(
      beside.replace("title: a", "title: b").replace("- y", "- z").replace("target_variable: v", "target_variable: w"),
    );
  });

  it("leaves fields alone that are more than names", () => {
    const rich = action("type: show_form\nfields:\n  - {name: a}\n");
    expect(formFields(parse(rich), PATH)).toBeNull();
    const shown = clientValues(parse(rich), PATH, "show_form");
    expect(writeClient(rich, PATH, "show_form", { ...shown, title: "t" })).toContain("  - {name: a}\n");
  });

  it("of a skill and of a picture has its subject", () => {
    const skill = action("type: use_skill\nskill: breathe # in\nvariable: done");
    const shown = clientValues(parse(skill), PATH, "use_skill");
    expect(writeClient(skill, PATH, "use_skill", { ...shown, subject: "walk", variable: "" })).toBe(action("type: use_skill\nskill: walk # in"));
    const picture = action("type: show_pic");
    expect(writeClient(picture, PATH, "show_pic", { subject: "a.png", title: "A", fields: "", variable: "" })).toBe(
      action("type: show_pic\nsrc: a.png\ntitle: A"),
    );
  });
});

describe("the form of ai_ask", () => {
  it("writes each field where it stands, under the name that it has", () => {
    const text = action("type: ai_ask\nai_ask: Who? # a\nextract_to: who # b\nanswer:\n  type: choice\n  options: [1, 2, two]\nmax_rounds: 2");
    const values = askValues(parse(text), PATH);
    expect(values).toEqual({ question: "Who?", variable: "who", answer: "choice", options: "1\n2\ntwo", min: "", max: "", max_rounds: 2, required: false });
    expect(writeAsk(text, PATH, values)).toBe(text);
    expect(writeAsk(text, PATH, { ...values, question: "What?", variable: "what", options: "1\n2\nthree", required: true })).toBe(
      `${text.replace("Who?", "What?").replace("to: who", "to: what").replace("[1, 2, two]", "[1, 2, three]")}    required: true\n`,
    );
    const number = writeAsk(text, PATH, { ...values, answer: "number", options: "", min: "1" });
    expect(valueAt(parse(number), [...PATH, "answer"])).toEqual({ type: "number", min: 1 });
  });

  it("takes the variable of the older layout", () => {
    expect(askValues(parse(action("type: ai_ask\nquestion_template: Q\noutput_variables: [{get: age, define: a number}]")), PATH)).toMatchObject({
      question: "Q",
      variable: "age",
    });
  });
});

it("the content of ai_say is written under the name that it has", () => {
  const text = action("type: ai_say\ncontent_template: old # c\nai_say: older");
  const values = sayValues(parse(text), PATH);
  expect(values.content).toBe("old");
  expect(writeSay(text, PATH, { ...values, content: "new" })).toBe(action("type: ai_say\ncontent_template: new # c"));
});
