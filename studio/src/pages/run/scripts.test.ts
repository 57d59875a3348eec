import { expect, test } from "vitest";
import { versionsToRun } from "./scripts.ts";

const script = { script_id: "s", name: "S" };

test("a script that was never published can be run as a draft", () => {
  expect(versionsToRun({ ...script, latest: 1, published: null }, null)).toEqual([{ version: 1, state: "draft" }]);
});

test("the last version comes before the published one, and one that was asked for is among them", () => {
  expect(versionsToRun({ ...script, latest: 5, published: 3 }, 2)).toEqual([
    { version: 5, state: "draft" },
    { version: 3, state: "published" },
    { version: 2, state: "other" },
  ]);
  expect(versionsToRun({ ...script, latest: 4, published: 4 }, 4)).toEqual([{ version: 4, state: "published" }]);
});
