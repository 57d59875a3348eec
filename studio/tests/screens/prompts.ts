import { roleplay } from "../support/files.ts";
import { type Screen } from "../support/screens.ts";
import { type Studio } from "../support/server.ts";

type ImportIds = { card: string; book: string };

const idsByStudio = new WeakMap<Studio, Promise<ImportIds>>();

/** Files of the role play and a template in two versions, once for all screens. */
function files(studio: Studio): Promise<ImportIds> {
  const cached = idsByStudio.get(studio);
  if (cached !== undefined) return cached;
  const promise = (async () => {
    const { data } = (await studio.request("POST", "/api/v1/imports", {
      files: ["brunn.json", "reef-book.json"].map((name) => ({ name, json: JSON.parse(roleplay(name)) as object })),
    })) as { data: { card_id?: string; lorebook_id?: string }[] };
    const text = "现在是 {%time%}，你是 {%who%}。\n\n【主题】\n{topic_content}\n\n{%chat_histroy%}\n";
    await studio.request("PUT", "/api/v1/templates/ai-say-calm", { text: text.replace("histroy", "history") });
    await studio.request("PUT", "/api/v1/templates/ai-say-calm?draft=true", { text });
    return { card: data[0]?.card_id ?? "", book: data[1]?.lorebook_id ?? "" };
  })();
  idsByStudio.set(studio, promise);
  return promise;
}

export const screens: Screen[] = [
  { name: "prompts-templates", path: async (studio) => (await files(studio), "/prompts") },
  { name: "prompts-template", path: async (studio) => (await files(studio), "/prompts/templates/ai-say-calm") },
  { name: "prompts-imports", path: async (studio) => (await files(studio), "/prompts/imports") },
  { name: "prompts-card", path: async (studio) => `/prompts/cards/${(await files(studio)).card}` },
  { name: "prompts-lorebook", path: async (studio) => `/prompts/lorebooks/${(await files(studio)).book}` },
  {
    name: "prompts-preview",
    path: async (studio) => {
      const { card, book } = await files(studio);
      return `/prompts/preview?card=${card}&books=${book}`;
    },
    act: async (page) => {
      await page.getByLabel(/Name of the user|用户名/).fill("Mia");
      await page.getByLabel(/Text of message 1|第 1 条的内容/).fill("The ship! And the lamp of the lighthouse.");
      await page.getByRole("button", { name: /Render|生成预览/ }).click();
      await page.getByText(/^(?:\d+ tokens|共 \d+ 个词元)$/).waitFor();
    },
  },
  {
    name: "prompts-macros",
    path: "/prompts/macros",
    act: async (page) => {
      await page.getByRole("button", { name: /Fill in an example|填入示例/ }).click();
      await page.getByRole("button", { name: /(Migrate|迁移)$/ }).click();
      await page.getByRole("heading", { name: /What changed|变化/ }).waitFor();
      await page.locator(".cm-mergeView").waitFor();
    },
  },
];
