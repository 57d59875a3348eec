import { defineTexts } from "../texts.ts";

export const overview = defineTexts({
  purpose: { zh: "消息、有效率、修复与用量一览。", en: "Messages, validity, repairs and use at a glance." },
});
