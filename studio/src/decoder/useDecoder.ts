import { api } from "../api/client.ts";
import { useResource } from "../api/useResource.ts";
import { Decoder, loadCore, optionsOf } from "./decoder.ts";

/** Reader in the browser; `undefined` while it loads, `null` if only the server can read. */
export function useDecoder(): Decoder | null | undefined {
  const { data, error } = useResource("decoder", async (signal) => {
    const core = await loadCore();
    if (core === null) return { decoder: null };
    const { data: settings } = await api.get("/api/v1/settings", { signal });
    const options = optionsOf(settings);
    return { decoder: options === null ? null : new Decoder(core, options) };
  });
  return error === null ? data?.decoder : null;
}
