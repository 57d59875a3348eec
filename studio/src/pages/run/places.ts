export type Place = { readonly path: string; readonly label: string };
export type SessionPlaces = { readonly name: string; readonly steps: readonly Place[] };

type Node = Readonly<Record<string, unknown>>;
type Child = { readonly node: Node; readonly path: string };

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && !Array.isArray(value);

/** Items of the first of these lists that exists. */
function childrenOf({ node, path }: Child, keys: readonly string[]): Child[] {
  const key = keys.find((one) => one in node);
  const list = key === undefined ? undefined : node[key];
  if (key === undefined || !Array.isArray(list)) return [];
  const begin = path === "" ? key : `${path}.${key}`;
  return list.flatMap((item: unknown, index) => (isNode(item) ? [{ node: item, path: `${begin}[${index}]` }] : []));
}

/** Name under the first of these keys; numbers and truth values are names too. */
function nameOf({ node }: Child, keys: readonly string[]): string {
  const name = node[keys.find((key) => key in node) ?? ""];
  return typeof name === "string" ? name : typeof name === "number" || typeof name === "boolean" ? String(name) : "";
}

/** Sessions of a script; the older flat layout has only one. */
function sessionsOf(script: Node): Child[] {
  const { session } = script;
  return isNode(session) ? [{ node: session, path: "session" }] : childrenOf({ node: script, path: "" }, ["sessions"]);
}

/** Sessions of a script, with the paths of the steps at which a dialogue may begin. */
export function placesIn(script: unknown): SessionPlaces[] {
  if (!isNode(script)) return [];
  return sessionsOf(script).map((session) => ({
    name: nameOf(session, ["session", "session_name", "name", "session_id"]),
    steps: childrenOf(session, ["phases"]).flatMap((phase) =>
      childrenOf(phase, ["steps", "topics"]).map((step) => ({
        path: step.path,
        label: `${nameOf(phase, ["phase", "phase_name", "name", "phase_id"])} / ${nameOf(step, ["topic", "topic_name", "name", "topic_id"])}`,
      })),
    ),
  }));
}
