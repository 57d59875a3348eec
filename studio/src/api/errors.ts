import type { components } from "./schema.d.ts";

export type Problem = components["schemas"]["Problem"];

/** Code of a request without any response. */
export const UNREACHABLE = "unreachable";

/** Request that was refused or got no response. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  /** Stable code of the problem; `unreachable` without a response. */
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  /** Id of the request in the server's log. */
  readonly requestId: string | null;
  /** All fields of the problem document: `field`, `errors`, `remedy` and others, depending on the code. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(status: number, problem: Readonly<Record<string, unknown>>, requestId: string | null = null) {
    const text = (name: string, fallback: string) => {
      const value = problem[name];
      return typeof value === "string" ? value : fallback;
    };
    const detail = text("detail", text("title", `HTTP ${status}`));
    super(detail);
    this.status = status;
    this.code = text("code", status === 0 ? UNREACHABLE : `http_${status}`);
    this.title = text("title", this.code);
    this.detail = detail;
    this.requestId = requestId;
    this.problem = problem;
  }

  /** Remedy suggested by the server. */
  get remedy(): string | null {
    const remedy = this.problem["remedy"];
    return typeof remedy === "string" ? remedy : null;
  }

  /** Field with the problem. */
  get field(): string | null {
    const field = this.problem["field"];
    return typeof field === "string" ? field : null;
  }

  get isUnreachable(): boolean {
    return this.code === UNREACHABLE;
  }

  /** True if the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Error of a response without success. */
export async function errorOf(response: Response): Promise<ApiError> {
  const requestId = response.headers.get("x-request-id");
  const text = await response.text().catch(() => "");
  let problem: Record<string, unknown> = {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) problem = value as Record<string, unknown>;
  } catch {
    if (text.trim() !== "") problem = { detail: text.trim().slice(0, 500) };
  }
  // Response of a proxy in front of a server that is down.
  const proxied = problem["code"] === undefined && [502, 503, 504].includes(response.status);
  return new ApiError(proxied ? 0 : response.status, problem, requestId);
}

export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";

/** Error of `fetch` itself: no response. */
export function unreachable(error: unknown): ApiError {
  return new ApiError(0, { code: UNREACHABLE, detail: error instanceof Error ? error.message : String(error) });
}
