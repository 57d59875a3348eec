import { useEffect, useEffectEvent, useRef, useState } from "react";
import { api } from "../../api/client.ts";
import { ApiError, isAbort } from "../../api/errors.ts";

export type Play = { readonly answers?: readonly string[]; readonly role?: string; readonly maxTurns: number };

export type PlayState =
  | { readonly state: "idle" }
  | { readonly state: "playing" }
  | { readonly state: "over"; readonly stopped: string; readonly error: ApiError | null };

const EVERY_MS = 700;

/** Plays a dialogue automatically, and reloads it repeatedly meanwhile. */
export function usePlay(dialogue: string, play: Play | null, reload: () => void) {
  const [state, setState] = useState<PlayState>({ state: play === null ? "idle" : "playing" });
  const stop = useRef<AbortController | null>(null);
  const refresh = useEffectEvent(reload);
  const over = useEffectEvent((stopped: string, error: ApiError | null) => {
    setState({ state: "over", stopped, error });
    reload();
  });

  useEffect(() => {
    if (play === null) return undefined;
    const own = new AbortController();
    stop.current = own;
    const timer = setInterval(() => refresh(), EVERY_MS);
    // Sends a moment later, so that an effect undone at once sends nothing.
    const begin = setTimeout(() => {
      const body = { answers: [...(play.answers ?? [])], role: play.role ?? null, max_turns: play.maxTurns };
      api
        .post("/api/v1/dialogues/{id}/play", body, { path: { id: dialogue }, signal: own.signal })
        .then(({ data }) => over(data.stopped, null))
        .catch((error: unknown) => {
          if (!isAbort(error)) over("failed", error instanceof ApiError ? error : null);
        })
        .finally(() => clearInterval(timer));
    }, 0);
    return () => {
      clearTimeout(begin);
      clearInterval(timer);
      own.abort();
    };
  }, [dialogue, play]);

  return {
    state,
    cancel: () => {
      stop.current?.abort();
      void api.post("/api/v1/dialogues/{id}/cancel", undefined, { path: { id: dialogue } }).catch(() => undefined);
      setState({ state: "idle" });
      reload();
    },
  };
}
