import { expect, it } from "vitest";
import { type LoreEntry } from "../imports/lore.ts";
import { asleepOf } from "./asleep.ts";

const entry = (title: string, enabled = true) => ({ id: title, title, enabled, keys: [] }) as unknown as LoreEntry;

it("takes each title once, and leaves entries that are switched off", () => {
  const entries = [entry("reef"), entry("reef"), entry("harbour", false), entry("harbour")];
  expect(asleepOf(entries, ["reef", "harbour", "gone"])).toEqual([entries[1], entries[2]]);
  expect(asleepOf(entries, [])).toEqual(entries);
});
