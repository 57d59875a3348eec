import { api } from "./client.ts";
import { useResource } from "./useResource.ts";
import { wholeList } from "./wholeList.ts";

/** Tools of the registry. */
export function useTools() {
  return useResource("tools", (signal) =>
    wholeList(
      async (after) => (await api.get("/api/v1/tools", { query: { limit: 200, after }, signal })).data,
      ({ name }) => name,
    ),
  );
}
