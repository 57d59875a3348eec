import { defineTexts } from "../texts.ts";

export const live = defineTexts({
  purpose: { zh: "发送消息并实时查看回复。", en: "Send a message and watch its reply." },
});
