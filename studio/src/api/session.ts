import { useSyncExternalStore } from "react";

/** Who is signed in. The key is in memory only: nothing that a script of a page could read later keeps it. */
export type Session = {
  readonly key: string | null;
  /** Whether the server asked for a key. */
  readonly needed: boolean;
};

let session: Session = { key: null, needed: false };
const listeners = new Set<() => void>();

function change(next: Session): void {
  session = next;
  listeners.forEach((listener) => listener());
}

export const currentSession = (): Session => session;

export function signIn(key: string): void {
  change({ key, needed: false });
}

export function signOut(): void {
  change({ key: null, needed: true });
}

/** Notes that a request with this key, or with none, was refused; one with an older key says nothing of the present one. */
export function requireKey(refused: string | null): void {
  if (refused === session.key && !session.needed) change({ key: null, needed: true });
}

/** Header that carries the key. */
export function keyHeader(): Record<string, string> {
  return session.key === null ? {} : { authorization: `Bearer ${session.key}` };
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useSession(): Session {
  return useSyncExternalStore(subscribe, currentSession);
}
