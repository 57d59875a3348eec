import { defineTexts } from "../texts.ts";

/** Limits of reading a reply, by their names in the settings. */
export const limits = defineTexts({
  input: { zh: "一条回复的字节数", en: "Bytes of one reply" },
  depth: { zh: "JSON 与标签的嵌套层数", en: "Nesting depth of JSON and of tags" },
  hold: { zh: "暂不送出的字节数", en: "Bytes that may be held back" },
  value: { zh: "一个计划或结构化答案的字节数", en: "Bytes of one plan or structured answer" },
  items: { zh: "一个计划或结构化答案的值和键", en: "Values and keys of one plan or structured answer" },
  tag: { zh: "一个标签的字节数", en: "Bytes of one tag" },
  line: { zh: "未闭合的行内代码中等待的字节数", en: "Bytes that wait in an open code span" },
  phases: { zh: "一条回复的思考阶段数", en: "Phases of one reply" },
  findings: { zh: "一条回复的检查结果数", en: "Findings of one reply" },
  delta: { zh: "一个文本片段的字节数", en: "Bytes of one piece of text" },
  detect: { zh: "判断回复格式所用的字节数", en: "Bytes after which the form of a reply is decided" },
});
