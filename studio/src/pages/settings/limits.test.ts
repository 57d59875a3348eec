import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { limits } from "../../i18n/texts/limits.ts";

it("each limit that the server shows has words", () => {
  const source = readFileSync(join(import.meta.dirname, "../../../../crates/tambour/src/limits.rs"), "utf8");
  const fields = /pub struct Limits \{(.*?)\n\}/s.exec(source)?.[1] ?? "";
  const names = [...fields.matchAll(/pub (\w+): usize/g)].map((match) => match[1]);
  expect(names).not.toEqual([]);
  expect(Object.keys(limits).sort()).toEqual(names.sort());
});
