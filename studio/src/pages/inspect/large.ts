/** Most bytes of a text that is looked into: as many as a reply has by default (`limits.input`). */
export const MOST_BYTES = 16 * 1024 * 1024;

export type LargeKind = "reply" | "transcript" | "record";

/** The command that checks a file with a text that is too large here. */
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

/** A name as a shell takes it. */
const quoted = (name: string): string => (/^[\w.][\w.-]*$/.test(name) ? name : `'./${name.replaceAll("'", "'\\''")}'`);
