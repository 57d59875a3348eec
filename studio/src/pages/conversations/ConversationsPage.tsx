import { PlusOutlined } from "@ant-design/icons";
import { App, Button, Input } from "antd";
import { useMemo, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { useCursorList } from "../../api/useCursorList.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Page } from "../../components/Page.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { app } from "../../i18n/texts/app.ts";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./ConversationsPage.module.css";
import { RemoveConversation } from "./RemoveConversation.tsx";

type Conversation = Schemas["Conversation"];

export function Component() {
  const t = useText(conversations);
  const frame = useText(app);
  const { message } = App.useApp();
  const navigate = useNavigate();
  const [params, setParams] = useSearchParams();
  const search = params.get("q") ?? "";
  const wanted = search.trim().toLowerCase();
  const [busy, setBusy] = useState(false);
  const list = useCursorList("conversations", {
    load: async (after, signal) =>
      (await api.get("/api/v1/conversations", { query: { after, limit: wanted === "" ? 50 : 200 }, signal })).data,
    cursorOf: (row: Conversation) => row.conversation_id,
    // What is searched for may be on any page.
    whole: wanted !== "",
  });
  const shown = useMemo(() => list.rows.filter((row) => matches(row, wanted)), [list.rows, wanted]);

  async function create(): Promise<void> {
    setBusy(true);
    try {
      const { data } = await api.post("/api/v1/conversations", {});
      await navigate(`/conversations/${data.conversation_id}`);
    } catch (error) {
      void message.error(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  }

  function look(words: string): void {
    setParams(words === "" ? {} : { q: words }, { replace: true });
  }

  const empty = !list.loading && list.rows.length === 0;
  return (
    <Page
      title={frame("conversations")}
      purpose={t("purpose")}
      loading={list.loading && list.rows.length === 0}
      error={list.rows.length === 0 ? list.error : null}
      onRetry={list.reload}
      actions={
        <Button icon={<PlusOutlined />} loading={busy} onClick={() => void create()}>
          {t("create")}
        </Button>
      }
    >
      {empty ? (
        <EmptyState
          title={t("emptyList")}
          hint={t("emptyListHint")}
          action={
            <Button type="primary" onClick={() => void navigate("/live")}>
              {t("goLive")}
            </Button>
          }
        />
      ) : (
        <>
          <div className={styles["bar"]}>
            <Input.Search
              className={styles["search"] ?? ""}
              aria-label={t("search")}
              placeholder={t("search")}
              allowClear
              value={search}
              onChange={({ target }) => look(target.value)}
            />
            <span role="status" className={styles["count"]}>
              {list.loadingMore && wanted !== ""
                ? t("searching")
                : list.hasMore
                  ? t("foundSoFar", { count: shown.length })
                  : t("found", { count: shown.length })}
            </span>
          </div>
          {shown.length === 0 && !list.loadingMore ? (
            <EmptyState
              title={t("noMatch")}
              hint={t("noMatchHint")}
              action={<Button onClick={() => look("")}>{t("clearSearch")}</Button>}
            />
          ) : (
            <VirtualList
              label={t("list")}
              count={shown.length}
              rowHeight={65}
              height={`min(calc(100dvh - 210px), ${shown.length * 68 + 2}px)`}
              keyOf={(index) => shown[index]?.conversation_id ?? index}
              onEnd={list.more}
              row={(index) => {
                const row = shown[index];
                if (row === undefined) return null;
                return (
                  <Row
                    conversation={row}
                    onRemoved={() =>
                      list.change((rows) => rows.filter((one) => one.conversation_id !== row.conversation_id))
                    }
                  />
                );
              }}
            />
          )}
        </>
      )}
    </Page>
  );
}

function matches({ title, conversation_id: id, metadata }: Conversation, wanted: string): boolean {
  if (wanted === "") return true;
  return `${title ?? ""} ${id} ${metadata === null ? "" : JSON.stringify(metadata)}`.toLowerCase().includes(wanted);
}

function Row({ conversation, onRemoved }: { conversation: Conversation; onRemoved: () => void }) {
  const t = useText(conversations);
  const format = useFormat();
  const { conversation_id: id, title, created } = conversation;
  return (
    <div className={styles["row"]}>
      <div className={styles["words"]}>
        <Link to={`/conversations/${id}`} className={styles["title"] ?? ""}>
          {title ?? t("untitled")}
        </Link>
        <div className={styles["meta"]}>
          <time dateTime={created}>{format.time(created)}</time>
          <code>{id}</code>
        </div>
      </div>
      <RemoveConversation id={id} name={title ?? t("untitled")} onRemoved={onRemoved} />
    </div>
  );
}
