export type Place = { readonly path: string; readonly label: string };
export type SessionPlaces = { readonly name: string; readonly steps: readonly Place[] };

type Node = Readonly<Record<string, unknown>>;

const listOf = (node: unknown, key: string): readonly Node[] => {
  const list = typeof node === "object" && node !== null ? (node as Node)[key] : undefined;
  return Array.isArray(list) ? (list as Node[]) : [];
};

const nameOf = (node: Node, key: string): string => {
  const name = node[key];
  return typeof name === "string" ? name : "";
};

/** Sessions of a script with the paths of their steps, in which a dialogue may begin. */
export function placesIn(script: unknown): SessionPlaces[] {
  return listOf(script, "sessions").map((session, inScript) => ({
    name: nameOf(session, "session"),
    steps: listOf(session, "phases").flatMap((phase, inSession) =>
      listOf(phase, "steps").map((step, inPhase) => ({
        path: `sessions[${inScript}].phases[${inSession}].steps[${inPhase}]`,
        label: `${nameOf(phase, "phase")} / ${nameOf(step, "topic")}`,
      })),
    ),
  }));
}
