import type { components } from "./schema.d.ts";

export type Schemas = components["schemas"];

/** Event of a stream, typed by its name. Each `data` also carries the ids of message and request. */
export type TypedEvent = Schemas["Event"];

export type EventName = TypedEvent["event"];

export type EventData<N extends EventName> = Extract<TypedEvent, { event: N }>["data"];

export type Finding = Schemas["Finding"];

/** True if an event has a name, and so the fields of that name. */
export function isEvent<N extends EventName>(
  event: { event: string; data: unknown },
  name: N,
): event is Extract<TypedEvent, { event: N }> {
  return event.event === name;
}
