import { api } from "../../../api/client.ts";
import { ApiError } from "../../../api/errors.ts";
import { type Schemas } from "../../../api/types.ts";

/** Version of a template under edit. */
export type LoadedTemplate = {
  readonly id: string;
  readonly text: string;
  readonly source: "stored" | "file" | "builtin";
  /** Number of the loaded version; `null` for a file or a shipped template. */
  readonly version: number | null;
  readonly published: number | null;
  readonly latest: number | null;
  /** Base version that a write names. */
  readonly etag: string | null;
};

/** Loads a template: the given version, or the last one, published or not; else the file or the shipped one. */
export async function loadTemplate(id: string, version: number | null, signal?: AbortSignal): Promise<LoadedTemplate> {
  const wanted = version ?? (await latestOf(id, signal));
  const { data, etag } = await api.get("/api/v1/templates/{name}", {
    path: { name: id },
    query: { version: wanted },
    signal,
  });
  // Another version was saved between the two responses; text and ETag must be of the same version.
  if (version === null && wanted !== null && (data.latest ?? wanted) > wanted) return loadTemplate(id, null, signal);
  return {
    id,
    text: data.text ?? "",
    source: data.source ?? "stored",
    version: data.version ?? null,
    published: data.published ?? null,
    latest: data.latest ?? null,
    etag,
  };
}

/** Number of the last version of a stored template; `null` without any. */
async function latestOf(id: string, signal?: AbortSignal): Promise<number | null> {
  return (await findTemplate(id, signal))?.latest ?? null;
}

/** Template in the listing, which includes drafts that were never published. */
export async function findTemplate(id: string, signal?: AbortSignal): Promise<Schemas["Template"] | null> {
  let after: string | undefined;
  for (;;) {
    const { data } = await api.get("/api/v1/templates", { query: { after, limit: 200 }, signal });
    const found = data.data.find(({ template_id: one }) => one === id);
    if (found !== undefined) return found;
    after = data.data.at(-1)?.template_id;
    if (!data.has_more || after === undefined) return null;
  }
}

export type SaveOutcome =
  | { readonly kind: "saved"; readonly version: number; readonly etag: string | null; readonly warnings: readonly string[] }
  /** Another version was saved first: the current one. Nothing was written. */
  | { readonly kind: "conflict"; readonly theirs: LoadedTemplate };

/** Saves the next version of a template, unless another user changed it since it was loaded. */
export async function saveTemplate(
  base: Pick<LoadedTemplate, "id" | "etag">,
  text: string,
  { draft }: { draft: boolean },
): Promise<SaveOutcome> {
  try {
    const { data, etag } = await api.put(
      "/api/v1/templates/{name}",
      { text },
      {
        path: { name: base.id },
        query: { draft },
        ...basedOn(base.etag),
      },
    );
    const warnings = (data.warnings ?? []).map(({ message }) => message);
    return { kind: "saved", version: data.version, etag, warnings };
  } catch (error) {
    if (!isOvertaken(error)) throw error;
    return { kind: "conflict", theirs: await presentTemplate(base.id) };
  }
}

/** True if a change was refused because another user made one first. */
export const isOvertaken = (error: unknown): boolean => error instanceof ApiError && error.code === "changed_meanwhile";

/** Current template; empty if another user removed it and none is shipped. */
export async function presentTemplate(id: string): Promise<LoadedTemplate> {
  try {
    return await loadTemplate(id, null);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    return { id, text: "", source: "stored", version: null, published: null, latest: null, etag: NOTHING_STORED };
  }
}

const NOTHING_STORED = '"0"';

const basedOn = (etag: string | null) => (etag === null ? {} : { headers: { "if-match": etag } });

/** Publishes a version, unless another user saved since the template was loaded. */
export const publishTemplate = ({ id, etag }: Pick<LoadedTemplate, "id" | "etag">, version: number) =>
  api.post("/api/v1/templates/{name}/publish", { version }, { path: { name: id }, ...basedOn(etag) });

/** Removes a template with its versions, unless another user saved since it was loaded. */
export const removeTemplate = ({ id, etag }: Pick<LoadedTemplate, "id" | "etag">) =>
  api.remove("/api/v1/templates/{name}", { path: { name: id }, ...basedOn(etag) });
