import { describe, expect, it } from "vitest";
import { type TypedEvent } from "../api/types.ts";
import { type Core, Decoder, join, optionsOf } from "./decoder.ts";

const LIMITS = { input: 16_777_216, depth: 128, hold: 65_536, value: 4_194_304, items: 65_536, tag: 1024, line: 1024, phases: 1000, findings: 20, delta: 2048, detect: 256 };
const TEXTS = { fallback: "Sorry, my reply had a format problem. Please try your request again.", phase_title: "Thinking" };

describe("options of the server", () => {
  it("are those of the library", () => {
    expect(optionsOf({ text_language: "en", texts: TEXTS, limits: LIMITS })).toEqual({
      text_language: "en", "limits.input": 16_777_216, "limits.depth": 128, "limits.hold": 65_536, "limits.value": 4_194_304,
      "limits.items": 65_536, "limits.phases": 1000, "limits.findings": 20,
    });
  });

  it("leave the reading to the server if the library cannot have them", () => {
    expect(optionsOf({ text_language: "en", texts: { ...TEXTS, fallback: "Oh." }, limits: LIMITS })).toBeNull();
    expect(optionsOf({ text_language: "zh", texts: TEXTS, limits: LIMITS })).toBeNull();
    expect(optionsOf({ text_language: "en", texts: TEXTS, limits: { ...LIMITS, detect: 512 } })).toBeNull();
    expect(optionsOf({ text_language: "en", texts: TEXTS, limits: { ...LIMITS, novel: 1 } })).toBeNull();
  });
});

const event = (name: string, data: object) => ({ event: name, data }) as TypedEvent;

it("pieces of one text are joined, as in the server's response", () => {
  const events: TypedEvent[] = [];
  for (const one of [
    event("phase_delta", { id: 1, text: "a" }), event("phase_delta", { id: 1, text: "b" }), event("phase_delta", { id: 2, text: "c" }),
    event("aside", { kind: "comment", text: "d" }), event("aside", { kind: "comment", text: "e" }),
    event("aside", { kind: "thought", text: "f" }), event("aside", { kind: "thought", text: "g" }),
    event("final_delta", { text: "h" }), event("status_bar", { items: [] }), event("final_delta", { text: "i" }), event("final_delta", { text: "j" }),
  ]) join(events, one);
  expect(events.map(({ data }) => (data as { text?: string }).text)).toEqual(["ab", "c", "d", "e", "fg", "h", undefined, "ij"]);
});

class Refusal extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

const coreWith = (repair: Core["repair"]): Core => ({
  check: (_, { contract }) => ({ contract: String(contract), passed: false, findings: [] }),
  decode: () => [event("final_delta", { text: "a" }), event("final_delta", { text: "b" })],
  repair,
  TambourError: Refusal,
});

describe("a reading", () => {
  it("has verdict, events and the repaired reply", () => {
    const decoder = new Decoder(coreWith(() => ({ text: "r", is_fallback: false })), {});
    expect(decoder.read("x", "plain", "strict")).toEqual({
      contract: "plain", verdict: "fail", findings: [], events: [event("final_delta", { text: "ab" })], repaired: "r",
    });
  });

  it("has no repaired reply where nothing can be used or written", () => {
    const refuse = (code: string) => () => {
      throw new Refusal(code);
    };
    const repairedBy = (repair: Core["repair"]) => new Decoder(coreWith(repair), {}).read("x", "plain", "strict").repaired;
    expect(repairedBy(() => ({ text: "Sorry", is_fallback: true }))).toBeNull();
    expect(repairedBy(refuse("invalid"))).toBeNull();
    expect(() => repairedBy(refuse("internal"))).toThrow("internal");
  });
});
