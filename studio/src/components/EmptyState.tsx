import { InboxOutlined } from "@ant-design/icons";
import { type ReactNode } from "react";
import { common } from "../i18n/texts/common.ts";
import { useText } from "../i18n/useText.ts";
import styles from "./EmptyState.module.css";

/** Placeholder for an empty page, with the possible actions. */
export function EmptyState({ title, hint, action }: { title?: string; hint?: ReactNode; action?: ReactNode }) {
  const t = useText(common);
  return (
    <div className={styles["empty"]}>
      <InboxOutlined className={styles["icon"] ?? ""} aria-hidden="true" />
      <p className={styles["title"]}>{title ?? t("empty")}</p>
      {hint !== undefined && <div className={styles["hint"]}>{hint}</div>}
      {action}
    </div>
  );
}
