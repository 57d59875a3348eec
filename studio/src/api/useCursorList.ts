import { useCallback, useEffect, useEffectEvent, useState } from "react";
import { ApiError, isAbort } from "./errors.ts";
import { useSession } from "./session.ts";

/** Page of a listing, as returned by the server. */
export type ListPage<T> = {
  readonly data: readonly T[];
  readonly has_more: boolean;
  /** Cursor of the next page, if it is not that of the last row. */
  readonly next?: string | null;
};

export type CursorList<T> = {
  /** Loaded rows, in the order of the listing. */
  readonly rows: readonly T[];
  readonly hasMore: boolean;
  /** True while the first page loads. */
  readonly loading: boolean;
  readonly loadingMore: boolean;
  readonly error: ApiError | null;
  /** Loads the next page, if any. */
  readonly more: () => void;
  readonly reload: () => void;
  /** Changes the displayed rows after a write. */
  readonly change: (edit: (rows: readonly T[]) => readonly T[]) => void;
};

type State<T> = {
  name: string | null;
  token: string;
  rows: readonly T[];
  hasMore: boolean;
  cursor: string | null;
  error: ApiError | null;
};

type ListOptions<T> = {
  load: (after: string | undefined, signal: AbortSignal) => Promise<ListPage<T>>;
  /** Cursor of a row, for `after`. */
  cursorOf: (row: T) => string;
  /** Number of rows loaded automatically, page after page. */
  atLeast?: number;
};

const asError = (error: unknown): ApiError =>
  error instanceof ApiError
    ? error
    : new ApiError(0, { code: "client_error", detail: error instanceof Error ? error.message : String(error) });

/** Loads a listing page by page. Another name starts another listing; rows stay visible during a reload. */
export function useCursorList<T>(name: string | null, options: ListOptions<T>): CursorList<T> {
  const { atLeast = 0 } = options;
  const { key } = useSession();
  const [count, setCount] = useState(0);
  const [wanted, setWanted] = useState<string | null>(null);
  const [state, setState] = useState<State<T>>(() => ({
    name: null,
    token: "",
    rows: [],
    hasMore: false,
    cursor: null,
    error: null,
  }));
  const token = `${count} ${key ?? ""} ${name ?? ""}`;
  const load = useEffectEvent(options.load);
  const cursorOf = useEffectEvent(({ data, next }: ListPage<T>) => {
    const last = data.at(-1);
    return next ?? (last === undefined ? null : options.cursorOf(last));
  });

  useEffect(() => {
    if (name === null) return undefined;
    const stop = new AbortController();
    load(undefined, stop.signal).then(
      (page) => {
        if (stop.signal.aborted) return;
        setState({ name, token, rows: page.data, hasMore: page.has_more, cursor: cursorOf(page), error: null });
      },
      (error: unknown) => {
        if (stop.signal.aborted || isAbort(error)) return;
        setState((before) => ({
          name,
          token,
          rows: before.name === name ? before.rows : [],
          hasMore: false,
          cursor: null,
          error: asError(error),
        }));
      },
    );
    return () => stop.abort();
  }, [name, token]);

  const current = state.token === token;
  const next = current && state.hasMore && state.error === null ? state.cursor : null;
  const asked = next !== null && (state.rows.length < atLeast || wanted === `${token} ${next}`) ? next : null;

  useEffect(() => {
    if (asked === null) return undefined;
    const stop = new AbortController();
    load(asked, stop.signal).then(
      (page) => {
        if (stop.signal.aborted) return;
        const cursor = cursorOf(page);
        setState((before) =>
          before.token === token
            ? {
                ...before,
                rows: [...before.rows, ...page.data],
                // A page without a valid cursor is the last one.
                hasMore: page.has_more && cursor !== null,
                cursor,
              }
            : before,
        );
      },
      (error: unknown) => {
        if (stop.signal.aborted || isAbort(error)) return;
        setState((before) => (before.token === token ? { ...before, error: asError(error) } : before));
      },
    );
    return () => stop.abort();
  }, [asked, token]);

  const shown = state.name === name;
  const reload = useCallback(() => setCount((before) => before + 1), []);
  const more = useCallback(() => {
    if (next !== null) setWanted(`${token} ${next}`);
  }, [next, token]);
  const change = useCallback(
    (edit: (rows: readonly T[]) => readonly T[]) => setState((before) => ({ ...before, rows: edit(before.rows) })),
    [],
  );
  return {
    rows: shown ? state.rows : [],
    hasMore: shown && state.hasMore,
    loading: name !== null && !current,
    loadingMore: asked !== null,
    error: current ? state.error : null,
    more,
    reload,
    change,
  };
}
