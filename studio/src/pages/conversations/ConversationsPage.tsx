import { PlusOutlined } from "@ant-design/icons";
import { App, Button, Input } from "antd";
import { useState } from "react";
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
import { useSettled } from "./useSettled.ts";

type Conversation = Schemas["Conversation"];

/** Most characters of a search text. */
const LONGEST = 200;
/** Typing pause before a search, in milliseconds. */
const PAUSE_MS = 250;

export function Component() {
  const t = useText(conversations);
  const frame = useText(app);
  const { message } = App.useApp();
  const navigate = useNavigate();
  const [params, setParams] = useSearchParams();
  const search = params.get("q") ?? "";
  const wanted = useSettled(search.trim().slice(0, LONGEST), PAUSE_MS);
  const [busy, setBusy] = useState(false);
  const list = useCursorList(`conversations ${wanted}`, {
    load: async (after, signal) => {
      const query = wanted === "" ? { after, limit: 50 } : { after, limit: 50, q: wanted };
      return (await api.get("/api/v1/conversations", { query, signal })).data;
    },
    cursorOf: (row: Conversation) => row.conversation_id,
    // One request searches only a part of the messages, and may find nothing there.
    atLeast: wanted === "" ? 0 : 50,
  });
  const searching = list.loading || list.loadingMore || wanted !== search.trim().slice(0, LONGEST);
  const shown = list.rows;

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

  const empty = wanted === "" && search === "" && !list.loading && list.rows.length === 0;
  return (
    <Page
      title={frame("conversations")}
      purpose={t("purpose")}
      loading={list.loading && list.rows.length === 0 && search === ""}
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
              {searching && search !== ""
                ? t("searching")
                : list.hasMore
                  ? t("foundSoFar", { count: shown.length })
                  : t("found", { count: shown.length })}
            </span>
          </div>
          {shown.length === 0 && !searching ? (
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
              height="calc(100dvh - 210px)"
              fit
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

function Row({ conversation, onRemoved }: { conversation: Conversation; onRemoved: () => void }) {
  const t = useText(conversations);
  const format = useFormat();
  const { conversation_id: id, title, created, found } = conversation;
  return (
    <div className={styles["row"]}>
      <div className={styles["words"]}>
        <Link to={`/conversations/${id}`} className={styles["title"] ?? ""}>
          {title ?? t("untitled")}
        </Link>
        <div className={styles["meta"]}>
          <time dateTime={created}>{format.time(created)}</time>
          <code>{id}</code>
          {found !== undefined && (found.in === "request" || found.in === "answer") && (
            <span className={styles["excerpt"]}>“{found.excerpt}”</span>
          )}
        </div>
      </div>
      <RemoveConversation id={id} name={title ?? t("untitled")} onRemoved={onRemoved} />
    </div>
  );
}
