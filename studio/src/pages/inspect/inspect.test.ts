// @vitest-environment node

import { describe, expect, it } from "vitest";
import { type Finding } from "../../api/types.ts";
import { diffLines } from "./diff.ts";
import { inputOf, inputOfFile } from "./input.ts";
import { kindOf } from "./kind.ts";
import { commandOf } from "./large.ts";
import { cellOf, type CheckedText, exported } from "./records/exports.ts";
import { filtered, rulesOf, statesOf } from "./records/filter.ts";
import { LineSplitter } from "./records/LineSplitter.ts";
import { type Row } from "./records/protocol.ts";
import { recordOf } from "./records/record.ts";
import { RecordIndex } from "./records/RecordIndex.ts";
import { findRules, type Rule, verdictsOf } from "./rules.ts";
import { eventsOf } from "./transcript.ts";

const finding = (code: string, severity: Finding["severity"] = "error", repair: string | null = null): Finding => ({
  rule: "T-001", code, severity, span: { start: 1, end: 2 }, line: 3, column: 4, message: `about "${code}", and more`, repair,
});

describe("the kind of a text", () => {
  it.each([
    ["<thinking>\n</thinking>", "reply"],
    ['{"thought": "x", "tool_calls": null}', "reply"],
    ['{"event":"thinking_start","data":{}}\n{"event":"final_delta","data":{"text":"x"}}', "reply"],
    ['{"event":"thinking_start","data":{}}\n{"event":"completed","data":{}}', "transcript"],
    ["id: 1\nevent: status\ndata: {}\n\n", "transcript"],
    ['{"id":"a","chunks":["x"]}\n{"id":"b","chunks":["y"]}\n', "records"],
    ['{"id":"a","reply":"x"}', "records"],
    ['{"conversation_id":"c","title":"x"}\n', "records"],
    ["", "reply"],
  ])("%# is found", (text, kind) => expect(kindOf(text)).toBe(kind));

  it("of a long first line is records", () => expect(kindOf('{"id":"a","reply":"xxxx', false)).toBe("records"));
});

describe("records", () => {
  it("have their reply in several forms", () => {
    expect(recordOf('{"id":1,"chunks":["a","b"],"protocol":"plain"}')).toMatchObject({ id: "1", reply: "ab", dialect: "plain" });
    expect(recordOf('{"choices":[{"message":{"content":"x"}}]}')?.reply).toBe("x");
    expect(recordOf('{"message_id":"m","request":{"model":"k"},"metadata":{"dialect":"d"},"reply":"x"}')).toMatchObject({ id: "m", model: "k", dialect: "d" });
    expect(recordOf("[1]")).toBeNull();
    expect(recordOf("{")).toBeNull();
  });

  it("are found in a file however it is cut", () => {
    const text = new TextEncoder().encode("{a}\n\n  \n{思}\r\n{c}");
    for (let size = 1; size <= text.length; size += 1) {
      const lines = new LineSplitter();
      const found = [];
      for (let at = 0; at < text.length; at += size) found.push(...lines.push(text.subarray(at, at + size)));
      found.push(...lines.finish());
      expect(found.map(({ start, bytes }) => [start, new TextDecoder().decode(bytes).trim()])).toEqual([[0, "{a}"], [8, "{思}"], [15, "{c}"]]);
    }
  });
});

const row = (at: number, more: Partial<Row> = {}): Row => ({
  start: at * 10, length: 9, id: `record-${at}`, model: at % 2 === 0 ? "even" : "odd", dialect: "plain", preview: "", findings: null, readable: true, ...more,
});

it("of a line that is too long only the beginning is kept, however it is cut", () => {
  const text = new TextEncoder().encode(`short\n${"x".repeat(50)}\nlast`);
  for (let size = 1; size <= text.length; size += 1) {
    const lines = new LineSplitter(8);
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...lines.push(text.subarray(at, at + size)));
    found.push(...lines.finish());
    expect(found.map(({ start, length, bytes }) => [start, length, new TextDecoder().decode(bytes)])).toEqual([
      [0, 5, "short"], [6, 50, "xxxxxxxx"], [57, 4, "last"],
    ]);
  }
});

