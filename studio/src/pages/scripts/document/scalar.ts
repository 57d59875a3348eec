import { parseDocument } from "yaml";
import { indentBy } from "./text.ts";

export type Value = string | number | boolean | null;

type Context = {
  /** Spaces before the lines of a block text. */
  indent: number;
  /** True between brackets. */
  flow: boolean;
  /** Style of the present value. */
  style?: string | null | undefined;
  /** True if the value may have lines of its own. */
  lines: boolean;
  eol: string;
};

/** Characters that a block text cannot contain. */
const UNPRINTABLE = new RegExp(
  String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u0084\u0086-\u009f\u2028\u2029\ufeff]|[\ud800-\udfff]`,
  "u",
);

/** Value in YAML, in the present style if possible. */
export function written(value: Value, context: Context): string {
  if (typeof value !== "string") return value === null ? "null" : String(value);
  const { style, flow, lines } = context;
  const many = value.includes("\n");
  if (lines && !flow && !UNPRINTABLE.test(value) && value.trim() !== "" && !/\n\n$|\r/.test(value) && (many || isBlock(style))) {
    return blockText(value, context);
  }
  if (!many && style === "QUOTE_SINGLE" && !UNPRINTABLE.test(value)) return `'${value.replaceAll("'", "''")}'`;
  if (style !== "QUOTE_DOUBLE" && isPlain(value)) return value;
  return quoted(value);
}

const isBlock = (style: string | null | undefined) => style === "BLOCK_LITERAL" || style === "BLOCK_FOLDED";

/** Text in double quotes, which can contain unprintable characters. */
export function quoted(value: string): string {
  const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, escape);
}

function blockText(value: string, { indent, eol }: Context): string {
  const end = /\n*$/.exec(value)?.[0].length ?? 0;
  const chomp = end === 0 ? "-" : "";
  // A first line that begins with a space needs an indentation indicator.
  const told = /^\n* /.test(value) ? "2" : "";
  const body = end === 0 ? value : value.slice(0, -1);
  return `|${told}${chomp}${eol}${indentBy(body, indent).split("\n").join(eol)}${eol}`;
}

const INDICATORS = /^[-?:,[\]{}#&*!|>'"%@`\s]/;

/** True if a text needs no quotes, also between brackets. */
function isPlain(value: string): boolean {
  if (value === "" || INDICATORS.test(value) || /[\s:]$/.test(value)) return false;
  if (/: |\s#|[,[\]{}\n\t]/.test(value) || UNPRINTABLE.test(value)) return false;
  if (/^(?:[-+.\d]|true$|false$|null$|yes$|no$|on$|off$|y$|n$|~)/i.test(value)) return false;
  const document = parseDocument(`- ${value}\n`);
  return document.errors.length === 0 && (document.toJS() as unknown[])[0] === value;
}
