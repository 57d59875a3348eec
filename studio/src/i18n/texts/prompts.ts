import { defineTexts } from "../texts.ts";

/** Texts that all pages of prompts share. */
export const prompts = defineTexts({
  sections: { zh: "提示词页面", en: "Pages of prompts" },
  templates: { zh: "模板", en: "Templates" },
  imports: { zh: "角色卡与世界书", en: "Cards and lorebooks" },
  preview: { zh: "预览", en: "Preview" },
  macros: { zh: "宏迁移", en: "Macros" },
  cancel: { zh: "取消", en: "Cancel" },
  remove: { zh: "删除", en: "Delete" },
  removed: { zh: "“{name}”已删除", en: "“{name}” was deleted" },
  copied: { zh: "已复制", en: "Copied" },
  copy: { zh: "复制", en: "Copy" },
  copyFailed: { zh: "浏览器不允许复制", en: "The browser did not allow copying" },
  warnings: { zh: "{count} 条提示", en: "{count} {count:warning|warnings}" },
  at: { zh: "第 {line} 行，第 {column} 列", en: "line {line}, column {column}" },
});
