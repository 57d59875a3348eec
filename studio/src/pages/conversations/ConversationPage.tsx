import { ArrowLeftOutlined, DownloadOutlined, EditOutlined } from "@ant-design/icons";
import { App, Button } from "antd";
import { useState } from "react";
import { Link, useNavigate, useParams, useSearchParams } from "react-router";
import { addressOf, send } from "../../api/client.ts";
import { download } from "../../components/download.ts";
import { Page } from "../../components/Page.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import { CompareTab } from "./CompareTab.tsx";
import styles from "./ConversationPage.module.css";
import { HistoryTab } from "./HistoryTab.tsx";
import { MessagesTab } from "./MessagesTab.tsx";
import { pointsOf } from "./points.ts";
import { RemoveConversation } from "./RemoveConversation.tsx";
import { RenameDialog } from "./RenameDialog.tsx";
import { RollbackDialog } from "./RollbackDialog.tsx";
import { SchemaTab } from "./SchemaTab.tsx";
import { StateTab } from "./StateTab.tsx";
import { wordsOf } from "./swipes.ts";
import { useConversation } from "./useConversation.ts";

const TABS = [
  ["messages", "tabMessages"],
  ["state", "tabState"],
  ["history", "tabHistory"],
  ["compare", "tabCompare"],
  ["schema", "tabSchema"],
] as const;

export function Component() {
  const { id = "" } = useParams();
  // State of one conversation is not kept for another.
  return <ConversationPage key={id} id={id} />;
}

function ConversationPage({ id }: { id: string }) {
  const t = useText(conversations);
  const { lineOf } = useProblemText();
  const { message } = App.useApp();
  const navigate = useNavigate();
  const [params, setParams] = useSearchParams();
  const [renaming, setRenaming] = useState(false);
  const [target, setTarget] = useState<string | null | undefined>(undefined);
  const data = useConversation(id);
  const { head, messages, updates } = data;
  const [tab] = TABS.find(([name]) => name === params.get("tab")) ?? TABS[0];
  const first = head.data?.messages?.[0];
  // A conversation without a title is named by its first message.
  const said = first === undefined ? "" : wordsOf(first.request).trim().slice(0, 80);
  const title = head.data?.title ?? (head.data === null ? id : said === "" ? t("untitled") : said);
  const points = pointsOf(messages.rows, updates.rows);

  /** Changes the URL, so that it restores the view. */
  function show(change: Readonly<Record<string, string | null>>): void {
    const next = new URLSearchParams(params);
    for (const [name, value] of Object.entries(change)) {
      if (value === null) next.delete(name);
      else next.set(name, value);
    }
    setParams(next, { replace: true });
  }

  async function exportAll(): Promise<void> {
    try {
      const response = await send(addressOf("/api/v1/conversations/{id}/export", { id }));
      download(`${id}.jsonl`, await response.blob());
    } catch (error) {
      void message.error(lineOf(error));
    }
  }

  return (
    <Page
      title={title}
      purpose={
        <Link to="/conversations">
          <ArrowLeftOutlined aria-hidden="true" /> {t("back")}
        </Link>
      }
      loading={head.loading && head.data === null}
      error={head.data === null ? head.error : null}
      onRetry={data.reload}
      actions={
        head.data === null ? undefined : (
          <>
            <Button icon={<EditOutlined />} onClick={() => setRenaming(true)}>
              {t("rename")}
            </Button>
            <Button icon={<DownloadOutlined />} onClick={() => void exportAll()}>
              {t("exportAll")}
            </Button>
            <RemoveConversation text id={id} name={title} onRemoved={() => void navigate("/conversations")} />
          </>
        )
      }
    >
      <nav className={styles["tabs"]} aria-label={t("parts")}>
        {TABS.map(([name, label]) => (
          <Link
            key={name}
            replace
            to={name === "messages" ? "?" : `?tab=${name}`}
            className={styles["tab"] ?? ""}
            aria-current={name === tab ? "page" : undefined}
          >
            {t(label)}
          </Link>
        ))}
      </nav>
      {tab === "messages" && (
        <MessagesTab
          data={data}
          chosen={params.get("message")}
          onCompare={(from) => show({ tab: "compare", from, to: null })}
          onState={(at) => show({ tab: "state", at })}
          onRollback={setTarget}
        />
      )}
      {tab === "state" && (
        <StateTab id={id} data={data} points={points} at={params.get("at")} onAt={(at) => show({ at })} />
      )}
      {tab === "history" && (
        <HistoryTab
          data={data}
          points={points}
          onRollback={setTarget}
          onCompare={(from) => show({ tab: "compare", from, to: null })}
          onMessage={(message_id) => show({ tab: null, message: message_id })}
        />
      )}
      {tab === "compare" && (
        <CompareTab
          id={id}
          points={points}
          version={updates.rows.length}
          from={params.get("from")}
          to={params.get("to")}
          onChange={(from, to) => show({ from, to })}
        />
      )}
      {tab === "schema" && <SchemaTab id={id} state={data.state} />}
      {renaming && head.data !== null && (
        <RenameDialog conversation={head.data} onClose={() => setRenaming(false)} onRenamed={head.replace} />
      )}
      {target !== undefined && (
        <RollbackDialog
          id={id}
          target={target}
          points={points}
          updates={updates.rows}
          etag={data.state.data?.etag ?? null}
          onClose={() => setTarget(undefined)}
          onDone={data.reloadState}
        />
      )}
    </Page>
  );
}
