import { checkConnection } from "./connection.ts";
import { errorOf, isAbort, unreachable } from "./errors.ts";
import type { paths } from "./schema.d.ts";
import { currentSession, keyHeader, requireKey } from "./session.ts";

type Method = "get" | "post" | "put" | "patch" | "delete";

/** Paths that support a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths] &
  string;

type Operation<P extends keyof paths, M extends Method> = M extends keyof paths[P] ? paths[P][M] : never;

type JsonOf<T> = T extends { content: { "application/json": infer Body } } ? Body : never;

/** Body of each successful response. */
export type Answered<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: infer R }
    ? { [S in keyof R & (200 | 201 | 202)]: JsonOf<R[S]> }[keyof R & (200 | 201 | 202)]
    : never;

type Sent<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { requestBody?: { content: { "application/json": infer Body } } } ? Body : undefined;

type Place<P extends string> = P extends `${string}{${infer Name}}${infer Rest}` ? Name | Place<Rest> : never;

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export type Options<P extends string> = {
  query?: Query;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
} & ([Place<P>] extends [never] ? { path?: undefined } : { path: Readonly<Record<Place<P>, string | number>> });

type Given<P extends string> = [Place<P>] extends [never] ? [options?: Options<P>] : [options: Options<P>];

/** Response body with its relevant headers. */
export type Answer<T> = { readonly data: T; readonly etag: string | null; readonly headers: Headers };

/** URL of a path with its parameters filled in. */
export function addressOf(
  path: string,
  places: Readonly<Record<string, string | number>> = {},
  query: Query = {},
): string {
  const filled = path.replace(/\{\*?(\w+)\}/g, (whole, name: string) => {
    const value = places[name];
    return value === undefined ? whole : encodeURIComponent(String(value));
  });
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) fields.set(name, String(value));
  }
  const text = fields.toString();
  return text === "" ? filled : `${filled}?${text}`;
}

/** Sends a request with the key of the session. A response without success is thrown as `ApiError`. */
export async function send(address: string, init: RequestInit = {}): Promise<Response> {
  const { key } = currentSession();
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(keyHeader())) if (!headers.has(name)) headers.set(name, value);
  let response: Response;
  try {
    response = await fetch(address, { ...init, headers, credentials: "same-origin", redirect: "error" });
  } catch (error) {
    if (isAbort(error)) throw error;
    void checkConnection();
    throw unreachable(error);
  }
  if (response.ok) return response;
  if (response.status === 401) requireKey(key);
  throw await errorOf(response);
}

type Request = {
  path?: Readonly<Record<string, string | number>> | undefined;
  query?: Query;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
};

async function call<T>(method: Method, path: string, options: Request = {}, body?: unknown): Promise<Answer<T>> {
  const { path: places, query, headers, signal } = options;
  const content: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const response = await send(addressOf(path, places, query), {
    method: method.toUpperCase(),
    headers: { accept: "application/json", ...content, ...headers },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  });
  const text = await response.text();
  const data = (text === "" ? undefined : JSON.parse(text)) as T;
  return { data, etag: response.headers.get("etag"), headers: response.headers };
}

/** Client of the server's API. Responses are typed by path; path parameters are given as `path: { id }`. */
export const api = {
  get: <P extends PathOf<"get">>(path: P, ...[options]: Given<P>) => call<Answered<P, "get">>("get", path, options),
  post: <P extends PathOf<"post">>(path: P, body: Sent<P, "post">, ...[options]: Given<P>) =>
    call<Answered<P, "post">>("post", path, options, body),
  put: <P extends PathOf<"put">>(path: P, body: Sent<P, "put">, ...[options]: Given<P>) =>
    call<Answered<P, "put">>("put", path, options, body),
  patch: <P extends PathOf<"patch">>(path: P, body: Sent<P, "patch">, ...[options]: Given<P>) =>
    call<Answered<P, "patch">>("patch", path, options, body),
  remove: <P extends PathOf<"delete">>(path: P, ...[options]: Given<P>) => call<undefined>("delete", path, options),
};

/** Headers of a write based on a version. */
export function basedOn(etag: string | null | undefined): { headers?: Readonly<Record<string, string>> } {
  return etag === null || etag === undefined ? {} : { headers: { "if-match": etag } };
}
