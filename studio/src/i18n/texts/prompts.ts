import { defineTexts } from "../texts.ts";

export const prompts = defineTexts({
  purpose: { zh: "模板、Skein、角色卡与世界书。", en: "Templates, Skeins, cards and lorebooks." },
});
