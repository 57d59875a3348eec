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

  it("are none in what is no script", () => {
    expect(placesIn("x")).toEqual([]);
    expect(placesIn({ sessions: [null].filter(Boolean) })).toEqual([]);
  });
});
