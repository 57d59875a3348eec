import { useSyncExternalStore } from "react";

export type Connection = {
  /** `offline`: the device has no network; `unready`: the server answers that it accepts no requests. */
  readonly state: "connected" | "unreachable" | "unready" | "offline";
  /** Time of the next try, from `Date.now()`. */
  readonly retryAt: number | null;
};

const CALM_MS = 20_000;
const BACKOFF_MS = [1000, 2000, 4000, 8000, 15_000, 30_000];
const TIMEOUT_MS = 10_000;

let connection: Connection = { state: "connected", retryAt: null };
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let running = false;
let asking = false;
const listeners = new Set<() => void>();

function become(next: Connection): void {
  if (next.state === connection.state && next.retryAt === connection.retryAt) return;
  connection = next;
  listeners.forEach((listener) => listener());
}

async function ask(): Promise<Connection["state"]> {
  if (!navigator.onLine && !["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)) return "offline";
  try {
    const answer = await fetch("/readyz", { signal: AbortSignal.timeout(TIMEOUT_MS), cache: "no-store" });
    if (answer.ok) return "connected";
    // A proxy answers like this for a server that is down.
    return answer.status === 502 || answer.status === 504 ? "unreachable" : "unready";
  } catch {
    return "unreachable";
  }
}

/** Checks now, and again later: sooner after a failure. */
export async function checkConnection(): Promise<void> {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  const state = await ask();
  asking = false;
  failures = state === "connected" ? 0 : failures + 1;
  const wait = failures === 0 ? CALM_MS : (BACKOFF_MS[Math.min(failures, BACKOFF_MS.length) - 1] ?? CALM_MS);
  become({ state, retryAt: failures === 0 ? null : Date.now() + wait });
  if (running) timer = setTimeout(() => void checkIfSeen(), wait);
}

/** A hidden page does not check; it does once it is visible again. */
async function checkIfSeen(): Promise<void> {
  if (document.visibilityState === "visible") await checkConnection();
}

const checkSoon = () => void checkIfSeen();

/** Starts watching the connection; the returned function stops it. */
export function watchConnection(): () => void {
  running = true;
  void checkConnection();
  window.addEventListener("online", checkSoon);
  window.addEventListener("offline", checkSoon);
  document.addEventListener("visibilitychange", checkSoon);
  return () => {
    running = false;
    clearTimeout(timer);
    window.removeEventListener("online", checkSoon);
    window.removeEventListener("offline", checkSoon);
    document.removeEventListener("visibilitychange", checkSoon);
  };
}

export const currentConnection = (): Connection => connection;

/** Calls the listener on each change of the connection. */
export function onConnection(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useConnection(): Connection {
  return useSyncExternalStore(onConnection, currentConnection);
}
