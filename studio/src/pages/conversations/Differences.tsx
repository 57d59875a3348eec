import { Tag } from "antd";
import { VirtualList } from "../../components/VirtualList.tsx";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Differences.module.css";
import { type Difference } from "./operations.ts";
import { type Json, preview } from "./stateTree.ts";

type DifferencesProps = { differences: readonly Difference[]; label: string };

/** Differences between two states, one line a path. */
export function Differences({ differences, label }: DifferencesProps) {
  const t = useText(conversations);
  return (
    <VirtualList
      label={label}
      count={differences.length}
      rowHeight={62}
      height={`min(50vh, ${Math.max(1, differences.length) * 66 + 2}px)`}
      keyOf={(index) => differences[index]?.path ?? index}
      row={(index) => {
        const difference = differences[index];
        if (difference === undefined) return null;
        const { path, before, after } = difference;
        return (
          <div className={styles["row"]}>
            <div className={styles["head"]}>
              <code className={styles["path"]}>{path}</code>
              {before === undefined ? (
                <Tag>{t("added")}</Tag>
              ) : after === undefined ? (
                <Tag>{t("gone")}</Tag>
              ) : (
                <Tag>{t("changed")}</Tag>
              )}
            </div>
            <div className={styles["values"]}>
              <Value name={t("before")} value={before} kind="before" />
              <span aria-hidden="true" className={styles["arrow"]}>
                {"→"}
              </span>
              <Value name={t("after")} value={after} kind="after" />
            </div>
          </div>
        );
      }}
    />
  );
}

function Value({ name, value, kind }: { name: string; value: Json | undefined; kind: "before" | "after" }) {
  const t = useText(conversations);
  return (
    <span className={`${styles["value"] ?? ""} ${value === undefined ? "" : (styles[kind] ?? "")}`}>
      <span className="visually-hidden">{name}: </span>
      {value === undefined ? t("nothing") : preview(value, 2000)}
    </span>
  );
}
