/** Target of a request: an upstream, or an alias with its contract. */
export type Target = {
  readonly kind: "upstream" | "alias";
  readonly name: string;
  /** Model of an upstream for requests that name none. */
  readonly model: string | null;
  readonly isDefault: boolean;
};

type Upstream = { name: string; kind: string; model: string | null };

/** Targets from the settings and the list of models. A model that is no upstream is an alias. */
export function targetsOf(
  settings: Readonly<Record<string, unknown>>,
  models: Readonly<Record<string, unknown>>,
): Target[] {
  const upstreams = (settings["upstreams"] ?? []) as Upstream[];
  const names = new Set(upstreams.map(({ name }) => name));
  const ids = ((models["data"] ?? []) as { id: string }[]).map(({ id }) => id);
  const aliases = ids.filter((id) => !names.has(id) && !names.has(id.split("/", 1)[0] ?? ""));
  return [
    ...upstreams.map(({ name, model }): Target => {
      return { kind: "upstream", name, model, isDefault: name === settings["default_upstream"] };
    }),
    ...aliases.map((name): Target => ({ kind: "alias", name, model: null, isDefault: false })),
  ];
}

/** Target as one word, for a field and a URL. */
export const wordOf = ({ kind, name }: Pick<Target, "kind" | "name">): string => `${kind}:${name}`;

export function targetOf(word: string | undefined): Pick<Target, "kind" | "name"> | null {
  const match = /^(upstream|alias):(.*)$/s.exec(word ?? "");
  return match === null ? null : { kind: match[1] as Target["kind"], name: match[2] ?? "" };
}
