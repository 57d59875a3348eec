import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { browserStorage, type Kept, KeptWork, openPlaces } from "./store/kept.ts";
import { type LoadedScript } from "./store/ScriptSession.ts";

export type ScriptRow = Schemas["Script"];

export type ScriptFinding = Schemas["Validated"]["errors"][number] & { readonly severity: "error" | "warning" };

export type ScriptVersion = { version: number; created: string; published: boolean };

/** All scripts, page by page. */
export async function allScripts(signal: AbortSignal): Promise<ScriptRow[]> {
  const rows: ScriptRow[] = [];
  for (;;) {
    const after = rows.at(-1)?.script_id;
    const { data } = await api.get("/api/v1/scripts", { query: { limit: 200, after }, signal });
    rows.push(...data.data);
    if (!data.has_more || data.data.length === 0) return rows;
  }
}

export type OpenedScript = {
  readonly script: LoadedScript;
  readonly work: KeptWork;
  readonly left: { readonly place: string; readonly work: Kept } | undefined;
};

/** The last version of a script, and what the browser has of it that was never saved. */
export async function openScript(id: string, signal: AbortSignal): Promise<OpenedScript> {
  const { data: shown } = await api.get("/api/v1/scripts/{id}", { path: { id }, signal });
  const query = { version: shown.latest };
  const { data } = shown.version === shown.latest ? { data: shown } : await api.get("/api/v1/scripts/{id}", { path: { id }, query, signal });
  const script: LoadedScript = {
    id,
    name: data.name ?? id,
    text: data.yaml ?? "",
    version: data.version ?? 0,
    published: data.published ?? null,
  };
  const page = Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join("");
  const work = new KeptWork(browserStorage(), id, page);
  return { script, work, left: work.left(await openPlaces()).at(0) };
}

/** Stores a draft behind a version; the number of the new one. */
export async function putDraft(id: string, yaml: string, version: number): Promise<number> {
  const headers = { "if-match": `"${version}"` };
  const { data } = await api.put("/api/v1/scripts/{id}", { yaml }, { path: { id }, query: { draft: true, autosave: true }, headers });
  return data.version;
}

/** What the server says of a text. */
export async function validated(yaml: string, signal: AbortSignal): Promise<ScriptFinding[]> {
  const { data } = await api.post("/api/v1/scripts/validate", { yaml }, { signal });
  const as = (severity: "error" | "warning") => (finding: Schemas["Validated"]["errors"][number]) => ({ ...finding, severity });
  return [...data.errors.map(as("error")), ...data.warnings.map(as("warning"))];
}

export async function allVersions(id: string, signal: AbortSignal): Promise<ScriptVersion[]> {
  const versions: ScriptVersion[] = [];
  for (;;) {
    const query = { limit: 200, after: versions.at(-1)?.version };
    const { data } = await api.get("/api/v1/scripts/{id}/versions", { path: { id }, query, signal });
    versions.push(...(data.data as unknown as ScriptVersion[]));
    if (!data.has_more || data.data.length === 0) return versions;
  }
}

/** A script that can be stored: its author fills it. */
export const emptyScript = (session: string): string =>
  `sessions:\n  - session: ${JSON.stringify(session)}\n    phases: []\n`;