describe("a text that is too large", () => {
  it("stays in its file, unless it is records", async () => {
    const large = "word ".repeat(3_500_000);
    const file = new File([large], "reply.txt");
    expect(await inputOfFile(file)).toMatchObject({ kind: "large", of: "reply", file });
    expect(inputOf(large)).toMatchObject({ kind: "large", of: "reply" });
    expect(await inputOfFile(new File([`event: status\n${large}`], "a.sse"))).toMatchObject({ kind: "large", of: "transcript" });
    expect(inputOf("word")).toMatchObject({ kind: "reply", text: "word" });
  });

  it("is checked by a command", () => {
    const size = 150_000_000;
    expect(commandOf("reply", { name: "reply.txt", size, dialect: "thinkingml" })).toBe("tambour check --contract thinkingml --option limits.input=150000000 reply.txt");
    expect(commandOf("reply", { name: "it's a reply", size: 5_000_000, dialect: "auto" })).toBe("tambour check './it'\\''s a reply'");
    expect(commandOf("transcript", { name: "-x.sse", size, dialect: "plain" })).toBe("tambour check --contract events --option limits.input=150000000 './-x.sse'");
    expect(commandOf("record", { name: "a.jsonl", size, dialect: "auto" })).toBe("tambour check --field FIELD --option limits.input=150000000 a.jsonl");
  });
});

describe("an index of records", () => {
  const index = new RecordIndex();
  for (let at = 0; at < 3000; at += 1) {
    index.add(row(at, at % 3 === 0 ? { findings: [{ rule: "T-001", code: at % 6 === 0 ? "a" : "b", severity: at % 6 === 0 ? "error" : "info", repaired: true }] } : {}));
  }

  it("is filtered by rule, severity, model, verdict and words", () => {
    expect(filtered(index, {})).toHaveLength(3000);
    expect(filtered(index, { rule: "T-001 a" })).toHaveLength(500);
    expect(filtered(index, { severity: "warning" })).toHaveLength(500);
    expect(filtered(index, { severity: "info" })).toHaveLength(1000);
    expect(filtered(index, { rule: "T-001 b", severity: "error" })).toHaveLength(0);
    expect(filtered(index, { rule: "nothing" })).toHaveLength(0);
    expect(filtered(index, { model: "odd" })).toHaveLength(1500);
    expect(filtered(index, { state: "unchecked" })).toHaveLength(2000);
    expect([...filtered(index, { text: "RECORD-299" })]).toEqual([299, ...Array.from({ length: 10 }, (_, one) => 2990 + one)]);
  });

  it("counts rules and verdicts", () => {
    expect(rulesOf(index, filtered(index, {})).map(({ name, records, worst }) => [name, records, worst])).toEqual([["T-001 a", 500, "error"], ["T-001 b", 500, "info"]]);
    expect(statesOf(index)).toEqual({ unchecked: 2000, pass: 500, fail: 500, unreadable: 0 });
  });

  it("takes what the server says in the place of what was there", () => {
    const own = new RecordIndex();
    own.add(row(0));
    own.check(0, "fail", [finding("x"), finding("y", "warning", "mended")]);
    expect([own.stateOf(0), own.countOf(0), own.worstOf(0), own.givenOf(0)?.length]).toEqual(["fail", 2, "error", 2]);
    own.check(0, "pass", []);
    expect([own.stateOf(0), own.countOf(0), own.worstOf(0)]).toEqual(["pass", 0, null]);
    expect(own.placeOf(0)).toEqual({ start: 0, end: 9 });
  });
});

