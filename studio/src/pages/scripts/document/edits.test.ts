import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isMap, isScalar, isSeq, type Node, type Scalar, type YAMLMap, type YAMLSeq } from "yaml";
import { describe, expect, it } from "vitest";
import { removeField, renameField, setField } from "./fields.ts";
import { duplicateItem, insertItem, moveItem, removeItem } from "./items.ts";
import { colonOf, dashesOf, endOf, endOfPair, mapAt, pairAt, parse, seqAt, startOf, valueAt } from "./parse.ts";
import { type Value } from "./scalar.ts";
import { lineEnd, lineStart, type Path } from "./text.ts";

const ROOT = join(import.meta.dirname, "../../../../..");

const examples = readdirSync(join(ROOT, "examples"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith("script.yaml"))
  .map((file) => ({ name: `examples/${file}`, text: readFileSync(join(ROOT, "examples", file), "utf8") }));

const fixtures = readFileSync(join(ROOT, "fixtures/script/scripts.jsonl"), "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as { id: string; input: string })
  .map(({ id, input }) => ({ name: `fixtures/script ${id}`, text: input }));

const scripts = [...examples, ...fixtures].filter(
  ({ text }) => parse(text).error === null && !/[&*]\w/.test(text) && isMap(parse(text).document.contents),
);

/** Random numbers that are the same in each run (mulberry32). */
function randomSource(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

type FieldPlace = { path: Path; key: string; node: Scalar };
type ListPlace = { path: Path; key: string; seq: YAMLSeq };

function placesOf(text: string): { fields: FieldPlace[]; lists: ListPlace[]; maps: { path: Path; map: YAMLMap }[] } {
  const fields: FieldPlace[] = [];
  const lists: ListPlace[] = [];
  const maps: { path: Path; map: YAMLMap }[] = [];
  const walk = (node: Node | null, path: Path) => {
    if (isMap(node)) {
      maps.push({ path, map: node });
      for (const pair of node.items) {
        const key = String((pair.key as Scalar).value);
        const value = pair.value as Node | null;
        if (isScalar(value)) fields.push({ path, key, node: value });
        if (isSeq(value)) lists.push({ path, key, seq: value });
        walk(value, [...path, key]);
      }
    } else if (isSeq(node)) {
      node.items.forEach((item, index) => walk(item as Node, [...path, index]));
    }
  };
  walk(parse(text).document.contents, []);
  return { fields, lists, maps };
}

const VALUES: readonly Value[] = [
  "plain", "两行\n文字", "ends with a break\n", "  leading space", "a: b", "x # no comment", "{name}，你好", "true", "017",
  "yes", "", "- dash", "it's", 'a "quote"', "\ttab", "trailing ", "a\n\nb", "\n first empty", "many\n\n", "😀 emoji",
  "# hash", "nul\u0001", "[x]", "a, b", "~", "no", "1.5", 5, 20, 0.5, true, false, null, "line\r\nbreak", "  indented\nthen not",
  "a\n   \nb", "spaces\n  \n",
];

/** Length of the comments directly above a list, which belong to its first item. */
function commentsAbove(text: string, list: YAMLSeq): number {
  const begin = lineStart(text, startOf(list));
  return list.flow === true ? 0 : (/(?:(?<=^|\n) *#[^\n]*\n)*$/.exec(text.slice(0, begin))?.[0].length ?? 0);
}

const expectedAt = (text: string, path: Path, act: (target: never) => void): unknown => {
  const whole = structuredClone(parse(text).document.toJS() as unknown);
  let target = whole;
  for (const step of path) target = (target as Record<string | number, unknown>)[step];
  act(target as never);
  return whole;
};

const valueOf = (text: string): unknown => {
  const { error, document } = parse(text);
  expect(error, text).toBeNull();
  return document.toJS() as unknown;
};

const commentsOf = (text: string): string[] => {
  const found: string[] = [];
  for (const [, comment] of text.matchAll(/(?:^|\s)(#[^\n]*)/g)) found.push(comment ?? "");
  return found.sort();
};

it("has scripts to edit", () => {
  expect(examples.length).toBeGreaterThanOrEqual(3);
  expect(scripts.length).toBeGreaterThan(40);
});

describe.each(scripts)("$name", ({ text }) => {
  it("stays as it is when every field is set to what it has", () => {
    for (const { path, key, node } of placesOf(text).fields) {
      expect(setField(text, path, key, node.value as Value)).toBe(text);
    }
  });

  it("keeps every byte outside of the field that is set", () => {
    for (const [at, { path, key, node }] of placesOf(text).fields.entries()) {
      const value = VALUES[at % VALUES.length] ?? null;
      expectBytes(text, { path, key, node }, value);
    }
  });
});

function expectBytes(text: string, { path, key, node }: FieldPlace, value: Value): void {
  const changed = setField(text, path, key, value);
  const before = text.slice(0, startOf(node));
  const after = text.slice(endOf(node));
  // A space follows the colon of a field that had no value, and a block text ends with its line.
  expect(changed.startsWith(before), `before ${key}`).toBe(true);
  expect(changed.endsWith(after), `after ${key}: ${JSON.stringify(value)}\n${changed}`).toBe(true);
  expect(valueOf(changed), `${key} = ${JSON.stringify(value)}\n${changed}`).toEqual(
    expectedAt(text, path, (map: Record<string, unknown>) => {
      map[key] = value;
    }),
  );
}

/** Checks that a text changed only between `from` and `to`. */
function expectOutside(text: string, changed: string, from: number, to: number): void {
  expect(changed.slice(0, from)).toBe(text.slice(0, from));
  expect(changed.length - (text.length - to)).toBeGreaterThanOrEqual(from);
  expect(changed.endsWith(text.slice(to)), changed).toBe(true);
}

/** True if one insertion turns a text into the other. */
function isInsertion(text: string, longer: string): boolean {
  let start = 0;
  while (start < text.length && text[start] === longer[start]) start += 1;
  // A last line without an end gets one.
  const rest = text.slice(start);
  return longer.length > text.length && (longer.endsWith(rest) || (rest === "" && longer.startsWith(text)));
}

const charactersOf = (text: string): string => Array.from(text).sort().join("");

/** Lines without indentation and dash, sorted. */
const linesIn = (text: string): string[] => text.split("\n").map((line) => line.trim().replace(/^- /, "").trim()).filter((line) => line !== "").sort();

/** Checks that a field was removed with its line or its comma, and nothing else. */
function expectRemoved(text: string, without: string, path: Path, key: string): void {
  const [pair, map] = [pairAt(parse(text), path, key), mapAt(parse(text), path)];
  if (pair === undefined || map === null) throw new Error(`there is ${key}`);
  const [start, end] = [startOf(pair.key), endOfPair(pair)];
  if (map.items.length === 1) {
    expectOutside(text, without, start, end);
    return;
  }
  const next = map.items[map.items.indexOf(pair) + 1]?.key as Node | undefined;
  const last = text[end - 1] === "\n" ? end : lineEnd(text, end);
  expect(isInsertion(without, text), without).toBe(true);
  expect(text.length - without.length).toBeLessThanOrEqual(Math.max(last, next === undefined ? 0 : startOf(next)) - lineStart(text, start));
}

describe("200 generated edits", () => {
  const pick = randomSource(29);
  const one = <T>(list: readonly T[]): T => list[pick(list.length)] as T;
  for (let number = 1; number <= 200; number += 1) {
    const { name, text } = one(scripts);
    const { fields, lists, maps } = placesOf(text);
    const kind = one(["set", "set", "set", "add", "remove", "move", "insert", "drop", "double"] as const);
    it(`${number}: ${kind} in ${name}`, () => {
      if (kind === "set" && fields.length > 0) {
        expectBytes(text, one(fields), one(VALUES));
        return;
      }
      if (kind === "add" || fields.length === 0) {
        const { path } = one(maps);
        const value = one(VALUES);
        const changed = setField(text, path, "zusatz", value);
        expect(isInsertion(text, changed), changed).toBe(true);
        expect(valueOf(changed), changed).toEqual(
          expectedAt(text, path, (map: Record<string, unknown>) => {
            map["zusatz"] = value;
          }),
        );
        return;
      }
      if (kind === "remove") {
        const { path, key } = one(fields);
        const without = removeField(text, path, key);
        expectRemoved(text, without, path, key);
        expect(valueOf(without)).toEqual(
          expectedAt(text, path, (map: Record<string, unknown>) => {
            // eslint-disable-next-line @typescript-eslint/no-dynamic-delete
            delete map[key];
          }),
        );
        return;
      }
      const usable = lists.filter(({ seq }) => seq.items.length > 0 && seq.items.every((item) => isMap(item)));
      if (usable.length === 0) {
        expectBytes(text, one(fields), one(VALUES));
        return;
      }
      const { path, key, seq } = one(usable);
      const size = seq.items.length;
      const [from, to] = [pick(size), pick(size)];
      const item = { type: "ai_say", content: "新的\n内容" };
      const changed = {
        move: () => moveItem(text, { path, key, index: from }, { path, key, index: to }),
        insert: () => insertItem(text, path, key, to, item),
        drop: () => removeItem(text, path, key, from),
        double: () => duplicateItem(text, path, key, from),
        set: () => text,
      }[kind]();
      const list = seqAt(parse(text), [...path, key]);
      if (list === null) throw new Error("there is a list");
      if (kind === "move") {
        expectOutside(text, changed, lineStart(text, startOf(list)) - commentsAbove(text, list), lineEnd(text, endOf(list) - 1));
        expect(charactersOf(changed)).toBe(charactersOf(text));
      }
      if (kind === "insert" || kind === "double") expect(isInsertion(text, changed), changed).toBe(true);
      if (kind === "drop") {
        // A list in lines that becomes empty gets brackets.
        const pair = pairAt(parse(text), path, key);
        if (pair === undefined) throw new Error("there is a list");
        const colon = colonOf(text, pair);
        const left = size === 1 && list.flow !== true ? changed.slice(0, colon) + changed.slice(colon + " []".length) : changed;
        expect(isInsertion(left, text), changed).toBe(true);
      }
      expect(valueOf(changed), changed).toEqual(
        expectedAt(text, path, (map: Record<string, unknown[]>) => {
          const items = map[key] ?? [];
          if (kind === "move") items.splice(to, 0, ...items.splice(from, 1));
          if (kind === "insert") items.splice(to, 0, item);
          if (kind === "drop") items.splice(from, 1);
          if (kind === "double") items.splice(from, 0, structuredClone(items[from]));
        }),
      );
    });
  }
});

describe("a part that goes to a list without others", () => {
  const blocks = scripts.filter(({ text }) => /^ *(?:- )?actions:\r?\n/m.test(text));
  it.each(blocks)("keeps its comments and its style, and comes back as it was: $name", ({ text }) => {
    for (const { path, key, seq } of placesOf(text).lists) {
      const [first] = seq.items;
      if (key !== "actions" || !isMap(first) || dashesOf(seq).length === 0) continue;
      const parentPath = path.slice(0, -1);
      const steps = valueAt(parse(text), parentPath);
      if (!Array.isArray(steps)) continue;
      const wide = insertItem(text, parentPath.slice(0, -1), String(parentPath.at(-1)), steps.length, { topic: "empty", actions: [] });
      const target = { path: [...parentPath, steps.length], key, index: 0 };
      const moved = moveItem(wide, { path, key, index: 0 }, target);
      expect(commentsOf(moved)).toEqual(commentsOf(wide));
      const without = (lines: string[]) => lines.filter((line) => !line.startsWith("actions:"));
      expect(without(linesIn(moved))).toEqual(without(linesIn(wide)));
      const value = first.toJS(parse(text).document) as unknown;
      expect(valueAt(parse(moved), [...target.path, key, 0])).toEqual(value);
      expect(moveItem(moved, target, { path, key, index: 0 }), moved).toBe(wide);
    }
  });
});

describe("an edit", () => {
  const say = "- type: ai_say # a\n  # above\n  ai_say: |\n    old\n    text\n  max_rounds: 3   # three\n";

  it("renames a key and leaves its value", () => {
    const renamed = renameField(say, [0], "ai_say", "content");
    expect(renamed).toBe(say.replace("ai_say: |", "content: |"));
  });

  it("puts a new field behind others, and keeps the comment of a line", () => {
    expect(setField(say, [0], "require_acknowledgment", false, ["type", "ai_say"])).toBe(
      say.replace("    text\n", "    text\n  require_acknowledgment: false\n"),
    );
    expect(setField(say, [0], "max_rounds", 4)).toBe(say.replace("3   #", "4   #"));
    expect(setField(say, [0], "exit_criteria", { understanding_threshold: 90 })).toBe(
      `${say}  exit_criteria:\n    understanding_threshold: 90\n`,
    );
  });

  it("keeps line breaks of Windows", () => {
    const text = "a: 1\r\nb: x\r\n";
    expect(setField(setField(text, [], "c", "two\nlines"), [], "a", 2)).toBe(
      "a: 2\r\nb: x\r\nc: |-\r\n  two\r\n  lines\r\n",
    );
  });

  it("moves a step to another phase with its comments, and fills an empty list", () => {
    const text = "p:\n  - s:\n      # one\n      - n: 1\n      - n: 2\n  - s: []\n  - s:\n    - n: 3\n";
    const changed = moveItem(text, { path: ["p", 0], key: "s", index: 0 }, { path: ["p", 2], key: "s", index: 1 });
    expect(changed).toBe("p:\n  - s:\n      - n: 2\n  - s: []\n  - s:\n    - n: 3\n    # one\n    - n: 1\n");
    const filled = moveItem(text, { path: ["p", 0], key: "s", index: 1 }, { path: ["p", 1], key: "s", index: 0 });
    expect(filled).toBe("p:\n  - s:\n      # one\n      - n: 1\n  - s:\n      - n: 2\n  - s:\n    - n: 3\n");
  });

  it("moves a part with all that is written in it, to an empty list, to brackets, and back", () => {
    const say = "      # above\n      - type: ai_say # beside\n        # within\n        content: |\n          a\n             \n          b\n        # below\n";
    const text = `p:\n  - s: # keys\n${say}  - s: [] # none\n  - {s: [{n: 1}]}\n  - s: [{n: 2}, {n: 3}]\n`;
    const first = { path: ["p", 0], key: "s", index: 0 };
    const second = { path: ["p", 1], key: "s", index: 0 };
    const moved = moveItem(text, first, second);
    expect(moved).toBe(`p:\n  - s: [] # keys\n  - s: # none\n${say}  - {s: [{n: 1}]}\n  - s: [{n: 2}, {n: 3}]\n`);
    expect(moveItem(moved, second, first)).toBe(text);
    const last = moveItem(text, first, { path: ["p", 3], key: "s", index: 1 });
    expect(last).toBe(`p:\n  - s: [] # keys\n  - s: [] # none\n  - {s: [{n: 1}]}\n  - s:\n      - {n: 2}\n${say}      - {n: 3}\n`);
    const bracketed = moveItem(text, { path: ["p", 3], key: "s", index: 0 }, first);
    expect(bracketed).toBe(text.replace("# keys\n", "# keys\n      - {n: 2}\n").replace("[{n: 2}, {n: 3}]", "[{n: 3}]"));
  });

  it("moves a part with comments into brackets, in lists and in maps, and loses none", () => {
    const say = "      # above\n      - n: 1 # beside\n";
    const from = { path: ["p", 0], key: "s", index: 0 };
    const moved = (target: string, index: number, to: Path = ["p", 1]) => {
      const text = `p:\n  - s:\n${say}${target}`;
      const changed = moveItem(text, from, { path: to, key: "s", index });
      expect(commentsOf(changed), changed).toEqual(commentsOf(text));
      expect(valueAt(parse(changed), [...to, "s", index]), changed).toEqual({ n: 1 });
      return changed.slice("p:\n  - s: []\n".length);
    };
    expect(moved("  - {t: x, s: [{n: 2}], u: y} # end\n", 1)).toBe(`  - # end\n    t: x\n    s:\n      - {n: 2}\n${say}    u: y\n`);
    expect(moved("  - {t: x, s: []}\n", 0)).toBe(`  - t: x\n    s:\n${say}`);
    expect(moved("  - {t: x}", 0)).toBe(`  - t: x\n    s:\n${say}`);
    expect(moved("  - s: [ # first\n      {n: 2}, # two\n      # of three\n      {n: 3,\n       m: 4} # three\n      # last\n    ] # end\n", 1)).toBe(
      `  - s: # end\n      # first\n      - {n: 2} # two\n${say}      # of three\n      - {n: 3,\n          m: 4} # three\n        # last\n`,
    );
    const deep = '  - "q":\n      - "s":\n          # above\n          - n: 1 # beside\n          - {n: 2}\n      - 7\n';
    expect(moved('  - {"q": [{"s": [{n: 2}]}, 7]}\n', 0, ["p", 1, "q", 0])).toBe(deep);
  });

  it("moves parts out of brackets, and within them, with the comments beside them", () => {
    const text = "p:\n  - s: [\n      {n: 1}, # one\n      # of two\n      {n: 2} # two\n    ]\n  - s: [{n: 3}]\n";
    const [first, other] = [{ path: ["p", 0], key: "s", index: 0 }, { path: ["p", 1], key: "s", index: 0 }];
    expect(moveItem(text, first, other)).toBe("p:\n  - s:\n      # of two\n      - {n: 2} # two\n  - s:\n      - {n: 1} # one\n      - {n: 3}\n");
    expect(moveItem(text, first, { ...first, index: 1 })).toBe("p:\n  - s:\n      # of two\n      - {n: 2} # two\n      - {n: 1} # one\n  - s: [{n: 3}]\n");
    expect(removeItem(text, ["p", 0], "s", 0)).toBe("p:\n  - s:\n      # of two\n      - {n: 2} # two\n  - s: [{n: 3}]\n");
    expect(moveItem(text.replaceAll("\n", "\r\n"), first, other)).toBe(moveItem(text, first, other).replaceAll("\n", "\r\n"));
  });

  it("does not move a part where something that is written would be lost", () => {
    const say = "p:\n  - s:\n      - n: 1 # beside\n";
    for (const target of ["  - {s: [&a {n: 2}, *a]}\n", "  - s: 5\n", "  - ? s\n    : - n: 2\n"]) {
      const text = say + target;
      expect(moveItem(text, { path: ["p", 0], key: "s", index: 0 }, { path: ["p", 1], key: "s", index: 0 }), target).toBe(text);
    }
  });

  it("keeps comments above the next field when the first of an item is removed", () => {
    expect(removeField("- a: 1 # one\n  # of b\n  b: 2\n", [0], "a")).toBe("-\n  # of b\n  b: 2\n");
    expect(removeField("- a: |\n    x\n- b: 1\n", [0], "a")).toBe("- {}\n- b: 1\n");
  });

  it("adds to brackets in brackets", () => {
    expect(setField("a: {b: 1} # c\n", ["a"], "d", "x, y")).toBe('a: {b: 1, d: "x, y"} # c\n');
    expect(removeField("a: {b: 1, d: 2}\n", ["a"], "b")).toBe("a: {d: 2}\n");
  });
});
