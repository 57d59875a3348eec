import { describe, expect, it } from "vitest";
import { wholeList } from "./wholeList.ts";

const ROWS = Array.from({ length: 450 }, (_, index) => String(index + 1));

async function load(after: string | undefined) {
  const from = after === undefined ? 0 : Number(after);
  return Promise.resolve({ data: ROWS.slice(from, from + 200), has_more: from + 200 < ROWS.length });
}

describe("a whole listing", () => {
  it("has the rows of all pages", async () => expect(await wholeList(load, (row) => row)).toEqual(ROWS));

  it("ends where a page is empty, whatever it says", async () => {
    expect(await wholeList<string>(async () => Promise.resolve({ data: [], has_more: true }), (row) => row)).toEqual([]);
  });
});
