// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { addressOf, api } from "./client.ts";
import { ApiError } from "./errors.ts";
import { currentSession, signIn, signOut } from "./session.ts";

const asked = vi.fn<(address: string, init: RequestInit) => Promise<Response>>();

beforeEach(() => {
  asked.mockReset();
  vi.stubGlobal("fetch", asked);
});
afterEach(() => vi.unstubAllGlobals());

it("fills the places of a path and escapes them", () => {
  expect(addressOf("/api/v1/scripts/{id}/diff", { id: "a/b ?" }, { from: 1, to: 2, none: undefined })).toBe(
    "/api/v1/scripts/a%2Fb%20%3F/diff?from=1&to=2",
  );
});

it("throws the problem of the server, typed", async () => {
  const problem = { code: "changed_meanwhile", title: "Precondition Failed", detail: "version 2", version: 2, remedy: "read it" };
  asked.mockResolvedValueOnce(
    new Response(JSON.stringify(problem), { status: 412, headers: { "x-request-id": "req_1" } }),
  );
  const error = await api.get("/api/v1/settings").catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 412, code: "changed_meanwhile", detail: "version 2", remedy: "read it", requestId: "req_1" });
});

it("tells a server that is not there from one that refuses", async () => {
  asked.mockRejectedValue(new TypeError("failed to fetch"));
  const error = await api.get("/api/v1/settings").catch((caught: unknown) => caught);
  expect(error).toMatchObject({ status: 0, code: "unreachable", isTemporary: true });
});

it("sends the key, and asks for one when it is refused", async () => {
  signIn("secret");
  asked.mockResolvedValueOnce(new Response("{}"));
  await api.get("/api/v1/settings");
  expect(new Headers(asked.mock.calls[0]?.[1].headers).get("authorization")).toBe("Bearer secret");
  asked.mockResolvedValueOnce(new Response(JSON.stringify({ code: "unauthorized" }), { status: 401 }));
  await api.get("/api/v1/settings").catch(() => undefined);
  expect(currentSession()).toEqual({ key: null, needed: true });
  signOut();
});
