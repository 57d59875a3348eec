import { useEffect, useRef, useState } from "react";
import { api } from "../../api/client.ts";
import { type ApiError } from "../../api/errors.ts";
import { type Input, sendInput } from "./sendInput.ts";

/** Running turn: its input, and the message so far. */
export type Pending = {
  readonly input: Input;
  readonly text: string;
  readonly dropped: boolean;
  /** Number of turns before it. */
  readonly after: number;
};

/** Sends inputs of a dialogue with `turns` turns, one at a time; calls `onOver` at the end of each turn. */
export function useTurn(dialogue: string, turns: number, onOver: () => void) {
  const [pending, setPending] = useState<Pending | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const sent = useRef<{ close: () => void } | null>(null);

  useEffect(() => () => sent.current?.close(), [dialogue]);

  function say(input: Input): void {
    setError(null);
    setPending({ input, text: "", dropped: false, after: turns });
    const change = (next: (before: Pending) => Pending) => setPending((before) => (before === null ? null : next(before)));
    sent.current = sendInput(dialogue, input, {
      onText: (text) => change((before) => ({ ...before, text: before.text + text })),
      onDropped: (dropped) => change((before) => ({ ...before, dropped })),
      onEnd: (failure, failed) => {
        setError(failure);
        // A failed input may have no turn at all.
        if (failed) setPending(null);
        onOver();
      },
    });
  }

  return {
    pending,
    error,
    say,
    cancel: () => void api.post("/api/v1/dialogues/{id}/cancel", undefined, { path: { id: dialogue } }).catch(() => undefined),
  };
}
