import { defineTexts } from "../texts.ts";

export const inspect = defineTexts({
  purpose: { zh: "检查回复、记录和文件。", en: "Look into replies, transcripts and files." },
});
