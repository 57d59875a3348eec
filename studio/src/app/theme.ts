import { theme as antd, type ThemeConfig } from "antd";

const stillQuery = window.matchMedia("(prefers-reduced-motion: reduce)");

/** Design tokens of Ant Design; `styles.css` has the same colours for other elements. */
export function themeOf(dark: boolean): ThemeConfig {
  return {
    algorithm: dark ? antd.darkAlgorithm : antd.defaultAlgorithm,
    token: {
      colorPrimary: dark ? "#17877d" : "#0f766e",
      colorError: dark ? "#ff7b72" : "#c4281c",
      colorLink: dark ? "#4fc7ba" : "#0f766e",
      colorBgLayout: dark ? "#111416" : "#f5f6f7",
      colorBgContainer: dark ? "#191d20" : "#ffffff",
      colorBgElevated: dark ? "#21262a" : "#ffffff",
      colorTextDescription: dark ? "#a3adb5" : "#5a656e",
      colorTextPlaceholder: dark ? "#8b959d" : "#69747d",
      colorTextTertiary: dark ? "#a3adb5" : "#5a656e",
      motion: !stillQuery.matches,
      borderRadius: 8,
      fontSize: 14,
      fontFamily:
        "system-ui, -apple-system, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans SC', 'WenQuanYi Zen Hei', sans-serif",
      fontFamilyCode: "ui-monospace, 'SF Mono', Menlo, Consolas, 'WenQuanYi Zen Hei Mono', monospace",
    },
    components: {
      // White is hard to read on the light red of the dark theme, and the darker green on its ground.
      Button: dark ? { dangerColor: "#1a0807", defaultHoverColor: "#4fc7ba" } : {},
      Segmented: { itemColor: dark ? "#c3cbd1" : "#46515a" },
    },
  };
}
