import {
  CommentOutlined,
  DashboardOutlined,
  FileSearchOutlined,
  FileTextOutlined,
  MessageOutlined,
  PlayCircleOutlined,
  SettingOutlined,
  ThunderboltOutlined,
} from "@ant-design/icons";
import { Button, Segmented } from "antd";
import { type ReactNode } from "react";
import { NavLink } from "react-router";
import { signOut, useSession } from "../api/session.ts";
import { app } from "../i18n/texts/app.ts";
import { useText } from "../i18n/useText.ts";
import styles from "./Navigation.module.css";
import { prefer, usePreferences } from "./preferences.ts";

/** Pages in navigation order. */
const PAGES = [
  ["/", "overview", <DashboardOutlined key="icon" />],
  ["/scripts", "scripts", <FileTextOutlined key="icon" />],
  ["/run", "run", <PlayCircleOutlined key="icon" />],
  ["/live", "live", <ThunderboltOutlined key="icon" />],
  ["/inspect", "inspect", <FileSearchOutlined key="icon" />],
  ["/conversations", "conversations", <CommentOutlined key="icon" />],
  ["/prompts", "prompts", <MessageOutlined key="icon" />],
  ["/settings", "settings", <SettingOutlined key="icon" />],
] as const satisfies readonly (readonly [string, keyof typeof app, ReactNode])[];

/** Names of the languages, each in its own language. */
const LANGUAGE_NAMES = [
  { value: "zh" as const, label: <span lang="zh">{"中文"}</span> },
  { value: "en" as const, label: <span lang="en">{"English"}</span> },
];

export function Navigation({ onNavigate }: { onNavigate?: () => void }) {
  const t = useText(app);
  const { language, theme } = usePreferences();
  const { key } = useSession();
  return (
    <div className={styles["navigation"]}>
      <nav aria-label={t("navigation")}>
        <ul className={styles["list"]}>
          {PAGES.map(([path, name, icon]) => (
            <li key={path}>
              <NavLink to={path} end={path === "/"} className={styles["link"] ?? ""} onClick={onNavigate}>
                <span aria-hidden="true">{icon}</span>
                {t(name)}
              </NavLink>
            </li>
          ))}
        </ul>
      </nav>
      <div className={styles["choices"]}>
        {key !== null && <Button onClick={signOut}>{t("signOut")}</Button>}
        <Segmented
          block
          aria-label={t("language")}
          value={language}
          options={LANGUAGE_NAMES}
          onChange={(chosen) => prefer({ language: chosen })}
        />
        <Segmented
          block
          size="small"
          aria-label={t("theme")}
          value={theme}
          options={(["light", "dark", "system"] as const).map((value) => ({ value, label: t(value) }))}
          onChange={(chosen) => prefer({ theme: chosen })}
        />
      </div>
    </div>
  );
}
