import { createParser } from "eventsource-parser";
import { type TypedEvent } from "../../api/types.ts";

/** Events of a transcript: Server-Sent Events, or one JSON object a line. */
export function eventsOf(transcript: string): TypedEvent[] {
  const events: TypedEvent[] = [];
  const add = (event: string, data: unknown) => {
    if (typeof data === "object" && data !== null) events.push({ event, data } as TypedEvent);
  };
  if (!/^(?:event|data|id|retry)?:/m.test(transcript.trimStart().split("\n", 1)[0] ?? "")) {
    for (const line of transcript.split("\n")) {
      const value = parsed(line) as { event?: unknown; data?: unknown } | null;
      if (typeof value?.event === "string") add(value.event, value.data ?? {});
    }
    return events;
  }
  const parser = createParser({ onEvent: ({ event, data }) => add(event ?? "message", parsed(data)) });
  parser.feed(transcript.endsWith("\n\n") ? transcript : `${transcript}\n\n`);
  return events;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
