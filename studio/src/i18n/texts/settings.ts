import { defineTexts } from "../texts.ts";

export const settings = defineTexts({
  purpose: { zh: "服务器的设置、上游与密钥。", en: "Settings, upstreams and keys of the server." },
});
