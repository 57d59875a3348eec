import { useCallback } from "react";
import { api } from "../../api/client.ts";
import { useResource } from "../../api/useResource.ts";
import { wholeList } from "../../api/wholeList.ts";
import { type Coverage, type Dialogue, type RecordedTurn, type Round } from "./model.ts";

export type Whole = {
  readonly dialogue: Dialogue;
  readonly turns: readonly RecordedTurn[];
  readonly rounds: readonly Round[];
  readonly coverage: Coverage;
};

const PAGE = 200;

async function load(id: string, signal: AbortSignal): Promise<Whole> {
  const path = { id };
  const [dialogue, coverage, turns, rounds] = await Promise.all([
    api.get("/api/v1/dialogues/{id}", { path, signal }),
    api.get("/api/v1/dialogues/{id}/coverage", { path, signal }),
    wholeList(
      async (after) => (await api.get("/api/v1/dialogues/{id}/turns", { path, signal, query: { limit: PAGE, after } })).data,
      ({ turn }) => turn,
    ),
    wholeList(
      async (after) => {
        const { data } = await api.get("/api/v1/dialogues/{id}/trace", { path, signal, query: { limit: PAGE, after } });
        return { data: data.data as unknown as Round[], has_more: data.has_more };
      },
      ({ number }) => String(number),
    ),
  ]);
  return { dialogue: dialogue.data, coverage: coverage.data, turns, rounds };
}

/** Loads a dialogue with its turns, model calls and coverage. */
export function useDialogue(id: string) {
  const loader = useCallback((signal: AbortSignal) => load(id, signal), [id]);
  return useResource(`dialogue ${id}`, loader);
}
