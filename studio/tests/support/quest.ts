import { type Studio } from "./server.ts";

/** Recordings of a conversation whose replies change the state. */
export const QUEST = "studio/tests/data/quest.jsonl";

/** Markup that a page must show as text and never run. */
export const PAYLOAD = "<img src=x onerror=window.hacked=9><script>window.hacked=8</script>";

export type Quest = { id: string; messages: string[] };

/** Models and texts of the user for a conversation: from `QUEST`, or from the bundled recordings. */
const TALKS = {
  quest: [
    ["gold", "Open the chest"],
    ["spend", "Buy a lamp"],
    ["well", "Climb down"],
  ],
  demo: [
    ["5870629e6228", "打开背包"],
    ["31573842286b", "走进废墟"],
    ["419b2cfe5ffb", "喝一瓶药水"],
  ],
} as const;

/** Makes a conversation of three messages; the final state of `quest` is gold 7, a lamp, the old well. */
export async function makeQuest(
  studio: Studio,
  title: string | null = "The old well",
  talk: keyof typeof TALKS = "quest",
): Promise<Quest> {
  const response = (await studio.request("POST", "/api/v1/conversations", title === null ? {} : { title })) as {
    conversation_id: string;
  };
  const id = response.conversation_id;
  const messages: string[] = [];
  for (const [model, text] of TALKS[talk]) {
    const message = (await studio.request("POST", "/api/v1/messages", {
      conversation_id: id,
      text,
      model,
      dialect: "filament",
      wait: true,
    })) as { message_id: string };
    messages.push(message.message_id);
  }
  return { id, messages };
}

/** Regenerates an answer, and waits for its end. */
export async function regenerate(studio: Studio, message: string): Promise<void> {
  const path = `/api/v1/messages/${message}/regenerate`;
  const { message_id: id } = (await studio.request("POST", path)) as { message_id: string };
  // The stream ends with the message.
  await (await fetch(`${studio.url}/api/v1/messages/${id}/events`)).text();
}

/** State of a conversation on the server. */
export async function stateOf(studio: Studio, id: string): Promise<unknown> {
  return ((await studio.request("GET", `/api/v1/conversations/${id}/state`)) as { state: unknown }).state;
}
