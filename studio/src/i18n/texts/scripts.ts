import { defineTexts } from "../texts.ts";

export const scripts = defineTexts({
  purpose: { zh: "编写、检查和发布脚本。", en: "Write, check and publish scripts." },
});
