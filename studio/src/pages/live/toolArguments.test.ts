import { expect, it } from "vitest";
import { blankArguments } from "./toolArguments.ts";

it("arguments begin with what the schema requires", () => {
  const schema = {
    type: "object",
    properties: {
      text: { type: "string" },
      mode: { enum: ["fast", "slow"] },
      depth: { type: "integer", default: 3 },
      more: { type: "object", properties: { on: { type: ["boolean", "null"] } }, required: ["on"] },
      unused: { type: "string" },
    },
    required: ["text", "mode", "depth", "more"],
  };
  expect(blankArguments(schema)).toEqual({ text: "", mode: "fast", depth: 3, more: { on: false } });
  for (const odd of [null, true, {}, { required: ["x"] }, { type: "object", properties: 7 }]) {
    expect(blankArguments(odd)).toEqual({});
  }
});
