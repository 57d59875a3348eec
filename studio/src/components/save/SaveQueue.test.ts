import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiError, UNREACHABLE } from "../../api/errors.ts";
import { SaveQueue } from "./SaveQueue.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it("saves the last of several changes once", async () => {
  const written: string[] = [];
  const queue = new SaveQueue<string>(
    (value) => {
      written.push(value);
      return Promise.resolve();
    },
    { delayMs: 500 },
  );
  queue.change("a");
  queue.change("b");
  expect(queue.status().state).toBe("unsaved");
  await vi.advanceTimersByTimeAsync(500);
  expect(written).toEqual(["b"]);
  expect(queue.status().state).toBe("saved");
  expect(queue.isDirty).toBe(false);
});

it("writes one at a time, and afterwards what changed meanwhile", async () => {
  const written: string[] = [];
  let running = 0;
  const queue = new SaveQueue<string>(
    async (value) => {
      running += 1;
      expect(running).toBe(1);
      await new Promise((done) => setTimeout(done, 1000));
      running -= 1;
      written.push(value);
    },
    { delayMs: 100 },
  );
  queue.change("a");
  await vi.advanceTimersByTimeAsync(200);
  queue.change("b");
  await vi.advanceTimersByTimeAsync(300);
  queue.change("c");
  await vi.advanceTimersByTimeAsync(5000);
  expect(written.at(-1)).toBe("c");
  expect(queue.status().state).toBe("saved");
});

it("keeps a change that could not be written", async () => {
  let fail = true;
  const written: string[] = [];
  const queue = new SaveQueue<string>(
    (value) => {
      if (fail) return Promise.reject(new ApiError(0, { code: UNREACHABLE }));
      written.push(value);
      return Promise.resolve();
    },
    { delayMs: 100 },
  );
  queue.change("a");
  expect(await queue.flush()).toBe(false);
  expect(queue.status().state).toBe("offline");
  expect(queue.isDirty).toBe(true);
  fail = false;
  expect(await queue.flush()).toBe(true);
  expect(written).toEqual(["a"]);
});

it("tells a refusal apart from a lost connection", async () => {
  const queue = new SaveQueue<string>(() => Promise.reject(new ApiError(412, { code: "changed_meanwhile" })), {
    delayMs: 100,
  });
  queue.change("a");
  await queue.flush();
  expect(queue.status().state).toBe("failed");
  expect(queue.status().error).toBeInstanceOf(ApiError);
  queue.discard();
  expect(queue.isDirty).toBe(false);
});
