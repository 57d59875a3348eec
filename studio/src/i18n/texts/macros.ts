import { defineTexts } from "../texts.ts";

/** Texts of the migration of macros. */
export const macros = defineTexts({
  purpose: {
    zh: "将 SillyTavern 与酒馆助手的宏翻译为模板。原文不会被修改。",
    en: "Macros of SillyTavern and Tavern-Helper as templates. The original is not changed.",
  },
  text: { zh: "带宏的文本", en: "Text with macros" },
  example: { zh: "填入示例", en: "Fill in an example" },
  migrate: { zh: "迁移", en: "Migrate" },
  nothing: { zh: "还没有迁移结果", en: "Nothing was migrated yet" },
  nothingHint: { zh: "在上方粘贴文本，然后点击“迁移”。", en: "Paste a text above, then migrate it." },
  translated: { zh: "已翻译 {count} 个宏", en: "{count} {count:macro was|macros were} translated" },
  left: { zh: "{count} 个保持原样", en: "{count} {count:stays|stay} as written" },
  same: { zh: "文本中没有需要翻译的宏", en: "There is nothing to translate in this text" },
  rules: { zh: "使用的规则", en: "Rules that were used" },
  rule: { zh: "规则", en: "Rule" },
  times: { zh: "次数", en: "Times" },
  compare: { zh: "变化", en: "What changed" },
  before: { zh: "原文", en: "Original" },
  after: { zh: "模板", en: "Template" },
  warnings: { zh: "提示", en: "Warnings" },
  noWarnings: { zh: "没有提示", en: "No warnings" },
});
