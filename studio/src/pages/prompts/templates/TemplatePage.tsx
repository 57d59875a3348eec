import { useParams, useSearchParams } from "react-router";
import { useResource } from "../../../api/useResource.ts";
import { Page } from "../../../components/Page.tsx";
import { findTemplate, type LoadedTemplate, loadTemplate } from "./saveTemplate.ts";
import { Workspace } from "./Workspace.tsx";

export function Component() {
  const { id = "" } = useParams();
  const [params] = useSearchParams();
  const asked = Number(params.get("version"));
  const version = Number.isInteger(asked) && asked > 0 ? asked : null;
  const fresh = params.get("new");
  const loaded = useResource(`template ${id} ${version ?? ""} ${fresh ?? ""}`, async (signal) =>
    fresh === null ? loadTemplate(id, version, signal) : begin(id, fresh, signal),
  );
  if (loaded.data === null) {
    return <Page title={id} loading={loaded.loading} error={loaded.error} onRetry={loaded.reload} />;
  }
  return <Workspace key={`${id} ${version ?? ""} ${fresh ?? ""}`} loaded={loaded.data} />;
}

/** New template; `1` starts empty, any other name with the text of that template. */
async function begin(id: string, copyOf: string, signal: AbortSignal): Promise<LoadedTemplate> {
  const empty: LoadedTemplate = {
    id,
    text: "",
    source: "stored",
    version: null,
    published: null,
    latest: null,
    etag: null,
  };
  // The template was saved in the meantime, and the URL opened again.
  if ((await findTemplate(id, signal)) !== null) return loadTemplate(id, null, signal);
  return copyOf === "1" ? empty : { ...empty, text: (await loadTemplate(copyOf, null, signal)).text };
}
