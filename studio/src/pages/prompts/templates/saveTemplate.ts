import { api } from "../../../api/client.ts";
import { ApiError } from "../../../api/errors.ts";
import { type Schemas } from "../../../api/types.ts";

/** A version of a template that is edited. */
export type LoadedTemplate = {
  readonly id: string;
  readonly text: string;
  readonly source: "stored" | "file" | "builtin";
  /** Number of the version that was read; `null` of a file or a shipped template. */
  readonly version: number | null;
  readonly published: number | null;
  readonly latest: number | null;
  /** What a write says it was based on. */
  readonly etag: string | null;
};

/** Reads a template: a version of it, or the last one, published or not; else the file or the shipped one. */
export async function loadTemplate(id: string, version: number | null, signal?: AbortSignal): Promise<LoadedTemplate> {
  const wanted = version ?? (await latestOf(id, signal));
  const { data, etag } = await api.get("/api/v1/templates/{name}", {
    path: { name: id },
    query: { version: wanted },
    signal,
  });
  // Another version came between the two answers: text and ETag have to be of the same one.
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

/** Number of the last version of a stored template; `null` where there is none. */
async function latestOf(id: string, signal?: AbortSignal): Promise<number | null> {
  return (await findTemplate(id, signal))?.latest ?? null;
}

/** A template in the listing, which knows drafts that were never published too. */
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
  /** Another version came between: what stands now. Nothing was written. */
  | { readonly kind: "conflict"; readonly theirs: LoadedTemplate };

/** Saves the next version of a template, if nobody else has changed it since it was read. */
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

/** Tells whether a change was refused because somebody else has made one since. */
export const isOvertaken = (error: unknown): boolean => error instanceof ApiError && error.code === "changed_meanwhile";

/** A template as it is now: nothing where somebody has removed it, and none is shipped. */
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

/** Takes a version into use, if nobody has saved since the template was read. */
export const publishTemplate = ({ id, etag }: Pick<LoadedTemplate, "id" | "etag">, version: number) =>
  api.post("/api/v1/templates/{name}/publish", { version }, { path: { name: id }, ...basedOn(etag) });

/** Removes a template with its versions, if nobody has saved since it was read. */
export const removeTemplate = ({ id, etag }: Pick<LoadedTemplate, "id" | "etag">) =>
  api.remove("/api/v1/templates/{name}", { path: { name: id }, ...basedOn(etag) });
