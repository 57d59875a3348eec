import { useEffect, useState, useSyncExternalStore } from "react";
import { currentConnection, onConnection } from "../../../api/connection.ts";
import { ApiError, isAbort } from "../../../api/errors.ts";
import { currentLanguage } from "../../../app/preferences.ts";
import { useLanguage } from "../../../i18n/useText.ts";
import { type OpenedScript, putDraft, type ScriptFinding, validated } from "../requests.ts";
import { holdPlace } from "../store/kept.ts";
import { ScriptSession, type ScriptSnapshot } from "../store/ScriptSession.ts";

/** Session of an opened script, for the lifetime of its page. */
export function useSession({ script, work, left, gone }: OpenedScript): [ScriptSession, ScriptSnapshot] {
  const [session] = useState(
    () => new ScriptSession({ loaded: script, work, left, gone, put: (...draft) => putDraft(script.id, currentLanguage(), ...draft) }),
  );
  const snapshot = useSyncExternalStore(session.subscribe, session.snapshot);

  useEffect(() => {
    const release = holdPlace(work.place);
    const warn = (event: BeforeUnloadEvent) => {
      if (session.wouldLose) event.preventDefault();
    };
    window.addEventListener("beforeunload", warn);
    const stop = onConnection(() => {
      if (currentConnection().state === "connected" && session.snapshot().state === "offline") void session.flush();
    });
    return () => {
      window.removeEventListener("beforeunload", warn);
      stop();
      release();
      void session.flush();
    };
  }, [session, work]);

  return [session, snapshot];
}

const CALM_MS = 400;

/** Findings of the server for a text unchanged for a moment; without a connection, the previous ones. */
export function useFindings(text: string): readonly ScriptFinding[] {
  const language = useLanguage();
  const [findings, setFindings] = useState<readonly ScriptFinding[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      validated(text, language, stop.signal).then(
        (found) => setFindings(found),
        (error: unknown) => {
          if (!(error instanceof ApiError) && !isAbort(error)) throw error;
        },
      );
    }, CALM_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, language]);
  return findings;
}
