import { api } from "../../api/client.ts";
import { useResource } from "../../api/useResource.ts";
import { type Schemas } from "../../api/types.ts";

export type Script = Schemas["Script"];

/** The scripts that there are, by id. */
export function useScripts() {
  return useResource("scripts of runs", async (signal) => {
    const { data } = await api.get("/api/v1/scripts", { signal, query: { limit: 200 } });
    return data.data;
  });
}

/** Name of a script, or its id where it is gone. */
export const nameOf = (scripts: readonly Script[] | null, id: string): string =>
  scripts?.find(({ script_id: known }) => known === id)?.name ?? id;
