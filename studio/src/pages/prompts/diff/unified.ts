/** Line of a unified diff. */
export type DiffLine = {
  readonly kind: "head" | "place" | "added" | "removed" | "same" | "note";
  readonly text: string;
};

/** Lines of a unified diff, without their signs. */
export function linesOf(diff: string): DiffLine[] {
  const lines = diff.endsWith("\n") ? diff.slice(0, -1).split("\n") : diff.split("\n");
  let inside = false;
  return lines
    .filter((line) => line !== "" || inside)
    .map((line): DiffLine => {
      if (line.startsWith("@@")) {
        inside = true;
        return { kind: "place", text: line };
      }
      if (!inside) return { kind: "head", text: line };
      const text = line.slice(1);
      if (line.startsWith("+")) return { kind: "added", text };
      if (line.startsWith("-")) return { kind: "removed", text };
      return line.startsWith("\\") ? { kind: "note", text: text.trim() } : { kind: "same", text };
    });
}
