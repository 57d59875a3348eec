import { useEffect, useEffectEvent, useState, useSyncExternalStore } from "react";
import { currentConnection, onConnection } from "../api/connection.ts";
import { SaveQueue, type SaveStatus } from "./save/SaveQueue.ts";

export type DebouncedSave<T> = SaveStatus & {
  /** Takes a change; it is saved when no other follows for a while. */
  readonly change: (value: T) => void;
  /** Saves at once what waits; true when nothing is left unsaved. */
  readonly flush: () => Promise<boolean>;
  /** Forgets what was not written. */
  readonly discard: () => void;
};

/**
 * Saves changes by themselves. What could not be written for want of a connection is written when it is there again;
 * leaving the page with unsaved changes is asked about, and what waits is saved when the component goes away.
 */
export function useDebouncedSave<T>(save: (value: T) => Promise<void>, delayMs = 800): DebouncedSave<T> {
  const saveNow = useEffectEvent((value: T) => save(value));
  const [queue] = useState(() => new SaveQueue<T>(save, { delayMs }));
  const status = useSyncExternalStore(queue.subscribe, queue.status);

  useEffect(() => {
    // The function of the last render is called.
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
