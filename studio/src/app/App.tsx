import { App as Messages, ConfigProvider } from "antd";
import enUS from "antd/locale/en_US";
import zhCN from "antd/locale/zh_CN";
import { useEffect } from "react";
import { RouterProvider } from "react-router";
import { LanguageContext } from "../i18n/useText.ts";
import { useDark, usePreferences } from "./preferences.ts";
import { router } from "./router.tsx";
import { themeOf } from "./theme.ts";

export function App() {
  const { language } = usePreferences();
  const dark = useDark();
  useEffect(() => {
    document.documentElement.lang = language;
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  }, [language, dark]);
  return (
    <LanguageContext value={language}>
      <ConfigProvider
        locale={language === "zh" ? zhCN : enUS}
        theme={themeOf(dark)}
        button={{ autoInsertSpace: false }}
      >
        {/* Below the bar at the top of a phone. */}
        <Messages component={false} message={{ top: 64 }}>
          <RouterProvider router={router} />
        </Messages>
      </ConfigProvider>
    </LanguageContext>
  );
}
