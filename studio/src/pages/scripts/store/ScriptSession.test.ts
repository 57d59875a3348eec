import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../../../api/errors.ts";
import { KeptWork } from "./kept.ts";
import { type LoadedScript, ScriptSession } from "./ScriptSession.ts";

/** A server with one script, which can be made to go away. */
class Server {
  text = "one\n";
  version = 1;
  reachable = true;
  losesAnswers = false;
  put = (text: string, version: number): Promise<number> => {
    if (!this.reachable) return Promise.reject(new ApiError(0, { code: "unreachable" }));
    if (version !== this.version) {
      const present = { yaml: this.text, version: this.version };
      return Promise.reject(new ApiError(412, { code: "changed_meanwhile", present, sent: { yaml: text } }));
    }
    this.text = text;
    this.version += 1;
    return this.losesAnswers ? Promise.reject(new ApiError(0, { code: "unreachable" })) : Promise.resolve(this.version);
  };
  get loaded(): LoadedScript {
    return { id: "s", name: "s", text: this.text, version: this.version, published: null };
  }
}

let server: Server;
let pages = 0;

function open(): ScriptSession {
  const work = new KeptWork(localStorage, "s", `page${(pages += 1)}`);
  const [left] = work.left(new Set());
  return new ScriptSession({ loaded: server.loaded, put: server.put, work, left, delayMs: 10 });
}

beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
  server = new Server();
});

afterEach(() => vi.useRealTimers());

describe("a script that is edited", () => {
  it("is saved, and nothing stays in the browser", async () => {
    const session = open();
    session.change("two\n");
    expect(session.snapshot().state).toBe("unsaved");
    expect(localStorage.length).toBe(1);
    await vi.advanceTimersByTimeAsync(20);
    expect([server.text, session.snapshot().state, localStorage.length]).toEqual(["two\n", "saved", 0]);
  });

  it("is put back after a crash", () => {
    server.reachable = false;
    open().change("lost?\n");
    const again = open();
    expect(again.text).toBe("lost?\n");
    expect(again.snapshot().restoredFrom).not.toBeNull();
    expect(localStorage.length).toBe(1);
    again.discardRestored();
    expect(again.text).toBe("one\n");
    again.undo();
    expect(again.text).toBe("lost?\n");
  });

  it("is in conflict when another saved it, and neither is lost", async () => {
    const [first, second] = [open(), open()];
    first.change("mine\n");
    second.change("theirs\n");
    await second.flush();
    expect(await first.flush()).toBe(false);
    expect(first.snapshot().conflict).toEqual({ theirs: "theirs\n", version: 2 });
    expect([first.text, server.text]).toEqual(["mine\n", "theirs\n"]);
    first.change("mine still\n");
    await vi.advanceTimersByTimeAsync(50);
    expect(server.text).toBe("theirs\n");
    first.resolve("both\n");
    await vi.advanceTimersByTimeAsync(50);
    expect([server.text, first.snapshot().conflict, localStorage.length]).toEqual(["both\n", null, 0]);
  });

  it("is in conflict when it was put back and changed meanwhile", () => {
    server.reachable = false;
    open().change("kept\n");
    server.text = "newer\n";
    server.version = 5;
    expect(open().snapshot().conflict).toEqual({ theirs: "newer\n", version: 5 });
  });

  it("takes a write whose answer was lost for its own", async () => {
    const session = open();
    server.losesAnswers = true;
    session.change("two\n");
    await session.flush();
    expect(session.snapshot().state).toBe("offline");
    server.losesAnswers = false;
    session.change("three\n");
    await session.flush();
    expect([server.text, session.snapshot().conflict, session.snapshot().state]).toEqual(["three\n", null, "saved"]);
  });

  it("is told when the browser keeps nothing", () => {
    const work = new KeptWork(null, "s", "p");
    const session = new ScriptSession({ loaded: server.loaded, put: server.put, work });
    session.change("x\n");
    expect([session.snapshot().kept, session.wouldLose]).toEqual([false, true]);
  });

  it("undoes what was typed in one go at once", () => {
    const session = open();
    session.change("a\n", "text");
    session.change("ab\n", "text");
    session.change("abc\n");
    session.undo();
    expect(session.text).toBe("ab\n");
    session.undo();
    expect([session.text, session.snapshot().canUndo]).toEqual(["one\n", false]);
    session.redo();
    expect(session.text).toBe("ab\n");
  });
});
