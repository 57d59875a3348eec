import { expect, it } from "vitest";
import { median, type MessageRecord, summaryOf } from "./summary.ts";

const record = (more: Partial<MessageRecord>): MessageRecord => ({
  message_id: "m",
  conversation_id: "c",
  request_id: "r",
  created: "2026-01-01T10:20:00Z",
  status: "completed",
  current: true,
  request: {},
  ...more,
});

const metadata = { dialect: "plain", repairs: 0, warnings: 0, reasks: 0, truncated: false, notices: [] };
const finding = { rule: "T-016", code: "unclosed_element", severity: "warning" as const, span: { start: 0, end: 1 }, line: 1, column: 1, message: "m" };

it("takes the middle", () => {
  expect([median([]), median([3, 1, 2]), median([4, 1, 2, 3])]).toEqual([null, 2, 2.5]);
});

it("sums messages up", () => {
  const summary = summaryOf(
    [
      record({ metadata, timings: { first_byte_ms: 100 }, usage: { prompt_tokens: 10, completion_tokens: 5 } }),
      record({ metadata: { ...metadata, repairs: 1 }, findings: [{ ...finding, repair: "closed" }, { ...finding, repair: null }] }),
      record({ metadata: { ...metadata, fallback_reason: "parsing_error" }, request: { upstream: "other" } }),
      record({ status: "failed", created: "2026-01-01T12:00:00Z" }),
      record({ status: "running" }),
    ],
    "first",
  );
  expect(summary).toMatchObject({
    count: 4,
    completed: 3,
    failed: 1,
    validity: { clean: 1, repaired: 1, replaced: 1 },
    firstTextMs: 100,
    tokens: 15,
    rules: [{ rule: "T-016", code: "unclosed_element", count: 1 }],
  });
  expect(summary.times.map(({ completed, failed }) => [completed, failed])).toEqual([[3, 0], [0, 1]]);
  expect(summary.upstreams.map(({ name, count }) => [name, count])).toEqual([["first", 3], ["other", 1]]);
});

it("goes by days when messages are of more than two", () => {
  const days = ["2026-01-01T10:00:00Z", "2026-01-01T14:00:00Z", "2026-01-05T10:00:00Z"];
  const { times } = summaryOf(days.map((created) => record({ created, metadata })), "first");
  expect(times.map(({ completed }) => completed)).toEqual([2, 1]);
});

it("has nothing to sum up", () => {
  expect(summaryOf([], "first")).toMatchObject({ count: 0, times: [], rules: [], firstTextMs: null });
});
