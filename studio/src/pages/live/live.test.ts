import { describe, expect, it } from "vitest";
import { type TypedEvent } from "../../api/types.ts";
import { type MessageRecord } from "./MessageRun.ts";
import { callsOf } from "./modelCalls.ts";
import { messageBody, responseBody } from "./request.ts";
import { targetOf, targetsOf, wordOf } from "./targets.ts";
import { lengthOf, timelineOf } from "./timeline.ts";

describe("targets", () => {
  it("are upstreams, and the models that are none", () => {
    const settings = { default_upstream: "b", upstreams: [{ name: "a", kind: "openai", model: "m" }, { name: "b", kind: "demo", model: null }] };
    const models = { data: [{ id: "a/m" }, { id: "b" }, { id: "analyst" }] };
    const targets = targetsOf(settings, models);
    expect(targets.map(wordOf)).toEqual(["upstream:a", "upstream:b", "alias:analyst"]);
    expect(targets.find(({ isDefault }) => isDefault)?.name).toBe("b");
    expect(targetOf("alias:x:y")).toEqual({ kind: "alias", name: "x:y" });
    expect(targetOf(undefined)).toBeNull();
  });
});

describe("a request", () => {
  it("has the fields that were filled in, and no others", () => {
    expect(messageBody({ text: "hi", dialect: "auto" }, undefined, " ")).toEqual({
      text: "hi", output_protocol: "jsonseq_v1", extensions: true, findings: true,
    });
    expect(
      messageBody({ text: "hi", dialect: "plain", profile: "strict", hold: "all", maxReasks: 0, temperature: 0, tools: ["lint"] }, "upstream:a", "m"),
    ).toMatchObject({
      upstream: "a", model: "m", dialect: "plain", max_reasks: 0, temperature: 0, tools: ["lint"],
      contract: { profile: "strict", options: { hold: "all" } },
    });
  });

  it("to an alias runs in the background", () => {
    expect(responseBody({ text: "hi", systemPrompt: "be short" }, "analyst")).toMatchObject({
      model: "analyst", input: "hi", instructions: "be short", background: true, store: true,
      tambour: { extensions: true, findings: true },
    });
  });
});

describe("a time line", () => {
  it("has first text, gaps and pieces", () => {
    const events = ["thinking_start", "phase_delta", "phase_delta", "final_delta", "final_delta", "completed"].map(
      (event) => ({ event, data: { text: "abc" } }) as TypedEvent,
    );
    const figures = timelineOf(events, [5, 100, 120, 140, 1140, 1200]);
    expect(figures).toMatchObject({ firstText: 100, firstAnswer: 140, end: 1200, pieces: 4, characters: 12, medianGap: 20 });
    expect(figures.longestGap === null ? 0 : lengthOf(figures.longestGap)).toBe(1000);
    expect(figures.gaps).toEqual([{ from: 140, to: 1140 }]);
    expect(figures.spans.reduce((one, other) => one + other)).toBe(4);
  });

  it("of nothing is empty", () => {
    expect(timelineOf([], [])).toMatchObject({ firstText: null, longestGap: null, medianGap: null, pieces: 0, gaps: [] });
  });
});

describe("calls of models", () => {
  const base = { message_id: "m", conversation_id: "c", request_id: "r", created: "", status: "completed", request: { text: "hi", upstream: "a" } };

  it("are attempts, and the reply", () => {
    const record = { ...base, reply: "good", finish_reason: "stop", prompt: [{ role: "user", content: "hi" }], attempts: [{ raw: "bad", findings: [], finish_reason: "length" }] };
    const calls = callsOf(record as unknown as MessageRecord);
    expect(calls.map(({ response, used, finishReason }) => [response, used, finishReason])).toEqual([["bad", false, "length"], ["good", true, "stop"]]);
    expect(calls[0]?.parameters).toEqual({ upstream: "a" });
  });

  it("that were made again have what is known of their requests, never the first one's", () => {
    const attempts = [{ raw: "bad", findings: [] }, { raw: "worse", findings: [] }];
    const record = { ...base, reply: "good", prompt: [{ role: "user", content: "hi" }], attempts, metadata: { reasks: 2 } };
    const [first, second, last] = callsOf(record as unknown as MessageRecord);
    expect([first?.request, first?.gap]).toEqual([record.prompt, "none"]);
    expect([second?.request, second?.gap]).toEqual([[...record.prompt, { role: "assistant", content: "bad" }], "complaints"]);
    expect((last?.request ?? []).map((one) => (one as { content: string }).content)).toEqual(["hi", "bad", "worse"]);
    expect([last?.gap, last?.used]).toEqual(["complaints", true]);
  });

  it("of another upstream have no request: the record has the prompt of the last one", () => {
    const attempts = [{ raw: "", error: { code: "upstream_status", message: "it answered 500" }, upstream: "one" }, { raw: "bad" }];
    const record = { ...base, reply: "good", prompt: [{ role: "user", content: "hi" }], attempts, metadata: { reasks: 1 } };
    const calls = callsOf(record as unknown as MessageRecord);
    expect(calls.map(({ request, gap }) => [request?.length ?? null, gap])).toEqual([[null, "upstream"], [1, "none"], [2, "complaints"]]);
    expect(calls.map(({ upstream, error }) => [upstream, error])).toEqual([["one", "it answered 500"], [null, null], [null, null]]);
    // The fields of the message are those of the first target.
    expect(calls.map(({ parameters }) => parameters)).toEqual([{ upstream: "a" }, null, null]);
  });

  it("have the one whose reply was kept where no later one was better", () => {
    const attempts = [{ raw: "text", finish_reason: "stop" }, { raw: "", finish_reason: "stop" }];
    const record = { ...base, reply: "text", finish_reason: "stop", prompt: [1], attempts, metadata: { reasks: 1 } };
    const calls = callsOf(record as unknown as MessageRecord);
    expect(calls.map(({ response, used }) => [response, used])).toEqual([["text", true], ["", false]]);
  });

  it("within a loop of tools are without the attempts that were thrown away", () => {
    const turns = [{ reply: "call", history: "the call", told: "result" }, { reply: "done" }];
    const record = { ...base, prompt: [1], turns, attempts: [{ raw: "bad" }], metadata: { reasks: 1 } };
    const calls = callsOf(record as unknown as MessageRecord);
    expect(calls.map(({ request, gap }) => [request?.length ?? null, gap])).toEqual([[null, "turn"], [1, "turn"], [3, "turn"]]);
    // The model reads the text that replaces its reply.
    expect(calls[2]?.request?.[1]).toEqual({ role: "assistant", content: "the call" });
  });

  it("with tools are asked with what was said before", () => {
    const record = { ...base, prompt: [1], turns: [{ reply: "call", told: "result" }, { reply: "done" }] };
    const calls = callsOf(record as unknown as MessageRecord);
    expect(calls.map(({ request }) => request?.length)).toEqual([1, 3]);
    expect(calls.map(({ told }) => told)).toEqual(["result", null]);
  });
});
