import { describe, expect, it } from "vitest";
import { placesIn } from "./places.ts";

describe("places of a script", () => {
  it("are its steps by path", () => {
    const script = { sessions: [{ session: "s", phases: [{ phase: "p", steps: [{ topic: "a" }, { topic: "b" }] }] }] };
    expect(placesIn(script)).toEqual([
      {
        name: "s",
        steps: [
          { path: "sessions[0].phases[0].steps[0]", label: "p / a" },
          { path: "sessions[0].phases[0].steps[1]", label: "p / b" },
        ],
      },
    ]);
  });

  it("are those of the older flat layout too", () => {
    const topics = [{ topic_name: "a", actions: [{ action_type: "ai_say" }] }, { topic_id: 2 }];
    const script = { session: { session_name: "s", phases: [{ phase_id: "p", topics }] } };
    expect(placesIn(script)).toEqual([
      {
        name: "s",
        steps: [
          { path: "session.phases[0].topics[0]", label: "p / a" },
          { path: "session.phases[0].topics[1]", label: "p / 2" },
        ],
      },
    ]);
  });

  it("are none in what is no script", () => {
    expect(placesIn("x")).toEqual([]);
    expect(placesIn({ sessions: [null].filter(Boolean) })).toEqual([]);
  });
});
