import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";
import { wholeList } from "../../api/wholeList.ts";

export type Script = Schemas["Script"];

/** Loads all scripts. */
export function useScripts() {
  return useResource("scripts of runs", (signal) =>
    wholeList(
      async (after) => (await api.get("/api/v1/scripts", { signal, query: { limit: 200, after } })).data,
      ({ script_id: id }) => id,
    ),
  );
}

/** Name of a script; its id if it was removed. */
export const nameOf = (scripts: readonly Script[] | null, id: string): string =>
  scripts?.find(({ script_id: known }) => known === id)?.name ?? id;

export type VersionToRun = { readonly version: number; readonly state: "draft" | "published" | "other" };

/** Versions that a run may begin with, newest first: the last, the published and the requested one. */
export function versionsToRun(script: Script | undefined, asked: number | null): VersionToRun[] {
  const { latest, published = null } = script ?? {};
  const numbers = new Set([latest ?? null, published, asked].filter((one) => one !== null));
  return [...numbers]
    .sort((a, b) => b - a)
    .map((version) => ({
      version,
      state: version === published ? "published" : version > (published ?? 0) ? "draft" : "other",
    }));
}
