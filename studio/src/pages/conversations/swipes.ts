/** Fields of a message that the grouping reads. */
export type Sent = {
  readonly message_id: string;
  /** True unless the message is superseded. */
  readonly current: boolean;
  /** Message that this one replaced. */
  readonly in_place_of?: string;
};

/** Superseded version of an answer, with the messages that followed it. */
export type Swipe<M> = { readonly message: M; readonly after: readonly M[] };

/** Place in the conversation: the versions of its answer, the current one last. */
export type Turn<M> = { readonly swipes: readonly Swipe<M>[]; readonly live: boolean };

/**
 * Groups the messages of a conversation, oldest first, into turns with their swipes. A message that replaced another
 * one is the next version at its place; messages after that place followed the older version.
 */
export function turnsOf<M extends Sent>(messages: readonly M[]): Turn<M>[] {
  const turns: Place<M>[] = [];
  for (const message of messages) {
    const { in_place_of: before } = message;
    const at = before === undefined ? -1 : turns.findIndex(({ swipes }) => swipes.some((one) => one.message.message_id === before));
    const version = { message, after: [] };
    if (at === -1) {
      turns.push({ swipes: [version] });
      continue;
    }
    const [place, ...later] = turns.splice(at);
    place?.swipes.at(-1)?.after.push(...messagesOf(later));
    turns.push({ swipes: [...(place?.swipes ?? []), version] });
  }
  // Messages superseded by a deleted one, and all that followed it.
  const gone = turns.flatMap(({ swipes }, index) => (isLive(swipes) ? [] : [index]));
  for (const index of gone.reverse()) {
    const before = turns[index - 1];
    if (before === undefined || isLive(before.swipes)) continue;
    before.swipes.at(-1)?.after.push(...messagesOf(turns.splice(index, 1)));
  }
  return turns.map(({ swipes }) => ({ swipes, live: isLive(swipes) }));
}

type Place<M> = { readonly swipes: { readonly message: M; readonly after: M[] }[] };

const isLive = (swipes: readonly Swipe<Sent>[]): boolean => swipes.at(-1)?.message.current === true;

const messagesOf = <M extends Sent>(turns: readonly Place<M>[]): M[] =>
  turns.flatMap(({ swipes }) => swipes.flatMap(({ message, after }) => [message, ...after]));

/** User text of a message, for a title. */
export function wordsOf(request: object): string {
  const { text, messages } = request as { text?: unknown; messages?: unknown };
  if (typeof text === "string") return text;
  if (!Array.isArray(messages)) return "";
  const last: unknown = messages.filter((one: { role?: unknown }) => one.role === "user").at(-1);
  const content = (last as { content?: unknown } | undefined)?.content;
  return typeof content === "string" ? content : content === undefined ? "" : JSON.stringify(content);
}
