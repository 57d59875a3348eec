/** Most bytes of an inspected text: the default limit of a reply (`limits.input`). */
export const MOST_BYTES = 16 * 1024 * 1024;

export type LargeKind = "reply" | "transcript" | "record";

/** Command that checks a file with a text too large to inspect here. */
export function commandOf(kind: LargeKind, { name, size, dialect }: { name: string; size: number; dialect: string }): string {
  const contract = kind === "transcript" ? "events" : dialect;
  return [
    "tambour check",
    ...(contract === "auto" || contract === "" ? [] : [`--contract ${contract}`]),
    ...(kind === "record" ? ["--field FIELD"] : []),
    ...(size > MOST_BYTES ? [`--option limits.input=${size}`] : []),
    quoted(name),
  ].join(" ");
}

/** Name quoted for a shell. */
const quoted = (name: string): string => (/^[\w.][\w.-]*$/.test(name) ? name : `'./${name.replaceAll("'", "'\\''")}'`);
