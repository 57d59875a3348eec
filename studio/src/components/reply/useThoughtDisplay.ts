import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";

type ThoughtDisplay = Schemas["Settings"]["thought_display"];

/** Setting "display of thoughts"; folded until it is loaded. */
export function useThoughtDisplay(): ThoughtDisplay {
  const { data } = useResource("thought_display", async (signal) => {
    const { data: settings } = await api.get("/api/v1/settings", { signal });
    return settings.thought_display;
  });
  return data ?? "collapsed";
}
