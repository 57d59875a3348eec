import { afterEach, describe, expect, it, vi } from "vitest";
import { isOvertaken, loadTemplate, publishTemplate, removeTemplate, saveTemplate } from "./saveTemplate.ts";

type RecordedRequest = { method: string; url: string; headers: Headers; body: unknown };

/** Answers requests in turn, and records them. */
function stubAnswers(...answers: readonly [status: number, body: unknown, headers?: Record<string, string>][]): RecordedRequest[] {
  const requests: RecordedRequest[] = [];
  const remaining = [...answers];
  vi.stubGlobal(
    "fetch",
    vi.fn((url: string, init: RequestInit) => {
      const body = typeof init.body === "string" ? (JSON.parse(init.body) as unknown) : null;
      requests.push({ method: init.method ?? "GET", url, headers: new Headers(init.headers), body });
      const [status, answer, headers] = remaining.shift() ?? [500, {}];
      return Promise.resolve(new Response(JSON.stringify(answer), { status, ...(headers === undefined ? {} : { headers }) }));
    }),
  );
  return requests;
}

afterEach(() => vi.unstubAllGlobals());

describe("a template", () => {
  it("is read in its last version, published or not", async () => {
    const requests = stubAnswers(
      [200, { data: [{ template_id: "x", latest: 3 }], has_more: false }],
      [200, { text: "a", source: "stored", version: 3, published: 2, latest: 3 }, { etag: '"v3"' }],
    );
    expect(await loadTemplate("x", null)).toEqual({
      id: "x",
      text: "a",
      source: "stored",
      version: 3,
      published: 2,
      latest: 3,
      etag: '"v3"',
    });
    expect(requests.map(({ url }) => url)).toEqual(["/api/v1/templates?limit=200", "/api/v1/templates/x?version=3"]);
  });

  it("is the shipped one where nothing is stored", async () => {
    stubAnswers([200, { data: [{ template_id: "x", source: "builtin" }], has_more: false }], [200, { text: "b", source: "builtin" }]);
    expect(await loadTemplate("x", null)).toMatchObject({ source: "builtin", version: null, etag: null });
  });

  it("is saved with what it was based on", async () => {
    const requests = stubAnswers([200, { template_id: "x", version: 4 }, { etag: '"v4"' }]);
    const outcome = await saveTemplate({ id: "x", etag: '"v3"' }, "c", { draft: true });
    expect(outcome).toEqual({ kind: "saved", version: 4, etag: '"v4"', warnings: [] });
    expect(requests[0]?.url).toBe("/api/v1/templates/x?draft=true");
    expect(requests[0]?.headers.get("if-match")).toBe('"v3"');
    expect(requests[0]?.body).toEqual({ text: "c" });
  });

  it("is saved without, where the server names no version", async () => {
    const requests = stubAnswers([200, { template_id: "x", version: 1 }]);
    await saveTemplate({ id: "x", etag: null }, "c", { draft: false });
    expect(requests[0]?.headers.has("if-match")).toBe(false);
  });

  it("is not overwritten when somebody else has changed it", async () => {
    stubAnswers(
      [412, { code: "changed_meanwhile", detail: "another version came between" }],
      [200, { data: [{ template_id: "x", latest: 5 }], has_more: false }],
      [200, { text: "theirs", source: "stored", version: 5, published: 5, latest: 5 }, { etag: '"v5"' }],
    );
    const outcome = await saveTemplate({ id: "x", etag: '"v3"' }, "mine", { draft: false });
    expect(outcome).toMatchObject({ kind: "conflict", theirs: { text: "theirs", version: 5, etag: '"v5"' } });
  });

  it("is a conflict with nothing when somebody else has removed it", async () => {
    stubAnswers(
      [412, { code: "changed_meanwhile", present: null }],
      [200, { data: [], has_more: false }],
      [404, { code: "template_not_found" }],
    );
    const outcome = await saveTemplate({ id: "x", etag: '"3"' }, "mine", { draft: true });
    expect(outcome).toMatchObject({ kind: "conflict", theirs: { text: "", version: null, etag: '"0"' } });
  });

  it("is published and removed on what was read, and not otherwise", async () => {
    const requests = stubAnswers([200, { template_id: "x", version: 2 }], [200, {}], [412, { code: "changed_meanwhile" }]);
    await publishTemplate({ id: "x", etag: '"3"' }, 2);
    await removeTemplate({ id: "x", etag: '"3"' });
    expect(requests.map(({ method, headers }) => [method, headers.get("if-match")])).toEqual([["POST", '"3"'], ["DELETE", '"3"']]);
    const error: unknown = await removeTemplate({ id: "x", etag: '"3"' }).catch((reason: unknown) => reason);
    expect(isOvertaken(error)).toBe(true);
  });

  it("passes on other refusals", async () => {
    stubAnswers([422, { code: "invalid_field", detail: "too long" }]);
    await expect(saveTemplate({ id: "x", etag: null }, "c", { draft: false })).rejects.toThrow("too long");
  });
});
