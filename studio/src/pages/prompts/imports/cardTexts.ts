/** Text fields of a card, as the server reads them. */
export type CardFields = {
  readonly nickname?: string;
  readonly description?: string;
  readonly personality?: string;
  readonly scenario?: string;
  readonly first_mes?: string;
  readonly alternate_greetings?: readonly string[];
  readonly group_only_greetings?: readonly string[];
  readonly mes_example?: string;
  readonly system_prompt?: string;
  readonly post_history_instructions?: string;
  readonly depth_prompt?: { readonly prompt?: string; readonly depth?: number; readonly role?: string } | null;
  readonly creator_notes?: string;
  readonly creator?: string;
  readonly character_version?: string;
  readonly tags?: readonly string[];
};

/** Text of a card under the key of its name. */
export type CardText =
  | { readonly name: CardTextName; readonly text: string }
  | { readonly name: "alternate" | "groupGreeting"; readonly number: number; readonly text: string }
  | { readonly name: "depthPrompt"; readonly depth: number; readonly role: string; readonly text: string };

export type CardTextName =
  | "description"
  | "personality"
  | "scenario"
  | "greeting"
  | "examples"
  | "systemPrompt"
  | "postHistory"
  | "notes";

/** Nonempty texts of a card, in reading order. */
export function textsOf(card: CardFields): CardText[] {
  const single = (name: CardTextName, text: string | undefined): CardText[] =>
    text === undefined || text.trim() === "" ? [] : [{ name, text }];
  const many = (name: "alternate" | "groupGreeting", texts: readonly string[] = []): CardText[] =>
    texts.flatMap((text, index) => (text.trim() === "" ? [] : [{ name, number: index + 1, text }]));
  const deep = card.depth_prompt?.prompt ?? "";
  return [
    ...single("description", card.description),
    ...single("personality", card.personality),
    ...single("scenario", card.scenario),
    ...single("greeting", card.first_mes),
    ...many("alternate", card.alternate_greetings),
    ...many("groupGreeting", card.group_only_greetings),
    ...single("examples", card.mes_example),
    ...single("systemPrompt", card.system_prompt),
    ...single("postHistory", card.post_history_instructions),
    ...(deep.trim() === ""
      ? []
      : [
          {
            name: "depthPrompt" as const,
            depth: card.depth_prompt?.depth ?? 4,
            role: card.depth_prompt?.role ?? "system",
            text: deep,
          },
        ]),
    ...single("notes", card.creator_notes),
  ];
}
