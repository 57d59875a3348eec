import { defineTexts } from "../texts.ts";

export const conversations = defineTexts({
  purpose: { zh: "会话、消息与状态。", en: "Conversations, messages and state." },
});
