// Texts of the page, English and Chinese side by side.

export const TEXTS = {
  playground: { en: "Playground", zh: "试验场" },
  title: { en: "Tambour Playground", zh: "Tambour 试验场" },
  purpose: {
    en: "Reads what a model wrote, as you type. Nothing leaves this page.",
    zh: "边输入边解读模型的回复，内容不会离开此页面。",
  },
  skip: { en: "Skip to the results", zh: "跳到结果" },
  language: { en: "Language", zh: "语言" },
  reply: { en: "Reply of the model", zh: "模型的回复" },
  replyPlaceholder: { en: "Type or paste what a model wrote.", zh: "输入或粘贴模型的回复。" },
  example: { en: "Example", zh: "例子" },
  ownText: { en: "Your own text", zh: "自己的文本" },
  broken: { en: "Broken", zh: "有错误的" },
  correct: { en: "Correct", zh: "正确的" },
  size: { en: "{count} {count:character|characters}", zh: "{count} 个字符" },
  sizeLeft: {
    en: "{count} {count:character|characters}, of which the first {most} are read",
    zh: "{count} 个字符，只读取前 {most} 个",
  },
  dialect: { en: "Dialect", zh: "方言" },
  automatic: { en: "Automatic", zh: "自动识别" },
  profile: { en: "Profile", zh: "检查方式" },
  strict: { en: "Strict", zh: "严格" },
  lenient: { en: "Lenient", zh: "宽松" },
  finish: { en: "Finish reason", zh: "结束原因" },
  finishNone: { en: "None", zh: "无" },
  streamTitle: { en: "Streaming", zh: "流式读取" },
  stream: { en: "Read as if it streamed", zh: "按流式读取" },
  chunk: { en: "Characters a piece", zh: "每段字符数" },
  more: { en: "Options and tools", zh: "选项与工具" },
  options: { en: "Options (JSON)", zh: "选项（JSON）" },
  tools: { en: "Tools (JSON: name to JSON Schema)", zh: "工具（JSON：名称与 JSON Schema）" },
  notJson: { en: "Not valid JSON: {reason}", zh: "不是有效的 JSON：{reason}" },
  notObject: { en: "This must be a JSON object.", zh: "这里应为 JSON 对象。" },
  share: { en: "Copy a link to this", zh: "复制此内容的链接" },
  shareDone: { en: "Copied. The link holds the whole input.", zh: "已复制，链接中包含全部输入。" },
  shareShown: { en: "The link is in the address bar.", zh: "链接在地址栏中。" },
  shareLong: { en: "This text is too long for a link.", zh: "文本太长，无法放进链接。" },
  linkBroken: { en: "The link is damaged; an example is shown.", zh: "链接已损坏，显示的是例子。" },
  results: { en: "Results", zh: "结果" },
  loading: { en: "Loading…", zh: "正在加载…" },
  readingPart: { en: "Reading, {part}", zh: "正在读取，{part}" },
  noEngine: {
    en: "WebAssembly could not be loaded: {reason}",
    zh: "无法加载 WebAssembly：{reason}",
  },
  empty: { en: "Nothing to read yet.", zh: "还没有可读取的内容。" },
  pass: { en: "Passes", zh: "通过" },
  fail: { en: "Fails", zh: "未通过" },
  counts: {
    en: "{errors} {errors:error|errors} · {warnings} {warnings:warning|warnings} · {notes} {notes:note|notes} · {repairs} {repairs:repair|repairs}",
    zh: "{errors} 个错误 · {warnings} 个警告 · {notes} 个提示 · {repairs} 处修复",
  },
  replay: { en: "Replay", zh: "回放" },
  stop: { en: "Stop", zh: "停止" },
  replaying: { en: "Replaying event {at} of {count}", zh: "正在回放第 {at} 个事件，共 {count} 个" },
  answer: { en: "Answer", zh: "回答" },
  noAnswer: { en: "No answer yet.", zh: "还没有回答。" },
  thinking: { en: "Thinking", zh: "思考" },
  thought: { en: "Further thought", zh: "后续思考" },
  phases: { en: "{count} {count:phase|phases}", zh: "{count} 个阶段" },
  summary: { en: "What the user wants", zh: "用户意图" },
  draft: { en: "Draft", zh: "草稿" },
  queries: { en: "Searches", zh: "后续搜索" },
  fallback: { en: "The fallback text replaces the answer: {reason}", zh: "回答由后备文本代替：{reason}" },
  unused: { en: "Kept, but not used as requested: {reason}", zh: "已保留，但未按要求使用：{reason}" },
  cut: { en: "The reply is cut off.", zh: "回复被截断。" },
  failed: { en: "The reply failed: {reason}", zh: "回复失败：{reason}" },
  executable: { en: "can run", zh: "可执行" },
  notExecutable: { en: "cannot run", zh: "不可执行" },
  "block.choice": { en: "Choice", zh: "选项" },
  "block.status_bar": { en: "Status", zh: "状态栏" },
  "block.details": { en: "Details", zh: "详情" },
  "block.ui_component": { en: "Component", zh: "组件" },
  "block.media": { en: "Media", zh: "媒体" },
  "block.element": { en: "Element", zh: "元素" },
  "block.plan": { en: "Plan", zh: "计划" },
  "block.tool_call": { en: "Call of {name}", zh: "调用 {name}" },
  "block.state_update": { en: "State update", zh: "状态更新" },
  "block.form": { en: "Form", zh: "表单" },
  "block.picture": { en: "Picture", zh: "图片" },
  "block.skill": { en: "Skill", zh: "技能" },
  "block.exit_decision": { en: "Exit decision", zh: "结束判断" },
  findings: { en: "Findings", zh: "检查结果" },
  number: { en: "{count}", zh: "{count}" },
  noFindings: { en: "No findings: the reply satisfies its contract.", zh: "没有检查结果：回复符合约定。" },
  error: { en: "Error", zh: "错误" },
  warning: { en: "Warning", zh: "警告" },
  info: { en: "Note", zh: "提示" },
  place: { en: "Line {line}, column {column}", zh: "第 {line} 行，第 {column} 列" },
  repair: { en: "Repair: {repair}", zh: "修复：{repair}" },
  noRepair: { en: "Not repaired", zh: "未修复" },
  events: { en: "Events", zh: "事件" },
  noEvents: { en: "No events.", zh: "没有事件。" },
  repaired: { en: "Repaired reply", zh: "修复后的回复" },
  same: { en: "Nothing had to be changed.", zh: "无需修改。" },
  isFallback: { en: "Nothing of the reply can be used, so this is the fallback text.", zh: "回复无法使用，这是后备文本。" },
  notRepaired: { en: "There is no repaired reply: {reason}", zh: "没有修复后的回复：{reason}" },
  copy: { en: "Copy", zh: "复制" },
  copyDone: { en: "Copied", zh: "已复制" },
  copyFailed: { en: "The browser did not allow it.", zh: "浏览器不允许复制。" },
  moreCharacters: { en: "({count} more characters)", zh: "（还有 {count} 个字符）" },
  moreBlocks: { en: "{count} more {count:block|blocks} of the answer.", zh: "还有 {count} 个部分。" },
  morePhases: { en: "{count} more {count:phase|phases}.", zh: "还有 {count} 个阶段。" },
  moreEvents: { en: "{count} more {count:event|events}.", zh: "还有 {count} 个事件。" },
  moreFindings: { en: "{count} more {count:finding|findings}.", zh: "还有 {count} 项检查结果。" },
  cutText: {
    en: "The text is too long for this field; its first {count} lines were taken.",
    zh: "文本太长，只取了前 {count} 行。",
  },
  tooLong: { en: "Reading took too long and was given up.", zh: "读取时间太长，已放弃。" },
  internal: { en: "The library has failed; please report the input.", zh: "程序出错，请报告此输入。" },
};

/** Languages of the page. */
export const LANGUAGES = ["en", "zh"];

/**
 * Returns the function that gives a text. `{name}` stands for a value, `{name:one|many}` for the form of a word; numbers
 * have the separators of the language.
 */
export function textsIn(language) {
  const format = new Intl.NumberFormat(language);
  return (key, values = {}) =>
    TEXTS[key][language].replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, (_, name, one, many) => {
      const value = values[name];
      if (one !== undefined) return value === 1 ? one : many;
      return typeof value === "number" ? format.format(value) : String(value);
    });
}

/** Writes the texts of the page into the elements that name them. */
export function translate(root, t) {
  for (const element of root.querySelectorAll("[data-text]")) element.textContent = t(element.dataset.text);
}
