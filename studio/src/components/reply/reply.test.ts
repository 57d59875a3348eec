import { describe, expect, it } from "vitest";
import { type Finding, type TypedEvent } from "../../api/types.ts";
import { eventAt, eventIn, placesOf } from "./align.ts";
import { ByteIndex } from "./bytes.ts";
import { linesOf, lineAt, marksOf, numbersAt, partAt, segmentsOf } from "./lines.ts";
import { ReplyModel } from "./ReplyModel.ts";

const finding = (start: number, end: number): Finding => ({
  rule: "T-001", code: "code", severity: "error", span: { start, end }, line: 1, column: 1, message: "", repair: null,
});

const event = (name: string, data: object = {}): TypedEvent => ({ event: name, data }) as TypedEvent;

describe("offsets in bytes", () => {
  it.each(["", "plain", "äöü – 思考", "a😀b", "\u0000\u007f\u0080\u07ff\u0800\uffff", "x".repeat(9000) + "思" + "y".repeat(5000)])(
    "are those of UTF-8 (%#)",
    (text) => {
      const index = new ByteIndex(text);
      const encoder = new TextEncoder();
      expect(index.length).toBe(encoder.encode(text).length);
      for (let at = 0; at <= text.length; at += Math.max(1, Math.floor(text.length / 50))) {
        if (/[\uDC00-\uDFFF]/.test(text.charAt(at))) continue;
        expect(index.unitAt(encoder.encode(text.slice(0, at)).length)).toBe(at);
      }
    },
  );

  it("stand behind a pair when they are within it", () => expect(new ByteIndex("a😀b").unitAt(3)).toBe(3));
  it("beyond the end are the end", () => expect(new ByteIndex("abc").unitAt(99)).toBe(3));
});

describe("lines", () => {
  it("hold the whole text, long ones in several parts", () => {
    const text = `a\n\n${"😀".repeat(500)}\nend`;
    const lines = linesOf(text);
    expect(lines.map(({ start, end }) => text.slice(start, end)).join("")).toBe(text.replaceAll("\n", ""));
    expect(lines.filter(({ first }) => first)).toHaveLength(4);
    for (const { start } of lines) expect(text.charAt(start)).not.toMatch(/[\uDC00-\uDFFF]/);
    expect(lineAt(lines, text.length)).toBe(lines.length - 1);
  });

  it("of parts are those of the whole", () => {
    const text = "a\nbb\n\nccc\ndd\n";
    const shape = (lines: readonly { start: number; end: number; number: number }[]) => lines.map(({ start, end, number }) => [start, end, number]);
    for (const starts of [[0], [0, 2], [0, 2, 5], [0, 6, 10]]) {
      const numbers = numbersAt(text, starts);
      expect(shape(starts.flatMap((start, at) => linesOf(text, start, starts[at + 1], numbers[at])))).toEqual(shape(linesOf(text)));
    }
    expect([0, 5, 6, 99].map((place) => partAt([0, 6], place))).toEqual([0, 0, 1, 1]);
  });

  it("are cut at the ends of marks, the narrowest last", () => {
    const text = "思abcdef\nx";
    const marks = marksOf(text, [finding(3, 8), finding(4, 6), finding(9, 9)]);
    const [line] = linesOf(text);
    if (line === undefined) throw new Error("there is a line");
    expect(segmentsOf(text, line, marks)).toEqual([
      { text: "思", marks: [] },
      { text: "a", marks: [0] },
      { text: "bc", marks: [0, 1] },
      { text: "de", marks: [0] },
      { text: "f", marks: [] },
      { text: "⏎", marks: [2] },
    ]);
  });
});

