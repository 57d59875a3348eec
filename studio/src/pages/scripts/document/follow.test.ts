import { describe, expect, it } from "vitest";
import { followText } from "./follow.ts";
import { flatten, idOf, outlineOf } from "./outline.ts";
import { parse, valueAt } from "./parse.ts";
import { addPart, duplicatePart, newPart, placePart, removePart, type Restructured, shiftPart } from "./structure.ts";

const action = (name: string) => `              - type: ai_say\n                action_id: ${name}\n                content: ${name}\n`;
const step = (name: string, actions: string) => `          - topic: ${name}\n            actions:${actions === "" ? " []\n" : `\n${actions}`}`;
const script = (...steps: string[]) => `sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n${steps.join("")}`;

const text = script(step("one", action("a") + action("b")), step("two", action("c")), step("three", ""));
const nodes = outlineOf(parse(text));
const all = flatten(nodes);

/** Names of parts by path. */
const namesIn = (yaml: string): Map<string, unknown> => {
  const parsed = parse(yaml);
  return new Map(flatten(outlineOf(parsed)).map(({ id, path, kind }) => [id, valueAt(parsed, [...path, kind === "action" ? "action_id" : kind === "step" ? "topic" : kind])]));
};

const before = namesIn(text);

function expectFollowed({ text: after, follow }: Restructured, removed: readonly string[] = []): void {
  const names = namesIn(after);
  for (const [id, name] of before) {
    const place = follow(id);
    if (removed.includes(String(name))) expect(place, String(name)).toBeNull();
    else expect(names.get(place ?? ""), `${id} is at ${String(place)} in ${after}`).toBe(name);
  }
}

describe("parts are followed", () => {
  const others = all.filter(({ kind }) => kind !== "session");

  it("where they move by one, are doubled or removed", () => {
    for (const node of others) {
      expectFollowed(shiftPart(text, nodes, node, 1));
      expectFollowed(shiftPart(text, nodes, node, -1));
      expectFollowed(duplicatePart(text, node));
      const below = flatten([node]).map(({ id }) => String(before.get(id)));
      expectFollowed(removePart(text, node), below);
    }
  });

  it("where they are placed or added", () => {
    const steps = all.filter(({ kind }) => kind === "step");
    for (const node of all.filter(({ kind }) => kind === "action")) {
      for (const parent of steps) {
        const isParent = parent.children.some(({ id }) => id === node.id);
        for (let index = 0; index <= parent.children.length - (isParent ? 1 : 0); index += 1) {
          const placed = placePart(text, node, parent, index);
          expectFollowed(placed);
          expect(placed.chosen).toBe(placed.follow(node.id));
        }
      }
    }
    for (const parent of steps) expectFollowed(addPart(text, parent, parent.children.length, newPart("action", "")));
  });

  it("from one text to another, by what they are", () => {
    const to = (after: string, id: string) => followText(parse(text), parse(after))(id);
    const [first, second] = [idOf(["sessions", 0, "phases", 0, "steps", 0, "actions", 0]), idOf(["sessions", 0, "phases", 0, "steps", 0, "actions", 1])];
    // Inserts another part with the same beginning above.
    expect(to(script(step("one", action("x") + action("a") + action("b")), step("two", action("c")), step("three", "")), first)).toBe(second);
    // Edits the part.
    expect(to(text.replace("content: b", "content: other"), second)).toBe(second);
    // Moves the part, also with its step.
    expect(to(script(step("one", action("b") + action("a")), step("two", action("c")), step("three", "")), first)).toBe(second);
    expect(to(script(step("two", action("c")), step("one", action("a") + action("b")), step("three", "")), first)).toBe(first.replace("steps[0]", "steps[1]"));
    // Removes the part.
    expect(to(script(step("one", action("b")), step("two", action("c")), step("three", "")), first)).toBeNull();
    expect(to(script(step("one", action("b")), step("two", action("c")), step("three", "")), second)).toBe(first);
  });
});
