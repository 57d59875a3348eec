import { defineTexts } from "../texts.ts";

/** Default texts of the server, by their names in the settings. */
export const defaults = defineTexts({
  fallback: {
    zh: "抱歉，我的响应格式有问题，请重新尝试您的请求。",
    en: "Sorry, my reply had a format problem. Please try your request again.",
  },
  phase_title: { zh: "思考过程", en: "Thinking" },
});
