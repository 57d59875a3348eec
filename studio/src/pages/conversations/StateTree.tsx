import { CopyOutlined, DownOutlined, EditOutlined, RightOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { useMemo, useState } from "react";
import { EmptyState } from "../../components/EmptyState.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import { type Json, preview, rowsOf, type TreeRow } from "./stateTree.ts";
import styles from "./StateTree.module.css";
import { useCopy } from "./useCopy.ts";

type TreeProps = {
  state: Json;
  search: string;
  /** Copies a row into the operations form; absent for a past state. */
  onEdit?: ((row: TreeRow) => void) | undefined;
};

/** State as a tree; only visible lines are in the page. */
export function StateTree({ state, search, onEdit }: TreeProps) {
  const t = useText(conversations);
  const copy = useCopy();
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(() => rowsOf(state, { toggled, search }), [state, toggled, search]);

  function toggle(path: string): void {
    const next = new Set(toggled);
    if (!next.delete(path)) next.add(path);
    setToggled(next);
  }

  if (rows.length === 0) {
    return search.trim() === "" ? (
      <EmptyState title={t("emptyState")} hint={t("emptyStateHint")} />
    ) : (
      <EmptyState title={t("noMatch")} hint={t("noMatchHint")} />
    );
  }
  return (
    <VirtualList
      label={t("tree")}
      count={rows.length}
      rowHeight={33}
      height={`min(max(calc(100dvh - 320px), 240px), ${rows.length * 37 + 2}px)`}
      keyOf={(index) => rows[index]?.path ?? index}
      row={(index) => {
        const row = rows[index];
        if (row === undefined) return null;
        const { path, name, depth, value, kind, size, open } = row;
        return (
          <div className={styles["row"]} style={{ paddingInlineStart: 8 + Math.min(depth, 12) * 20 }}>
            {size > 0 ? (
              <Button
                type="text"
                size="small"
                className={styles["toggle"] ?? ""}
                icon={open ? <DownOutlined /> : <RightOutlined />}
                aria-expanded={open}
                aria-label={open ? t("collapse", { path }) : t("expand", { path })}
                onClick={() => toggle(path)}
              />
            ) : (
              <span className={styles["toggle"]} />
            )}
            <span className={styles["name"]}>{name}</span>
            <span className={`${styles["value"] ?? ""} ${styles[kind] ?? ""}`}>
              {size > 0 ? t("members", { count: size }) : preview(value, 300)}
            </span>
            <span className={styles["actions"]}>
              {onEdit !== undefined && (
                <Button
                  type="text"
                  size="small"
                  icon={<EditOutlined />}
                  aria-label={`${t("operate")}: ${path}`}
                  onClick={() => onEdit(row)}
                />
              )}
              <Button
                type="text"
                size="small"
                icon={<CopyOutlined />}
                aria-label={t("copyPath", { path })}
                onClick={() => void copy(path)}
              />
            </span>
          </div>
        );
      }}
    />
  );
}
