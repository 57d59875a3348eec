import { useCallback, useEffect, useEffectEvent, useState } from "react";
import { ApiError, isAbort } from "./errors.ts";
import { useSession } from "./session.ts";

export type Resource<T> = {
  /** Data last loaded for this name; kept during a reload. */
  readonly data: T | null;
  readonly error: ApiError | null;
  readonly loading: boolean;
  readonly reload: () => void;
  /** Replaces the data by the response of a write. */
  readonly replace: (data: T) => void;
};

type Loaded<T> = { name: string; token: string; data: T | null; error: ApiError | null };

const asError = (error: unknown): ApiError =>
  error instanceof ApiError
    ? error
    : new ApiError(0, { code: "client_error", detail: error instanceof Error ? error.message : String(error) });

/**
 * Loads a resource, and again when its name changes, on `reload` and after signing in. Another name drops the loaded
 * data; `null` loads nothing.
 */
export function useResource<T>(name: string | null, load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const { key } = useSession();
  const [count, setCount] = useState(0);
  const [loaded, setLoaded] = useState<Loaded<T> | null>(null);
  const token = `${count} ${key ?? ""} ${name ?? ""}`;
  const run = useEffectEvent((signal: AbortSignal) => load(signal));

  useEffect(() => {
    if (name === null) return undefined;
    const stop = new AbortController();
    run(stop.signal).then(
      (data) => {
        if (!stop.signal.aborted) setLoaded({ name, token, data, error: null });
      },
      (error: unknown) => {
        if (stop.signal.aborted || isAbort(error)) return;
        setLoaded((before) => ({
          name,
          token,
          data: before?.name === name ? before.data : null,
          error: asError(error),
        }));
      },
    );
    return () => stop.abort();
  }, [name, token]);

  const current = loaded?.name === name ? loaded : null;
  const loading = name !== null && current?.token !== token;
  const reload = useCallback(() => setCount((before) => before + 1), []);
  const replace = useCallback(
    (data: T) => setLoaded((before) => (before === null ? before : { ...before, data, error: null })),
    [],
  );
  return { data: current?.data ?? null, error: loading ? null : (current?.error ?? null), loading, reload, replace };
}