describe("exports", () => {
  async function* texts(): AsyncGenerator<CheckedText> {
    yield await Promise.resolve({ record: 7, id: "r", model: "=cmd", contract: "plain", verdict: "fail", findings: [finding("a"), finding("b", "info", "mended")] });
    yield { record: 8, id: "s", model: "", contract: "plain", verdict: "pass", findings: [] };
  }
  const write = async (format: "json" | "sarif" | "csv") => {
    const rules = [{ code: "a", rows: ["T-001"], title: "No a." }];
    let text = "";
    for await (const piece of exported(format, { name: "a b.jsonl", texts: texts(), rules })) text += piece;
    return text;
  };

  it("are JSON", async () => {
    expect(JSON.parse(await write("json"))).toMatchObject([{ record: 7, first_error: "a", findings: [{}, {}] }, { record: 8, verdict: "pass" }]);
  });

  it("are SARIF, with the rules that are named", async () => {
    const log = JSON.parse(await write("sarif")) as { runs: [{ results: unknown[]; tool: unknown; columnKind: string }] };
    expect(log).toMatchObject({ version: "2.1.0", runs: [{ columnKind: "unicodeCodePoints", tool: { driver: { rules: [{ id: "T-001/a", shortDescription: { text: "No a." } }, { id: "T-001/b" }] } } }] });
    expect(log.runs[0].results).toMatchObject([
      { ruleId: "T-001/a", ruleIndex: 0, level: "error", locations: [{ physicalLocation: { artifactLocation: { uri: "a%20b.jsonl" }, region: { startLine: 7 } } }] },
      { ruleId: "T-001/b", ruleIndex: 1, level: "note", properties: { repair: "mended" } },
    ]);
  });

  it("are CSV that no spreadsheet runs", async () => {
    const lines = (await write("csv")).split("\r\n");
    expect(lines).toHaveLength(5);
    expect(lines[1]).toBe(`a b.jsonl,7,r,'=cmd,plain,fail,T-001,a,error,3,4,1,2,"about ""a"", and more",`);
    expect(lines[3]).toBe("a b.jsonl,8,s,,plain,pass,,,,,,,,,");
    expect(cellOf("-1")).toBe("'-1");
  });
});

describe("a comparison", () => {
  it("breaks long lines", () => {
    const lines = diffLines("x".repeat(1_000_000), "y");
    expect(lines.every(({ text }) => text.length <= 400)).toBe(true);
    expect(lines.map(({ text }) => text).join("")).toBe(`${"x".repeat(1_000_000)}y`);
  });

  it("has the lines of both", () => {
    const lines = diffLines("a\nb\nc\nd", "a\nx\nc\ny\nd");
    expect(lines.map(({ kind, text }) => `${kind[0] ?? ""}${text}`)).toEqual(["sa", "rb", "ax", "sc", "ay", "sd"]);
    expect(diffLines("same", "same").every(({ kind }) => kind === "same")).toBe(true);
    expect(diffLines("a\nb", "").filter(({ kind }) => kind === "removed")).toHaveLength(2);
  });
});

describe("transcripts", () => {
  it("are Server-Sent Events or lines", () => {
    expect(eventsOf('id: 1\nevent: a\ndata: {"x":1}\n\nevent: b\ndata: {}')).toEqual([{ event: "a", data: { x: 1 } }, { event: "b", data: {} }]);
    expect(eventsOf('{"event":"a","data":{"x":1}}\nbroken\n{"event":"b"}')).toEqual([{ event: "a", data: { x: 1 } }, { event: "b", data: {} }]);
  });
});

describe("rules", () => {
  const rule = (code: string, owner: string): Rule => ({ code, owner, rows: ["T-001"], level: "must", title: `About ${code}` });
  const rules = [rule("a", "plain"), rule("b", "plain"), rule("a", "jsonseq"), rule("c", "json"), rule("d", "html")];

  it("of a contract are kept or broken, broken ones first", () => {
    const verdicts = verdictsOf(rules, "plain", [finding("b", "warning", "mended"), finding("d")]);
    expect(verdicts.map(({ rule: { code }, findings, repaired }) => [code, findings, repaired])).toEqual([["b", 1, 1], ["d", 1, 0], ["a", 0, 0], ["c", 0, 0]]);
  });

  it("are found by words and owner", () => {
    expect(findRules(rules, "about JSONSEQ", undefined)).toHaveLength(1);
    expect(findRules(rules, "t-001", "plain")).toHaveLength(2);
  });
});
