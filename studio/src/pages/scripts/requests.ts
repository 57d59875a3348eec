import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { type Schemas } from "../../api/types.ts";
import { type Language } from "../../i18n/language.ts";
import { browserStorage, type Kept, KeptWork, openPlaces } from "./store/kept.ts";
import { type LoadedScript } from "./store/ScriptSession.ts";

export type ScriptRow = Schemas["Script"];

export type ScriptFinding = Schemas["Validated"]["errors"][number] & { readonly severity: "error" | "warning" };

export type ScriptVersion = { version: number; created: string; published: boolean };

/** Loads all scripts, page by page. */
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
  /** Set if the server no longer has the script: only the browser does. */
  readonly gone: boolean;
};

/** Place in the browser for the unsaved work of one page on a script. */
export function keptWorkOf(id: string): KeptWork {
  const page = Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join("");
  return new KeptWork(browserStorage(), id, page);
}

/** Loads the last version of a script, and the browser's unsaved work on it. */
export async function openScript(id: string, signal: AbortSignal): Promise<OpenedScript> {
  const work = keptWorkOf(id);
  try {
    const script = await loadScript(id, signal);
    return { script, work, left: work.left(await openPlaces()).at(0), gone: false };
  } catch (error) {
    const left = error instanceof ApiError && error.status === 404 ? work.left(await openPlaces()).at(0) : undefined;
    if (left === undefined) throw error;
    const { name = id, base, version } = left.work;
    return { script: { id, name, text: base, version, published: null }, work, left, gone: true };
  }
}

async function loadScript(id: string, signal: AbortSignal): Promise<LoadedScript> {
  const { data: shown } = await api.get("/api/v1/scripts/{id}", { path: { id }, signal });
  const query = { version: shown.latest };
  const { data } = shown.version === shown.latest ? { data: shown } : await api.get("/api/v1/scripts/{id}", { path: { id }, query, signal });
  return {
    id,
    name: data.name ?? id,
    text: data.yaml ?? "",
    version: data.version ?? 0,
    published: data.published ?? null,
  };
}

/** Header of a write based on the last known version: nothing is written if there is a later one. */
const basedOn = (version: number) => ({ "if-match": `"${version}"` });

/** Stores a draft after a version, or in its place if it is a recent autosave; returns the number of the new one. */
export async function putDraft(id: string, language: Language, yaml: string, version: number, replaces: boolean): Promise<number> {
  const { data } = await api.put(
    "/api/v1/scripts/{id}",
    { yaml, text_language: language },
    { path: { id }, query: { draft: true, autosave: replaces }, headers: basedOn(version) },
  );
  return data.version;
}

/** Publishes a version, unless another user saved after the last known one. */
export const publishVersion = (id: string, version: number, last: number) =>
  api.post("/api/v1/scripts/{id}/publish", { version }, { path: { id }, headers: basedOn(last) });

/** Removes a script with its versions, unless another user saved after the last known one. */
export const removeScript = (id: string, last: number) =>
  api.remove("/api/v1/scripts/{id}", { path: { id }, headers: basedOn(last) });

/** Findings of the server for a text, in a language. */
export async function validated(yaml: string, language: Language, signal: AbortSignal): Promise<ScriptFinding[]> {
  const { data } = await api.post("/api/v1/scripts/validate", { yaml, text_language: language }, { signal });
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

/** Smallest script that can be stored, for its author to fill. */
export const emptyScript = (session: string): string =>
  `sessions:\n  - session: ${JSON.stringify(session)}\n    phases: []\n`;
