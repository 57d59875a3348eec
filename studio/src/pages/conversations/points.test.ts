import { describe, expect, it } from "vitest";
import { type Update } from "./operations.ts";
import { pointsOf, updatesAfter } from "./points.ts";
import { type Message } from "./useConversation.ts";

const message = (message_id: string, created: string, status: Message["status"] = "completed"): Message => ({
  message_id,
  conversation_id: "conv_1",
  request_id: "req_1",
  created,
  status,
  current: status !== "superseded",
  request: { text: `ask ${message_id}` },
});
const update = (position: number, message_id: string | null, created: string, update_id?: string): Update => ({
  position,
  message_id,
  created,
  operations: [],
  results: [],
  reversible: true,
  ...(update_id === undefined ? {} : { update_id }),
});

describe("moments of a state", () => {
  const updates = [update(1, "a", "01"), update(3, null, "03", "upd_1"), update(4, "d", "04")];
  const points = pointsOf(
    [message("a", "01"), message("b", "02"), message("c", "02", "superseded"), message("d", "04"), message("e", "05", "failed")],
    updates,
  );

  it("are messages that stand and changes by hand, in the order of time", () => {
    expect(points.map(({ id, byHand, position }) => [id, byHand, position])).toEqual([
      ["a", false, 1],
      ["b", false, null],
      ["upd_1", true, 3],
      ["d", false, 4],
    ]);
    expect(points[0]?.words).toBe("ask a");
  });

  it("know how many updates stand behind them", () => {
    const after = (id: string) => updatesAfter(points.find((point) => point.id === id) ?? null, points, updates);
    expect(after("a")).toBe(2);
    expect(after("b")).toBe(2);
    expect(after("upd_1")).toBe(1);
    expect(after("d")).toBe(0);
    expect(updatesAfter(null, points, updates)).toBe(3);
  });
});