describe("places of events", () => {
  it("are looked for near by, also in a long text that has none of them", () => {
    const long = "x".repeat(8_000_000);
    const many = Array.from({ length: 20_000 }, (_, at) => event("final_delta", { text: `absent text number ${at}` }));
    const begun = performance.now();
    expect(placesOf(long, many).every((place) => place === null)).toBe(true);
    expect(performance.now() - begun).toBeLessThan(3000);
  });

  const raw = '<title>Goal</title>\nMore &lt;depth&gt;.\n{"text": "a\\nb"} Goal';
  const events = [
    event("thinking_start"),
    event("phase_start", { id: 1, title: "Goal" }),
    event("phase_delta", { id: 1, text: "More <depth>." }),
    event("final_delta", { text: "a\nb" }),
    event("final_delta", { text: "nowhere" }),
  ];
  const places = placesOf(raw, events);

  it("are found in order, as JSON and markup write them", () => {
    expect(places.map((place) => (place === null ? null : raw.slice(place.start, place.end)))).toEqual([
      null, "Goal", "More &lt;depth&gt;.", "a\\nb", null,
    ]);
  });

  it("lead back to their events", () => {
    expect(eventAt(places, raw.indexOf("depth"))).toBe(2);
    expect(eventAt(places, raw.length)).toBe(3);
    expect(eventIn(places, 0, 19)).toBe(1);
    expect(eventAt(places, 0)).toBeNull();
  });
});

describe("a reply", () => {
  it("is made of its events", () => {
    const model = ReplyModel.of([
      event("serp_summary", { text: "a sum" }),
      event("thinking_start"),
      event("phase_start", { id: 1, title: "Add" }),
      event("phase_delta", { id: 1, text: "2 " }),
      event("phase_delta", { id: 1, text: "+ 2" }),
      event("thinking_end"),
      event("final_delta", { text: "Fo" }),
      event("final_delta", { text: "ur" }),
      event("status_bar", { items: [] }),
      event("final_delta", { text: "." }),
      event("serp_queries", { queries: ["sum"] }),
      event("final_end"),
      event("something_new", {}),
    ]);
    expect(model.phases).toEqual([{ id: 1, title: "Add", text: "2 + 2" }]);
    expect(model.blocks.map(({ kind, index }) => [kind, index])).toEqual([["text", 6], ["event", 8], ["text", 9]]);
    expect([model.answer, model.summary, model.queries, model.thinking]).toEqual(["Four.", "a sum", ["sum"], false]);
  });

  it("F-150: has thoughts behind its beginning in the log, and comments nowhere", () => {
    const aside = (kind: string, text: string) => event("aside", { kind, text });
    const model = ReplyModel.of([
      event("phase_start", { id: 1, title: "Add" }),
      event("phase_delta", { id: 1, text: "2" }),
      event("final_delta", { text: "A" }),
      aside("thought", "Now "),
      event("finding", {}),
      aside("thought", "more."),
      aside("comment", "hidden"),
      event("final_delta", { text: "B" }),
      aside("thought", "And on."),
    ]);
    expect(model.phases).toEqual([
      { id: 1, title: "Add", text: "2" },
      { id: null, title: null, text: "Now more." },
      { id: null, title: null, text: "And on." },
    ]);
    expect(model.answer).toBe("AB");
  });

  it("tells what it waits for until it is given", () => {
    const model = ReplyModel.of([
      event("tool_call", { call_id: "call_1", name: "lint", args: { a: 1 } }),
      event("status", { state: "awaiting_tool_results", calls: [{ call_id: "call_1", name: "lint" }], timeout_ms: 1 }),
    ]);
    expect(model.waiting?.calls).toHaveLength(1);
    expect(model.argsOf("call_1")).toEqual({ a: 1 });
    model.add(event("tool_start", { call_id: "call_1", name: "lint" }), 2);
    model.add(event("tool_result", { call_id: "call_1", ok: false, error: { code: "x", message: "y" }, elapsed_ms: 3 }), 3);
    expect(model.waiting).toBeNull();
    expect(model.blocks[0]).toMatchObject({ kind: "tool", run: { state: "failed", elapsedMs: 3 } });
  });
});
