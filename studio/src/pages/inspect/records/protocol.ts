import { type Finding } from "../../../api/types.ts";

/** Summary of a finding, kept while its file is indexed. */
export type ShortFinding = Pick<Finding, "rule" | "code" | "severity"> & { readonly repaired: boolean };

/** Summary of a record. */
export type Row = {
  readonly start: number;
  readonly length: number;
  readonly id: string;
  readonly model: string;
  readonly dialect: string;
  readonly preview: string;
  /** Findings; `null` if the record is unchecked. */
  readonly findings: readonly ShortFinding[] | null;
  /** True if the line is a record with a reply. */
  readonly readable: boolean;
};

export type ToWorker = { readonly file: Blob };

export type FromWorker =
  | { readonly kind: "rows"; readonly rows: readonly Row[]; readonly bytes: number }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly message: string };

export const shortOf = ({ rule, code, severity, repair }: Finding): ShortFinding => ({
  rule,
  code,
  severity,
  repaired: repair !== null,
});
