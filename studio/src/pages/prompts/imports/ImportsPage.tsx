import { type ReactNode } from "react";
import { Link } from "react-router";
import { api } from "../../../api/client.ts";
import { type Schemas } from "../../../api/types.ts";
import { type CursorList, useCursorList } from "../../../api/useCursorList.ts";
import { EmptyState } from "../../../components/EmptyState.tsx";
import { Content } from "../../../components/Page.tsx";
import { Section } from "../../../components/Section.tsx";
import { VirtualList } from "../../../components/VirtualList.tsx";
import { imports } from "../../../i18n/texts/imports.ts";
import { useFormat, useText } from "../../../i18n/useText.ts";
import { PromptsFrame } from "../PromptsFrame.tsx";
import { DropZone } from "./DropZone.tsx";
import styles from "./ImportsPage.module.css";
import { RemoveImport } from "./RemoveImport.tsx";

export function Component() {
  const t = useText(imports);
  const cards = useCursorList<Schemas["Card"]>("cards", {
    load: async (after, signal) => (await api.get("/api/v1/cards", { query: { after }, signal })).data,
    cursorOf: (row) => row.card_id,
  });
  const books = useCursorList<Schemas["Lorebook"]>("lorebooks", {
    load: async (after, signal) => (await api.get("/api/v1/lorebooks", { query: { after }, signal })).data,
    cursorOf: (row) => row.lorebook_id,
  });
  return (
    <PromptsFrame purpose={t("purpose")}>
      <DropZone
        onImported={() => {
          cards.reload();
          books.reload();
        }}
      />
      <div className={styles["columns"]}>
        <Section title={t("cards")}>
          <List
            label={t("cards")}
            empty={t("noCards")}
            list={cards}
            row={(card) => (
              <Row
                kind="cards"
                id={card.card_id}
                row={card}
                onRemoved={() => cards.change((rows) => rows.filter((one) => one.card_id !== card.card_id))}
              />
            )}
          />
        </Section>
        <Section title={t("lorebooks")}>
          <List
            label={t("lorebooks")}
            empty={t("noLorebooks")}
            list={books}
            row={(book) => (
              <Row
                kind="lorebooks"
                id={book.lorebook_id}
                row={book}
                onRemoved={() => books.change((rows) => rows.filter((one) => one.lorebook_id !== book.lorebook_id))}
              />
            )}
          />
        </Section>
      </div>
    </PromptsFrame>
  );
}

type ListProps<T> = { label: string; empty: string; list: CursorList<T>; row: (row: T) => ReactNode };

function List<T>({ label, empty, list, row }: ListProps<T>) {
  const t = useText(imports);
  const { rows } = list;
  return (
    <Content
      loading={list.loading && rows.length === 0}
      error={rows.length === 0 ? list.error : null}
      onRetry={list.reload}
    >
      {rows.length === 0 ? (
        <EmptyState title={empty} hint={t("dropFirst")} />
      ) : (
        <VirtualList
          label={label}
          count={rows.length}
          rowHeight={66}
          height="calc(100dvh - 380px)"
          fit
          onEnd={list.more}
          row={(index) => {
            const one = rows[index];
            return one === undefined ? null : row(one);
          }}
        />
      )}
    </Content>
  );
}

type RowProps = {
  kind: "cards" | "lorebooks";
  id: string;
  row: { name: string; file: string; version: string; entry_count: number; created: string };
  onRemoved: () => void;
};

function Row({ kind, id, row, onRemoved }: RowProps) {
  const t = useText(imports);
  const format = useFormat();
  return (
    <div className={styles["row"]}>
      <div className={styles["words"]}>
        <Link className={styles["name"] ?? ""} to={`/prompts/${kind}/${id}`}>
          {row.name}
        </Link>
        <div className={styles["meta"]}>
          <span>{row.file}</span>
          <span>{t("entries", { count: row.entry_count })}</span>
          <time dateTime={row.created}>{format.time(row.created)}</time>
        </div>
      </div>
      <RemoveImport kind={kind} id={id} name={row.name} onRemoved={onRemoved} />
    </div>
  );
}
