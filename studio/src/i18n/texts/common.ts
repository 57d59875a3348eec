import { defineTexts } from "../texts.ts";

/** Texts of the shared components. */
export const common = defineTexts({
  retry: { zh: "重试", en: "Try again" },
  loading: { zh: "正在加载…", en: "Loading…" },
  failed: { zh: "加载失败", en: "This could not be loaded" },
  disconnected: { zh: "无法连接服务器", en: "The server cannot be reached" },
  disconnectedHint: {
    zh: "请检查服务器是否在运行，然后重试。",
    en: "Check whether the server is running, then try again.",
  },
  forbidden: { zh: "此密钥没有权限", en: "This key is not allowed to do that" },
  missing: { zh: "未找到", en: "Not found" },
  headlineWith: { zh: "{headline}：{detail}", en: "{headline}: {detail}" },
  code: { zh: "错误代码：{code}", en: "Code: {code}" },
  request: { zh: "请求编号：{id}", en: "Request: {id}" },
  empty: { zh: "暂无内容", en: "Nothing here yet" },
  none: { zh: "无", en: "None" },
  download: { zh: "下载", en: "Download" },
  partShown: {
    zh: "第 {part} 部分，共 {parts} 部分（{size}）",
    en: "Part {part} of {parts} ({size})",
  },
  previousPart: { zh: "上一部分", en: "Previous part" },
  nextPart: { zh: "下一部分", en: "Next part" },
  longText: { zh: "文本", en: "Text" },
  foreignImage: { zh: "外部图片：{alt}", en: "Image of another site: {alt}" },
  showTable: { zh: "显示为表格", en: "Show as table" },
  showPlot: { zh: "显示为图表", en: "Show as plot" },
  noPoints: { zh: "暂无数据", en: "No data yet" },
  series: { zh: "序列", en: "Series" },
  saved: { zh: "已保存", en: "Saved" },
  unsaved: { zh: "有未保存的更改", en: "Unsaved changes" },
  saving: { zh: "正在保存…", en: "Saving…" },
  saveFailed: { zh: "保存失败：{reason}", en: "Not saved: {reason}" },
  saveOffline: {
    zh: "离线：更改保留在浏览器中，连接恢复后保存",
    en: "Offline: kept in the browser, saved once connected",
  },
});
