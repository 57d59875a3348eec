import { useEffect, useEffectEvent, useState, useSyncExternalStore } from "react";
import { currentConnection, onConnection } from "../api/connection.ts";
import { SaveQueue, type SaveStatus } from "./save/SaveQueue.ts";

export type DebouncedSave<T> = SaveStatus & {
  /** Accepts a change; it is saved when no other follows for a while. */
  readonly change: (value: T) => void;
  /** Saves pending changes at once; true when nothing is left unsaved. */
  readonly flush: () => Promise<boolean>;
  /** Discards unsaved changes. */
  readonly discard: () => void;
};

/**
 * Saves changes automatically. Changes that failed for lack of a connection are saved when it is back; leaving the
 * page with unsaved changes asks for confirmation, and pending changes are saved when the component unmounts.
 */
export function useDebouncedSave<T>(save: (value: T) => Promise<void>, delayMs = 800): DebouncedSave<T> {
  const saveNow = useEffectEvent((value: T) => save(value));
  const [queue] = useState(() => new SaveQueue<T>(save, { delayMs }));
  const status = useSyncExternalStore(queue.subscribe, queue.status);

  useEffect(() => {
    // Always calls the function of the last render.
    queue.writeWith((value) => saveNow(value));
    const warn = (event: BeforeUnloadEvent) => {
      if (queue.isDirty) event.preventDefault();
    };
    window.addEventListener("beforeunload", warn);
    const stop = onConnection(() => {
      if (currentConnection().state === "connected" && queue.status().state === "offline") void queue.flush();
    });
    return () => {
      window.removeEventListener("beforeunload", warn);
      stop();
      void queue.flush();
    };
  }, [queue]);

  return {
    ...status,
    change: (value) => queue.change(value),
    flush: () => queue.flush(),
    discard: () => queue.discard(),
  };
}
