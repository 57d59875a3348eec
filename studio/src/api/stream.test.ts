// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { followEvents, type Received, type StreamState } from "./stream.ts";

/** Response with a body in parts that then closes, stays open, or breaks. */
function answer(parts: string[], end: "close" | "open" | "break" = "close"): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
      if (end === "close") controller.close();
      if (end === "break") setTimeout(() => controller.error(new TypeError("reset")), 1);
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

const frame = (id: number, event: string, data: unknown) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

let received: Received[] = [];
let states: StreamState[] = [];
const fetchMock = vi.fn<(address: string, init: RequestInit) => Promise<Response>>();
const follow = (more = {}) =>
  followEvents("/events", {
    onEvent: (one) => received.push(one),
    onState: (state) => states.push(state),
    backoffMs: [10],
    ...more,
  });
const lastIds = () => fetchMock.mock.calls.map(([, init]) => new Headers(init.headers).get("last-event-id"));
const ids = () => received.map(({ id }) => id);

beforeEach(() => {
  received = [];
  states = [];
  fetchMock.mockReset();
  vi.stubGlobal("fetch", fetchMock);
});
afterEach(() => vi.unstubAllGlobals());

it("reads events to the end", async () => {
  const text = frame(1, "final_delta", { text: "你好" }) + frame(2, "completed", {});
  fetchMock.mockResolvedValueOnce(answer([text.slice(0, 20), text.slice(20, 50), text.slice(50)]));
  const stream = follow();
  await vi.waitFor(() => expect(stream.state()).toBe("ended"));
  expect(ids()).toEqual(["1", "2"]);
  expect(received[0]?.event).toEqual({ event: "final_delta", data: { text: "你好" } });
  expect(states).toEqual(["connecting", "open", "ended"]);
});

it("goes on behind the last event after the connection broke", async () => {
  fetchMock.mockResolvedValueOnce(answer([frame(1, "final_delta", { text: "a" }), "id: 2\nevent: final_de"], "break"));
  fetchMock.mockRejectedValueOnce(new TypeError("refused"));
  fetchMock.mockResolvedValue(answer([frame(2, "final_delta", { text: "b" }), frame(3, "completed", {})]));
  const stream = follow();
  await vi.waitFor(() => expect(stream.state()).toBe("ended"));
  expect(ids()).toEqual(["1", "2", "3"]);
  expect(lastIds().filter((id) => id !== null)).toEqual(["1", "1"]);
});

it("makes a silent connection again", async () => {
  fetchMock.mockResolvedValueOnce(answer([frame(1, "final_delta", { text: "a" })], "open"));
  fetchMock.mockResolvedValue(answer([frame(2, "completed", {})]));
  const stream = follow({ silenceMs: 20 });
  await vi.waitFor(() => expect(stream.state()).toBe("ended"));
  expect(ids()).toEqual(["1", "2"]);
});

it("fails on a refusal that another try cannot mend", async () => {
  const problem = { code: "not_found", title: "Not Found", detail: "there is no such message" };
  fetchMock.mockResolvedValueOnce(new Response(JSON.stringify(problem), { status: 404 }));
  const stream = follow();
  await vi.waitFor(() => expect(stream.state()).toBe("failed"));
  expect(fetchMock).toHaveBeenCalledTimes(1);
});

it("tells nothing more once it is closed", async () => {
  fetchMock.mockResolvedValueOnce(answer([frame(1, "final_delta", { text: "a" })], "open"));
  const stream = follow();
  await vi.waitFor(() => expect(received.length).toBe(1));
  stream.close();
  await new Promise((done) => setTimeout(done, 30));
  expect(stream.state()).toBe("ended");
  expect(fetchMock).toHaveBeenCalledTimes(1);
});
