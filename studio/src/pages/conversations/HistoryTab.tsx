import { DiffOutlined, RollbackOutlined } from "@ant-design/icons";
import { Button, Input, Tag } from "antd";
import { useMemo, useState } from "react";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Content } from "../../components/Page.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./HistoryTab.module.css";
import { pointOf, stepsOf, type Update, updateMatches } from "./operations.ts";
import { type StatePoint } from "./points.ts";
import { Steps } from "./Steps.tsx";
import { type ConversationData } from "./useConversation.ts";
import { usePointLabel } from "./usePointLabel.ts";

type HistoryProps = {
  data: ConversationData;
  points: readonly StatePoint[];
  onRollback: (point: string | null) => void;
  onCompare: (point: string) => void;
  onMessage: (message: string) => void;
};

/** Updates of the state, newest first. */
export function HistoryTab({ data, points, onRollback, onCompare, onMessage }: HistoryProps) {
  const t = useText(conversations);
  const { updates } = data;
  const [search, setSearch] = useState("");
  const shown = useMemo(
    () => updates.rows.filter((update) => updateMatches(update, search)).reverse(),
    [updates.rows, search],
  );
  const newest = updates.rows.at(-1)?.position;
  return (
    <Content
      loading={updates.loading && updates.rows.length === 0}
      error={updates.rows.length === 0 ? updates.error : null}
      onRetry={updates.reload}
    >
      {updates.rows.length === 0 ? (
        <EmptyState title={t("historyEmpty")} hint={t("emptyStateHint")} />
      ) : (
        <>
          <div className={styles["bar"]}>
            <Input.Search
              className={styles["search"] ?? ""}
              aria-label={t("searchHistory")}
              placeholder={t("searchHistory")}
              allowClear
              value={search}
              onChange={({ target }) => setSearch(target.value)}
            />
            <Button icon={<RollbackOutlined />} onClick={() => onRollback(null)}>
              {t("rollbackStart")}
            </Button>
          </div>
          {shown.length === 0 ? (
            <EmptyState
              title={t("noMatch")}
              hint={t("noMatchHint")}
              action={<Button onClick={() => setSearch("")}>{t("clearSearch")}</Button>}
            />
          ) : (
            <VirtualList
              label={t("history")}
              count={shown.length}
              rowHeight={130}
              height="max(calc(100dvh - 300px), 320px)"
              keyOf={(index) => shown[index]?.position ?? index}
              row={(index) => {
                const update = shown[index];
                if (update === undefined) return null;
                return (
                  <UpdateRow
                    update={update}
                    point={points.find(({ id }) => id === pointOf(update)) ?? null}
                    newest={update.position === newest}
                    onRollback={onRollback}
                    onCompare={onCompare}
                    onMessage={onMessage}
                  />
                );
              }}
            />
          )}
        </>
      )}
    </Content>
  );
}

type UpdateProps = Omit<HistoryProps, "data" | "points"> & {
  update: Update;
  point: StatePoint | null;
  newest: boolean;
};

function UpdateRow({ update, point, newest, onRollback, onCompare, onMessage }: UpdateProps) {
  const t = useText(conversations);
  const labelOf = usePointLabel();
  const steps = useMemo(() => stepsOf(update), [update]);
  const id = pointOf(update);
  const { message_id: message, analysis, position, reversible } = update;
  const label = point === null ? t("updateAt", { position }) : labelOf(point);
  return (
    <article className={styles["update"]}>
      <div className={styles["head"]}>
        {message === null ? (
          <strong>{label}</strong>
        ) : (
          <Button type="link" className={styles["link"] ?? ""} onClick={() => onMessage(message)}>
            {label}
          </Button>
        )}
        {!reversible && <Tag>{t("irreversible")}</Tag>}
        {!newest && (
          <span className={styles["actions"]}>
            <Button size="small" icon={<DiffOutlined />} onClick={() => onCompare(id)}>
              {t("compareWithNow")}
            </Button>
            <Button size="small" icon={<RollbackOutlined />} onClick={() => onRollback(id)}>
              {t("rollbackTo")}
            </Button>
          </span>
        )}
      </div>
      {message !== null && analysis !== undefined && analysis !== "" && (
        <p className={styles["analysis"]}>
          <span className={styles["label"]}>{t("analysis")}</span> {analysis}
        </p>
      )}
      <Steps steps={steps} />
    </article>
  );
}
