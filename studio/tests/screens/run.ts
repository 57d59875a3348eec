import { beginDialogue, say, SCRIPT, storeScript } from "../run/kit.ts";
import { type Screen } from "../support/screens.ts";

let script: string | null = null;

export const screens: Screen[] = [
  { name: "run", path: "/run" },
  {
    name: "run-dialogue",
    path: async (studio) => {
      script ??= await storeScript(studio, SCRIPT, "ABC 模型");
      const id = await beginDialogue(studio, script);
      await say(studio, id);
      await say(studio, id, "比如朋友没回消息，我就很难过。");
      return `/run/${id}`;
    },
  },
  {
    name: "run-start",
    path: async (studio) => {
      script ??= await storeScript(studio, SCRIPT, "ABC 模型");
      return `/run?new&script=${script}`;
    },
    act: async (page) => {
      await page.getByRole("dialog").getByRole("textbox").first().waitFor();
    },
  },
  {
    name: "run-round",
    path: async (studio) => {
      script ??= await storeScript(studio, SCRIPT, "ABC 模型");
      const id = await beginDialogue(studio, script);
      await say(studio, id);
      const trace = (await studio.request("GET", `/api/v1/dialogues/${id}/trace`)) as { data: { number: number }[] };
      return `/run/${id}?round=${trace.data[0]?.number ?? 0}`;
    },
    act: async (page) => {
      await page.getByRole("dialog").getByRole("heading").first().waitFor();
    },
  },
];
