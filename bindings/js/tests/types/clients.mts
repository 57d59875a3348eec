// The package beside those that it works with: types of schemas, streams and models.
import { type LanguageModelMiddleware, wrapLanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import OpenAI from "openai";
import { z } from "zod";

import { decodeInto, type Event } from "@tambour/core";
import { tambourMiddleware } from "@tambour/core/ai-sdk";
import { decode } from "@tambour/core/openai";

const Trip = z.object({
  city: z.string(),
  day: z.coerce.date(),
  stops: z.array(z.object({ name: z.string(), tags: z.array(z.string()).optional() })),
});
type Trip = z.infer<typeof Trip>;

export function useZod(chunks: Iterable<string>): Trip {
  for (const trip of decodeInto(Trip, chunks)) {
    const city: string | undefined = trip.city;
    const name: string | undefined = trip.stops?.[0]?.name;
    // @ts-expect-error -- the schema has no such field
    void [city, name, trip.country];
  }
  return decodeInto(Trip, chunks).final();
}

export async function useOpenAi(client: OpenAI): Promise<Event[]> {
  const events: Event[] = [];
  const chat = await client.chat.completions.create({ model: "m", messages: [], stream: true });
  for await (const event of decode(chat, { dialect: "plain" })) events.push(event);
  const responses = await client.responses.create({ model: "m", input: "a", stream: true });
  for await (const event of decode(responses)) events.push(event);
  return events;
}

export async function useFetch(): Promise<void> {
  const response = await fetch("http://127.0.0.1/");
  if (response.body === null) return;
  const trip: Trip = await decodeInto(Trip, response.body).final();
  void trip;
}

type Parameter = Parameters<typeof wrapLanguageModel>[0];
const middleware: Parameter["middleware"] = tambourMiddleware();
const single: LanguageModelMiddleware = tambourMiddleware({ dialect: "thinkingml", onEnd: (outcome) => outcome.calls });
export const model = wrapLanguageModel({ model: new MockLanguageModelV4(), middleware: [single] });
void middleware;
// @ts-expect-error -- no dialect has this name
tambourMiddleware({ dialect: "plane" });
// @ts-expect-error -- a state belongs to one reply, the middleware to many
tambourMiddleware({ state: undefined as never, message: "m" });
