import { useEffect, useRef, useState } from "react";
import { api } from "../../api/client.ts";
import { type ApiError } from "../../api/errors.ts";
import { type Input, sendInput } from "./sendInput.ts";

/** A turn that runs: what was said, and the message so far. */
export type Pending = {
  readonly input: Input;
  readonly text: string;
  readonly dropped: boolean;
  /** Turns before it. */
  readonly after: number;
};

/** Sends inputs of a dialogue that has so many turns, one after the other; `onOver` is told when a turn has ended. */
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
        // It may be no turn at all.
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
