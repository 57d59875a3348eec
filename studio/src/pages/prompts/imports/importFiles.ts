import { ApiError } from "../../../api/errors.ts";
import { send } from "../../../api/client.ts";

/** Result of a file. */
export type ImportedFile = {
  readonly kind: "card" | "lorebook" | "preset";
  readonly name: string;
  readonly file: string;
  readonly version: string;
  readonly entry_count: number;
  readonly warnings: readonly string[];
  readonly card_id?: string;
  readonly lorebook_id?: string;
  /** Prompt of a preset, which is not stored. */
  readonly skein?: object;
};

/** Fault of a file. */
export type BrokenFile = {
  readonly file: string;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
  readonly excerpt?: string;
};

export type ImportOutcome =
  | { readonly kind: "imported"; readonly files: readonly ImportedFile[] }
  | { readonly kind: "refused"; readonly broken: readonly BrokenFile[]; readonly detail: string };

/** Imports files together: all of them or none. */
export async function importFiles(files: readonly File[]): Promise<ImportOutcome> {
  const form = new FormData();
  files.forEach((file, index) => form.append(`file${index}`, file, file.name));
  try {
    const response = await send("/api/v1/imports", { method: "POST", body: form });
    const { data } = (await response.json()) as { data: ImportedFile[] };
    return { kind: "imported", files: data };
  } catch (error) {
    if (!(error instanceof ApiError) || error.isTemporary) throw error;
    const broken = error.problem["errors"];
    return { kind: "refused", broken: Array.isArray(broken) ? (broken as BrokenFile[]) : [], detail: error.detail };
  }
}

/** Page URL of an import; `null` for a preset. */
export function addressOfImport({ card_id: card, lorebook_id: book }: ImportedFile): string | null {
  if (card !== undefined) return `/prompts/cards/${card}`;
  return book === undefined ? null : `/prompts/lorebooks/${book}`;
}
