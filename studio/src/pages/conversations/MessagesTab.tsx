import { App } from "antd";
import { useEffect, useEffectEvent, useMemo, useState } from "react";
import { addressOf, api } from "../../api/client.ts";
import { followEvents } from "../../api/stream.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Content } from "../../components/Page.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { VirtualList } from "../../components/VirtualList.tsx";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import { type Turn, turnsOf } from "./swipes.ts";
import { TurnRow } from "./TurnRow.tsx";
import { type ConversationData, type Message } from "./useConversation.ts";
import { type Notice, noticesOf, useNotices } from "./useNotices.ts";

type MessagesProps = {
  data: ConversationData;
  /** Message named in the URL. */
  chosen: string | null;
  onCompare: (message: string) => void;
  onState: (message: string) => void;
  onRollback: (message: string) => void;
};

export function MessagesTab({ data, chosen, onCompare, onState, onRollback }: MessagesProps) {
  const t = useText(conversations);
  const { lineOf } = useProblemText();
  const { modal, message: toast } = App.useApp();
  const { messages, updates } = data;
  const turns = useMemo(() => turnsOf(messages.rows), [messages.rows]);
  const changing = useMemo(() => new Set(updates.rows.map(({ message_id: id }) => id)), [updates.rows]);
  // Displayed version of each turn, by the id of its first one; absent: the newest.
  const [versions, setVersions] = useState<ReadonlyMap<string, number>>(new Map());
  const running = messages.rows.find(({ status }) => status === "running")?.message_id ?? null;
  const text = useRunning(running, data);
  const place = chosen === null ? -1 : turns.findIndex((turn) => placeOf(turn, chosen) !== null);

  async function attempt(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      void toast.error(lineOf(error));
    }
  }

  function regenerate(message: Message, later: number): void {
    const begin = () =>
      attempt(async () => {
        await api.post("/api/v1/messages/{id}/regenerate", undefined, { path: { id: message.message_id } });
        setVersions(new Map());
        void toast.info(t("regenerating"));
        data.reload();
      });
    if (later === 0) {
      void begin();
      return;
    }
    modal.confirm({
      title: t("regenerateTitle"),
      content: t("regenerateText", { count: later }),
      okText: t("regenerate"),
      cancelText: t("cancel"),
      onOk: begin,
    });
  }

  function remove(message: Message): void {
    modal.confirm({
      title: t("removeMessageTitle"),
      content: t("removeMessageText"),
      okText: t("remove"),
      okButtonProps: { danger: true },
      cancelText: t("cancel"),
      onOk: () =>
        attempt(async () => {
          await api.remove("/api/v1/messages/{id}", { path: { id: message.message_id } });
          void toast.success(t("messageRemoved"));
          data.reload();
        }),
    });
  }

  return (
    <Content
      loading={messages.loading && messages.rows.length === 0}
      error={messages.rows.length === 0 ? messages.error : null}
      onRetry={messages.reload}
    >
      {turns.length === 0 ? (
        <EmptyState title={t("noMessages")} hint={t("noMessagesHint")} />
      ) : (
        <VirtualList
          label={t("messages")}
          count={turns.length}
          rowHeight={180}
          height="max(calc(100dvh - 240px), 360px)"
          selected={place < 0 ? null : place}
          keyOf={(index) => keyOf(turns[index]) ?? index}
          row={(index) => {
            const turn = turns[index];
            const key = keyOf(turn);
            if (turn === undefined || key === undefined) return null;
            const linked = chosen === null ? null : placeOf(turn, chosen);
            const version = versions.get(key) ?? linked ?? turn.swipes.length - 1;
            return (
              <TurnRow
                turn={turn}
                version={version}
                chosen={chosen}
                changesState={(id) => changing.has(id)}
                streamed={running === null ? null : text}
                onVersion={(next) => setVersions(new Map(versions).set(key, next))}
                onRegenerate={(message) => regenerate(message, turns.length - 1 - index)}
                onRemove={remove}
                onCompare={onCompare}
                onState={onState}
                onRollback={onRollback}
              />
            );
          }}
        />
      )}
    </Content>
  );
}

const keyOf = (turn: Turn<Message> | undefined): string | undefined => turn?.swipes[0]?.message.message_id;

/** Version of a turn that a message is or follows. */
function placeOf(turn: Turn<Message>, id: string): number | null {
  const at = turn.swipes.findIndex(
    ({ message, after }) => message.message_id === id || after.some((one) => one.message_id === id),
  );
  return at < 0 ? null : at;
}

/** Follows a running message, and reloads the conversation when it ends; returns the text so far. */
function useRunning(id: string | null, data: ConversationData): string {
  const { show } = useNotices();
  const [streamed, setStreamed] = useState<{ id: string; text: string } | null>(null);
  const ended = useEffectEvent((notices: readonly Notice[]) => {
    show(notices);
    data.reload();
  });

  useEffect(() => {
    if (id === null) return undefined;
    const stream = followEvents(addressOf("/api/v1/messages/{id}/events", { id }), {
      onEvent: ({ event: { event, data: body } }) => {
        if (event === "final_delta" || event === "content_delta") {
          const delta = "text" in body ? body.text : "delta" in body ? body.delta : "";
          setStreamed((before) => ({ id, text: (before?.id === id ? before.text : "") + delta }));
        }
        if (event === "completed") ended(noticesOf("metadata" in body ? body.metadata : null));
        if (event === "error") ended([]);
      },
    });
    return () => stream.close();
  }, [id]);
  return streamed?.id === id ? streamed.text : "";
}
