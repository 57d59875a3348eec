import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";

type ThoughtDisplay = Schemas["Settings"]["thought_display"];

/** The setting "display of thoughts"; folded as long as it is not known. */
export function useThoughtDisplay(): ThoughtDisplay {
  const { data } = useResource("thought_display", async (signal) => {
    const { data: settings } = await api.get("/api/v1/settings", { signal });
    return settings.thought_display;
  });
  return data ?? "collapsed";
}
