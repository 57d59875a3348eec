import { defineTexts } from "../texts.ts";

/** Phrases of the text editor; the English ones are CodeMirror's keys. */
export const editor = defineTexts({
  find: { zh: "查找", en: "Find" },
  replace: { zh: "替换", en: "Replace" },
  next: { zh: "下一个", en: "next" },
  previous: { zh: "上一个", en: "previous" },
  all: { zh: "全部", en: "all" },
  matchCase: { zh: "区分大小写", en: "match case" },
  byWord: { zh: "全字匹配", en: "by word" },
  regexp: { zh: "正则表达式", en: "regexp" },
  replaceOne: { zh: "替换", en: "replace" },
  replaceAll: { zh: "全部替换", en: "replace all" },
  close: { zh: "关闭", en: "close" },
  currentMatch: { zh: "当前匹配", en: "current match" },
  onLine: { zh: "在行", en: "on line" },
  goToLine: { zh: "转到行", en: "Go to line" },
  go: { zh: "转到", en: "go" },
  foldedLines: { zh: "已折叠的行", en: "Folded lines" },
  unfoldedLines: { zh: "已展开的行", en: "Unfolded lines" },
  to: { zh: "至", en: "to" },
  foldedCode: { zh: "已折叠的内容", en: "folded code" },
  unfold: { zh: "展开", en: "unfold" },
  foldLine: { zh: "折叠此行", en: "Fold line" },
  unfoldLine: { zh: "展开此行", en: "Unfold line" },
  diagnostics: { zh: "检查结果", en: "Diagnostics" },
  noDiagnostics: { zh: "没有检查结果", en: "No diagnostics" },
});
