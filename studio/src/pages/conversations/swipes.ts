/** What the grouping reads of a message. */
export type Sent = {
  readonly message_id: string;
  readonly status: string;
  readonly request: object;
};

/** A version of an answer that was made anew later, with the messages that came after it then. */
export type Swipe<M> = { readonly message: M; readonly after: readonly M[] };

/** A place in the conversation: the versions of its answer, the present one last. */
export type Turn<M> = { readonly swipes: readonly Swipe<M>[]; readonly live: boolean };

/**
 * Groups the messages of a conversation, oldest first, into turns with their swipes.
 *
 * The server keeps what was regenerated as `superseded` and does not say what took its place. A run of superseded
 * messages begins at the place that the next live message has; within the run, those that were asked the same as
 * its first are versions of it, the others came after one of them.
 */
export function turnsOf<M extends Sent>(messages: readonly M[]): Turn<M>[] {
  const turns: Turn<M>[] = [];
  let run: M[] = [];
  for (const message of messages) {
    if (message.status === "superseded") {
      run.push(message);
      continue;
    }
    // A live message that was asked something else stands after what is left of a run whose successor was deleted.
    const first = run[0];
    if (first !== undefined && askedOf(first) !== askedOf(message)) {
      turns.push({ swipes: swipesOf(run), live: false });
      run = [];
    }
    turns.push({ swipes: [...swipesOf(run), { message, after: [] }], live: true });
    run = [];
  }
  if (run.length > 0) turns.push({ swipes: swipesOf(run), live: false });
  return turns;
}

function swipesOf<M extends Sent>(run: readonly M[]): Swipe<M>[] {
  const swipes: { message: M; after: M[] }[] = [];
  const first = run[0];
  for (const message of run) {
    if (first === message || (first !== undefined && askedOf(first) === askedOf(message))) {
      swipes.push({ message, after: [] });
    } else {
      swipes.at(-1)?.after.push(message);
    }
  }
  return swipes;
}

/** What was asked, without how the answer was to be delivered. */
function askedOf({ request }: Sent): string {
  const { text, messages } = request as { text?: unknown; messages?: unknown };
  return JSON.stringify([text ?? null, messages ?? null]);
}

/** The words of the user that a message carries, for a title of it. */
export function wordsOf(request: object): string {
  const { text, messages } = request as { text?: unknown; messages?: unknown };
  if (typeof text === "string") return text;
  if (!Array.isArray(messages)) return "";
  const last: unknown = messages.filter((one: { role?: unknown }) => one.role === "user").at(-1);
  const content = (last as { content?: unknown } | undefined)?.content;
  return typeof content === "string" ? content : content === undefined ? "" : JSON.stringify(content);
}
