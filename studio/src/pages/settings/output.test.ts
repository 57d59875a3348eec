import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Schemas } from "../../api/types.ts";
import { changesIn, defaultText, valuesOf } from "./output.ts";

const settings: Schemas["Settings"] = {
  default_upstream: null,
  limits: {},
  llm_app_settings: { app_output_protocol: "legacy" },
  text_language: "zh",
  texts: { fallback: defaultText("fallback", "zh"), phase_title: defaultText("phase_title", "zh") },
  thought_display: "collapsed",
  tools: { max_iterations: 1 },
  upstreams: [],
  version: 0,
};

it("default texts are those of the server", () => {
  const source = readFileSync(join(import.meta.dirname, "../../../../crates/tambour/src/texts.rs"), "utf8");
  for (const name of ["fallback", "phase_title"] as const) {
    const texts = [...source.matchAll(new RegExp(`${name}: "(.*?)"`, "g"))].map((match) => match[1]);
    expect(texts).toEqual([defaultText(name, "zh"), defaultText(name, "en")]);
  }
});

it("a default text is shown empty, and stays the default when something else is saved", () => {
  const values = valuesOf(settings);
  expect(values.texts).toEqual({ fallback: "", phase_title: "" });
  expect(changesIn({ ...values, thought_display: "hidden", text_language: "en" }, settings)).toEqual({
    thought_display: "hidden",
    text_language: "en",
  });
});

it("texts that were written are saved, and an emptied one is the default again", () => {
  const own = { ...settings, texts: { ...settings.texts, fallback: "mine" } };
  const values = valuesOf(own);
  expect(values.texts.fallback).toBe("mine");
  expect(changesIn(values, own)).toEqual({});
  expect(changesIn({ ...values, texts: { fallback: " ", phase_title: "B" } }, own)).toEqual({
    texts: { fallback: defaultText("fallback", "zh"), phase_title: "B" },
  });
});
