/** What the grouping reads of a message. */
export type Sent = {
  readonly message_id: string;
  /** Set when it counts: it is not superseded. */
  readonly current: boolean;
  /** The message in whose place it was made. */
  readonly in_place_of?: string;
};

/** A version of an answer that was made anew later, with the messages that came after it then. */
export type Swipe<M> = { readonly message: M; readonly after: readonly M[] };

/** A place in the conversation: the versions of its answer, the present one last. */
export type Turn<M> = { readonly swipes: readonly Swipe<M>[]; readonly live: boolean };

/**
 * Groups the messages of a conversation, oldest first, into turns with their swipes. A message that was made in the
 * place of another one is the next version at its place; what stood behind that place came after the older version.
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
  // Messages that were superseded by a deleted one, and all that came after it.
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

/** The words of the user that a message carries, for a title of it. */
export function wordsOf(request: object): string {
  const { text, messages } = request as { text?: unknown; messages?: unknown };
  if (typeof text === "string") return text;
  if (!Array.isArray(messages)) return "";
  const last: unknown = messages.filter((one: { role?: unknown }) => one.role === "user").at(-1);
  const content = (last as { content?: unknown } | undefined)?.content;
  return typeof content === "string" ? content : content === undefined ? "" : JSON.stringify(content);
}
