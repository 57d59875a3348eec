import { type Schemas } from "../../../api/types.ts";

export type MigrationWarning = { message: string; code?: string; line?: number; column?: number };

/** Result of a macro migration. */
export type Migrated = {
  readonly original: string;
  readonly text: string;
  readonly translated: number;
  readonly left: number;
  /** Rules of the macro table with their use counts, most frequent first. */
  readonly rules: readonly (readonly [rule: string, times: number])[];
  readonly warnings: readonly MigrationWarning[];
};

export function readMigration(original: string, { text, warnings, report }: Schemas["MigratedMacros"]): Migrated {
  const { translated = 0, left = 0, rules = {} } = report as {
    translated?: number;
    left?: number;
    rules?: Record<string, number>;
  };
  return {
    original,
    text,
    translated,
    left,
    rules: Object.entries(rules).sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])),
    warnings: warnings as unknown as MigrationWarning[],
  };
}
