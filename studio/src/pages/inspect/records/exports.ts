import { type Finding } from "../../../api/types.ts";

/** Checked text, with its findings. */
export type CheckedText = {
  /** Number of its line in the file; `null` for a text that is the whole file. */
  readonly record: number | null;
  readonly id: string;
  readonly model: string;
  readonly contract: string;
  readonly verdict: "pass" | "fail" | null;
  readonly findings: readonly Finding[];
};

export type Format = "json" | "sarif" | "csv";

export const MEDIA_TYPES: Readonly<Record<Format, string>> = {
  json: "application/json",
  sarif: "application/sarif+json",
  csv: "text/csv;charset=utf-8",
};

/** Title and examples of a rule, for formats that explain them. */
export type RuleTitle = { readonly code: string; readonly rows: readonly string[]; readonly title: string };

type Source = { readonly name: string; readonly texts: AsyncIterable<CheckedText>; readonly rules: readonly RuleTitle[] };

/** Pieces of an export, so that it need not be in memory at once. */
export function exported(format: Format, source: Source): AsyncGenerator<string> {
  switch (format) {
    case "json":
      return asJson(source);
    case "sarif":
      return asSarif(source);
    case "csv":
      return asCsv(source);
  }
}

async function* asJson({ name, texts }: Source): AsyncGenerator<string> {
  let first = true;
  yield "[";
  for await (const { record, id, model, contract, verdict, findings } of texts) {
    const error = findings.find(({ severity }) => severity === "error")?.code;
    const told = { path: name, ...(record === null ? {} : { record }), id, model, contract, verdict, first_error: error, findings };
    yield `${first ? "\n" : ",\n"}${JSON.stringify(told)}`;
    first = false;
  }
  yield "\n]\n";
}

const COLUMNS = ["path", "record", "id", "model", "contract", "verdict", "rule", "code", "severity", "line", "column", "start", "end", "message", "repair"];

/** Cell of CSV. One that a spreadsheet would run as a formula begins with an apostrophe. */
export function cellOf(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

async function* asCsv({ name, texts }: Source): AsyncGenerator<string> {
  yield `\uFEFF${COLUMNS.join(",")}\r\n`;
  for await (const { record, id, model, contract, verdict, findings } of texts) {
    const start = [name, record, id, model, contract, verdict];
    const rows = findings.map(({ rule, code, severity, line, column, span, message, repair }) => [
      ...start, rule, code, severity, line, column, span.start, span.end, message, repair,
    ]);
    // A text without findings has a row too.
    if (rows.length === 0) rows.push([...start, ...COLUMNS.slice(start.length).map(() => null)]);
    for (const row of rows) yield `${row.map(cellOf).join(",")}\r\n`;
  }
}

const LEVELS = { error: "error", warning: "warning", info: "note" } as const;

/** Log with one run, as the command `check --format sarif` writes it: rules come after the results that name them. */
async function* asSarif({ name, texts, rules }: Source): AsyncGenerator<string> {
  const numbers = new Map<string, number>();
  const named: { id: string; name: string; shortDescription?: { text: string } }[] = [];
  yield `{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[{"columnKind":"unicodeCodePoints","results":[`;
  let first = true;
  for await (const text of texts) {
    for (const finding of text.findings) {
      const ruleId = `${finding.rule}/${finding.code}`;
      let ruleIndex = numbers.get(ruleId);
      if (ruleIndex === undefined) {
        ruleIndex = named.length;
        numbers.set(ruleId, ruleIndex);
        const title = rules.find(({ code, rows }) => code === finding.code && rows.includes(finding.rule))?.title;
        named.push({ id: ruleId, name: finding.code, ...(title === undefined ? {} : { shortDescription: { text: title } }) });
      }
      yield `${first ? "\n" : ",\n"}${JSON.stringify(resultOf(name, text, finding, ruleId, ruleIndex))}`;
      first = false;
    }
  }
  const driver = { name: "tambour", rules: named };
  yield `\n],"tool":${JSON.stringify({ driver })}}]}\n`;
}

function resultOf(name: string, { record, id }: CheckedText, finding: Finding, ruleId: string, ruleIndex: number): object {
  const { line, column, span, message, repair, severity } = finding;
  // Lines of a record's text are not lines of the file.
  const region = record === null
    ? { startLine: line, startColumn: column, byteOffset: span.start, byteLength: span.end - span.start }
    : { startLine: record };
  const text = record === null ? message : `${message} (line ${line}, column ${column} of the text)`;
  const logical = record === null ? {} : { logicalLocations: [{ name: String(record), fullyQualifiedName: id === "" ? String(record) : id }] };
  return {
    ruleId,
    ruleIndex,
    level: LEVELS[severity],
    message: { text },
    locations: [{ physicalLocation: { artifactLocation: { uri: encodeURI(name) }, region }, ...logical }],
    ...(repair === null ? {} : { properties: { repair } }),
  };
}

/** Joins pieces to a file, megabyte by megabyte; `null` if stopped. */
export async function blobOf(pieces: AsyncIterable<string>, type: string, signal?: AbortSignal): Promise<Blob | null> {
  const parts: Blob[] = [];
  let texts: string[] = [];
  let length = 0;
  for await (const piece of pieces) {
    if (signal?.aborted === true) return null;
    texts.push(piece);
    length += piece.length;
    if (length > 1_000_000) {
      parts.push(new Blob(texts));
      [texts, length] = [[], 0];
    }
  }
  return new Blob([...parts, ...texts], { type });
}
