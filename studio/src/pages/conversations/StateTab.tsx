import { Input, Select } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { useResource } from "../../api/useResource.ts";
import { Content } from "../../components/Page.tsx";
import { Section } from "../../components/Section.tsx";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import { type Draft, pointOf } from "./operations.ts";
import { OperationsForm } from "./OperationsForm.tsx";
import { type StatePoint } from "./points.ts";
import styles from "./StateTab.module.css";
import { type Json, type TreeRow } from "./stateTree.ts";
import { StateTree } from "./StateTree.tsx";
import { type ConversationData } from "./useConversation.ts";
import { usePointLabel } from "./usePointLabel.ts";

type StateProps = {
  id: string;
  data: ConversationData;
  points: readonly StatePoint[];
  /** Displayed moment; `null` is now. */
  at: string | null;
  onAt: (at: string | null) => void;
};

const NOW = "now";
const EMPTY: Draft = { op: "SET", path: "", value: "" };

export function StateTab({ id, data, points, at, onAt }: StateProps) {
  const t = useText(conversations);
  const labelOf = usePointLabel();
  const [search, setSearch] = useState("");
  const [drafts, setDrafts] = useState<readonly Draft[]>([EMPTY]);
  const earlier = useResource(at === null ? null : `state ${id} ${at}`, async (signal) => {
    const { data: found } = await api.get("/api/v1/conversations/{id}/state", { path: { id }, query: { at }, signal });
    return found as { state: Json };
  });
  const shown = at === null ? data.state : earlier;

  function edit({ path, kind, value }: TreeRow): void {
    const draft: Draft =
      kind === "list"
        ? { op: "PUSH", path, value: "" }
        : { op: "SET", path, value: typeof value === "string" ? value : JSON.stringify(value) };
    setDrafts((before) => [...before.filter((one) => one.path !== "" || one.value !== ""), draft]);
  }

  return (
    <div className={styles["columns"]}>
      <div className={styles["tree"]}>
        <div className={styles["bar"]}>
          <Input.Search
            aria-label={t("searchState")}
            placeholder={t("searchState")}
            allowClear
            value={search}
            onChange={({ target }) => setSearch(target.value)}
          />
          <Select
            aria-label={t("stateOf")}
            showSearch={{ optionFilterProp: "label" }}
            value={at ?? NOW}
            options={[
              { value: NOW, label: t("now") },
              ...points.map((point) => ({ value: point.id, label: labelOf(point) })).reverse(),
            ]}
            onChange={(value: string) => onAt(value === NOW ? null : value)}
          />
        </div>
        <Content loading={shown.loading && shown.data === null} error={shown.error} onRetry={shown.reload}>
          <StateTree state={shown.data?.state ?? {}} search={search} onEdit={at === null ? edit : undefined} />
        </Content>
      </div>
      <Section title={t("operate")}>
        <OperationsForm
          id={id}
          drafts={drafts}
          onDrafts={setDrafts}
          undoTo={last(data)}
          etag={data.state.data?.etag ?? null}
          onDone={() => {
            onAt(null);
            data.reloadState();
          }}
        />
      </Section>
    </div>
  );
}

/** Target of an undo of the next change: the newest update, or the beginning. Unknown until all updates are loaded. */
function last({ updates }: ConversationData): string | null | undefined {
  if (updates.loading || updates.hasMore || updates.error !== null) return undefined;
  const update = updates.rows.at(-1);
  return update === undefined ? null : pointOf(update);
}
