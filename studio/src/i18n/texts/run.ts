import { defineTexts } from "../texts.ts";

export const run = defineTexts({
  purpose: { zh: "运行对话并查看每一轮。", en: "Run a dialogue and look into each round." },
});
