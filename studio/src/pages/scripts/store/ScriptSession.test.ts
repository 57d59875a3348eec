// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../../../api/errors.ts";
import { findNode, type OutlineNode, outlineOf } from "../document/outline.ts";
import { parse } from "../document/parse.ts";
import { removePart } from "../document/structure.ts";
import { KeptWork } from "./kept.ts";
import { type LoadedScript, ScriptSession } from "./ScriptSession.ts";
import { withTyped } from "./waiting.ts";

const SCRIPT = "sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            actions:\n              - {type: ai_say, content: a}\n              - {type: ai_say, content: b}\n";
const ACTIONS = "sessions[0].phases[0].steps[0].actions";

function partAt(text: string, id: string): OutlineNode {
  const node = findNode(outlineOf(parse(text)), id);
  if (node === null) throw new Error(`there is ${id}`);
  return node;
}

const typedForm = (index: number) => ({
  part: `${ACTIONS}[${index}]`,
  title: "ai_say",
  form: "ai_say",
  base: { content: "b", max_rounds: 5 },
  values: { content: "half an hour of typing", max_rounds: 21 },
});

/** Server with one script, which can become unreachable. */
class Server {
  text = "one\n";
  version = 1;
  reachable = true;
  losesAnswers = false;
  removed = false;
  /** True if the last write was allowed to replace the version before it. */
  replaced = true;
  put = (text: string, version: number, replaces = true): Promise<number> => {
    if (!this.reachable) return Promise.reject(new ApiError(0, { code: "unreachable" }));
    if (this.removed) return Promise.reject(new ApiError(404, { code: "not_found" }));
    if (version !== this.version) {
      const present = { yaml: this.text, version: this.version };
      return Promise.reject(new ApiError(412, { code: "changed_meanwhile", present, sent: { yaml: text } }));
    }
    this.text = text;
    this.version += 1;
    this.replaced = replaces;
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
    expect(server.replaced).toBe(false);
    first.change("further\n");
    await first.flush();
    expect(server.replaced).toBe(true);
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

  it("is not given up when somebody else deletes it", async () => {
    const session = open();
    server.removed = true;
    session.change("mine\n");
    expect(await session.flush()).toBe(false);
    expect(session.snapshot().conflict).toEqual({ theirs: null, version: 0 });
    session.change("mine still\n");
    await vi.advanceTimersByTimeAsync(50);
    const work = new KeptWork(localStorage, "s", "again");
    const [left] = work.left(new Set());
    expect(left?.work).toMatchObject({ name: "s", text: "mine still\n" });
    const again = new ScriptSession({ loaded: { ...server.loaded, text: left?.work.base ?? "" }, put: server.put, work, left, gone: true });
    expect([again.text, again.snapshot().conflict?.theirs]).toEqual(["mine still\n", null]);
    again.moveTo(new KeptWork(localStorage, "other", "p"), 1);
    expect(localStorage.length).toBe(0);
  });

  it("shows what another saved when a publication is refused for it, and keeps what is unsaved beside it", () => {
    const refusal = new ApiError(412, { code: "changed_meanwhile", present: { yaml: "theirs\n", version: 7 }, sent: { version: 1 } });
    const session = open();
    expect(session.meet(refusal)).toBe("shown");
    expect([session.text, session.snapshot().version, session.snapshot().state]).toEqual(["theirs\n", 7, "saved"]);
    session.undo();
    expect(session.text).toBe("one\n");
    expect(session.meet(new ApiError(412, { code: "changed_meanwhile", present: { yaml: "again\n", version: 8 } }))).toBe("conflict");
    expect([session.text, session.snapshot().conflict]).toEqual(["one\n", { theirs: "again\n", version: 8 }]);
    expect(session.meet(new ApiError(422, { code: "invalid_script" }))).toBeNull();
  });

  it("is saved once more when it went back to what it was during a write", async () => {
    const session = open();
    session.change("two\n");
    const saved = session.flush();
    session.change("one\n");
    await saved;
    await vi.advanceTimersByTimeAsync(50);
    expect([server.text, session.snapshot().state]).toEqual(["one\n", "saved"]);
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

describe("a form that is not valid", () => {
  beforeEach(() => {
    server.text = SCRIPT;
  });

  it("is kept by the browser, and comes back with the script (S-095)", () => {
    const session = open();
    session.hold(typedForm(1));
    expect(localStorage.length).toBe(1);
    const again = open();
    expect(again.waitingFor(`${ACTIONS}[1]`, "ai_say")).toEqual(typedForm(1));
    expect([again.text, again.snapshot().restoredFrom === null, again.snapshot().conflict]).toEqual([SCRIPT, false, null]);
    again.letGo(again.snapshot().waiting[0] ?? typedForm(1));
    expect(localStorage.length).toBe(0);
  });

  it("would be lost where the browser keeps nothing", () => {
    const session = new ScriptSession({ loaded: server.loaded, put: server.put, work: new KeptWork(null, "s", "p") });
    session.hold(typedForm(1));
    expect(session.wouldLose).toBe(true);
  });

  it("follows its part through edits of the text, undo and what another saved (S-095)", () => {
    const session = open();
    session.hold(typedForm(1));
    const above = SCRIPT.replace("              - {type: ai_say, content: a}\n", "");
    session.change("sessions: [");
    session.change(above);
    expect(session.snapshot().waiting).toEqual([typedForm(0)]);
    session.undo();
    session.undo();
    expect(session.snapshot().waiting).toEqual([typedForm(1)]);
    session.meet(new ApiError(412, { code: "changed_meanwhile", present: { yaml: above, version: 2 } }));
    expect(session.snapshot().waiting).toEqual([typedForm(0)]);
  });

  it("goes where its part is moved, also beside one that is the same", () => {
    const session = open();
    session.hold(typedForm(1));
    session.change(session.text, null, (id) => (id === `${ACTIONS}[1]` ? `${ACTIONS}[0]` : id));
    expect(session.snapshot().waiting).toEqual([typedForm(0)]);
  });

  it("has no place once its part is gone, or of another type, and is told all the same", () => {
    const session = open();
    session.hold(typedForm(0));
    session.hold(typedForm(1));
    session.change(SCRIPT.replace("{type: ai_say, content: b}", "{type: ai_ask, question: b}"), null, (id) => id);
    expect(session.snapshot().waiting.map(({ part }) => part)).toEqual([`${ACTIONS}[0]`, null]);
    session.change("sessions: []\n", null, () => null);
    expect(session.snapshot().waiting.map(({ part, values }) => [part, values["max_rounds"]])).toEqual([[null, 21], [null, 21]]);
    expect(open().snapshot().waiting).toHaveLength(2);
  });

  it("comes back with its part when a deletion is undone, and goes again with it (S-095)", () => {
    const twins = SCRIPT.replace("content: b", "content: a");
    server.text = twins;
    const session = open();
    session.hold(typedForm(1));
    const places = () => session.snapshot().waiting.map(({ part }) => part);
    const removed = removePart(twins, partAt(twins, `${ACTIONS}[1]`));
    session.change(removed.text, null, removed.follow);
    session.change(removed.text.replace("topic: t", "topic: other"));
    expect(places()).toEqual([null]);
    session.undo();
    expect(places()).toEqual([null]);
    session.undo();
    expect(session.waitingFor(`${ACTIONS}[1]`, "ai_say")).toEqual(typedForm(1));
    session.redo();
    expect(places()).toEqual([null]);
    session.undo();
    session.change(twins.replace("{type: ai_say, content: a}", "{type: ai_say, content: first}"));
    expect(session.snapshot().waiting).toEqual([typedForm(1)]);
  });

  it("comes back when its part was deleted in the text, letter by letter", () => {
    const session = open();
    session.hold(typedForm(1));
    const last = "              - {type: ai_say, content: b}\n";
    for (let left = last.length - 1; left >= 0; left -= 1) session.change(SCRIPT.replace(last, last.slice(0, left)), "text");
    expect(session.snapshot().waiting.map(({ part }) => part)).toEqual([null]);
    session.undo();
    expect([session.text, session.snapshot().waiting]).toEqual([SCRIPT, [typedForm(1)]]);
  });

  it("stays without a place where another form has taken it", () => {
    const session = open();
    session.hold(typedForm(1));
    session.change(SCRIPT.replace("{type: ai_say, content: b}", "{type: ai_ask, question: b}"));
    session.change(SCRIPT.replace("content: b", "content: c"));
    session.hold({ ...typedForm(1), title: "another" });
    session.change(SCRIPT);
    expect(session.snapshot().waiting.map(({ title, part }) => [title, part])).toEqual([["ai_say", null], ["another", `${ACTIONS}[1]`]]);
  });

  it("is kept when the rest of the script is saved", async () => {
    const session = open();
    session.hold(typedForm(1));
    session.change(SCRIPT.replace("content: a", "content: other"));
    await session.flush();
    expect(localStorage.length).toBe(1);
    server.text = SCRIPT.replace("content: a", "content: a third time");
    server.version += 1;
    const again = open();
    expect([again.text, again.snapshot().conflict, again.snapshot().waiting]).toEqual([server.text, null, [typedForm(1)]]);
    again.discardRestored();
    expect([again.text, again.snapshot().waiting, localStorage.length]).toEqual([server.text, [], 0]);
  });
});

it("what was typed goes before the script, and the script before what was not", () => {
  const waiting = typedForm(1);
  expect(withTyped({ content: "b", max_rounds: 7, has_questions: true }, { ...waiting, values: { ...waiting.values, max_rounds: 5 } })).toEqual({
    content: "half an hour of typing",
    max_rounds: 7,
    has_questions: true,
  });
});
