import { makeQuest, type Quest, regenerate } from "../support/quest.ts";
import { type Screen } from "../support/screens.ts";
import { type Studio } from "../support/server.ts";

const questByStudio = new WeakMap<Studio, Promise<Quest>>();

/** Conversation for all screens, with a regenerated answer. */
function quest(studio: Studio): Promise<Quest> {
  const cached = questByStudio.get(studio);
  if (cached !== undefined) return cached;
  const promise = (async () => {
    for (const title of ["钟楼上的谈话", "Sums", null]) {
      await studio.request("POST", "/api/v1/conversations", title === null ? {} : { title });
    }
    const talk = await makeQuest(studio, "The old well", "demo");
    await regenerate(studio, talk.messages.at(-1) ?? "");
    const hero = ["SET", "hero", { name: "塞拉菲娜", hp: 24, bag: ["lamp", "rope"] }];
    await studio.request("POST", `/api/v1/conversations/${talk.id}/state/operations`, {
      operations: [hero, ["SET", "gold", 10], ["ADD", "location", 1]],
      analysis: "the scene begins",
    });
    return talk;
  })();
  questByStudio.set(studio, promise);
  return promise;
}

const tab = (name: string): Screen => ({
  name: `conversation-${name}`,
  path: async (studio) => `/conversations/${(await quest(studio)).id}?tab=${name}`,
});

export const screens: Screen[] = [
  { name: "conversations", path: async (studio) => (await quest(studio), "/conversations") },
  { name: "conversations-none", path: async (studio) => (await quest(studio), "/conversations?q=nothing-like-it") },
  tab("messages"),
  tab("state"),
  tab("history"),
  tab("compare"),
  tab("schema"),
  {
    name: "conversation-rollback",
    path: async (studio) => `/conversations/${(await quest(studio)).id}?tab=history`,
    act: async (page) => {
      await page.getByRole("button", { name: /Roll back to the beginning|回退到初始状态/ }).click();
      await page.getByRole("dialog").getByRole("listitem").first().waitFor();
    },
  },
];
