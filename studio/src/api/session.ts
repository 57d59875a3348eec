import { useSyncExternalStore } from "react";

/** Current session. The key is kept in memory only, so that no later script can read it. */
export type Session = {
  readonly key: string | null;
  /** True once the server asked for a key. */
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

/** Records that a request with this key, or without one, was refused; a refusal of an older key is ignored. */
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
