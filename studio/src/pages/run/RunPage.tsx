import { PlusOutlined } from "@ant-design/icons";
import { Button, Input, Select, Tag } from "antd";
import { useState } from "react";
import { Link, useSearchParams } from "react-router";
import { api } from "../../api/client.ts";
import { useResource } from "../../api/useResource.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Page } from "../../components/Page.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { app } from "../../i18n/texts/app.ts";
import { run } from "../../i18n/texts/run.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { found } from "./filter.ts";
import { type Dialogue } from "./model.ts";
import styles from "./RunPage.module.css";
import { nameOf, useScripts } from "./scripts.ts";
import { StartForm } from "./StartForm.tsx";
import { StatusTag } from "./StatusTag.tsx";

const STATUSES = ["active", "awaiting_ack", "awaiting_answer", "completed", "failed"] as const;
const PAGE = 100;

/** Further pages, and the first one that they follow. */
type More = { readonly of: object | null; readonly rows: readonly Dialogue[]; readonly hasMore: boolean };

/** An address without what a new run begins with. */
function withoutStart(address: URLSearchParams): URLSearchParams {
  const next = new URLSearchParams(address);
  next.delete("new");
  next.delete("version");
  return next;
}

/** The runs that there are, and the way to a new one. */
export function Component() {
  const t = useText(run);
  const frame = useText(app);
  const format = useFormat();
  const [params, setParams] = useSearchParams();
  const script = params.get("script");
  const status = params.get("status");
  const words = params.get("q") ?? "";
  const starting = params.has("new");
  const version = Number.parseInt(params.get("version") ?? "", 10);
  const scripts = useScripts();
  const query = { limit: PAGE, script_id: script, status };
  const first = useResource(`dialogues ${script ?? ""} ${status ?? ""}`, async (signal) => {
    const { data } = await api.get("/api/v1/dialogues", { signal, query });
    return data;
  });
  const [more, setMore] = useState<More>({ of: null, rows: [], hasMore: false });
  // Further pages are of the first one: another one forgets them.
  const { rows, hasMore } = more.of === first.data ? more : { rows: [], hasMore: first.data?.has_more ?? false };
  const all = [...(first.data?.data ?? []), ...rows];
  const shown = found(all, scripts.data, words);

  const set = (name: string, value: string | null) =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        if (value === null) next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );

  async function loadMore() {
    const after = all.at(-1)?.dialogue_id;
    if (!hasMore || after === undefined) return;
    const of = first.data;
    setMore({ of, rows, hasMore: false });
    const { data } = await api.get("/api/v1/dialogues", { query: { ...query, after } });
    setMore({ of, rows: [...rows, ...data.data], hasMore: data.has_more });
  }

  const begin = (
    <Button type="primary" icon={<PlusOutlined />} onClick={() => set("new", "")}>
      {t("newRun")}
    </Button>
  );
  return (
    <Page
      title={frame("run")}
      purpose={t("purpose")}
      actions={begin}
      loading={(first.loading && first.data === null) || (scripts.loading && scripts.data === null)}
      error={first.data === null ? first.error : null}
      onRetry={first.reload}
    >
      <div className={styles["filters"]}>
        <Input.Search
          allowClear
          aria-label={t("search")}
          placeholder={t("search")}
          value={words}
          onChange={(event) => set("q", event.target.value === "" ? null : event.target.value)}
        />
        <Select
          aria-label={t("script")}
          value={script ?? ""}
          onChange={(value) => set("script", value === "" ? null : value)}
          options={[{ value: "", label: t("allScripts") }, ...(scripts.data ?? []).map((one) => ({ value: one.script_id, label: one.name }))]}
        />
        <Select
          aria-label={t("status")}
          value={status ?? ""}
          onChange={(value) => set("status", value === "" ? null : value)}
          options={[{ value: "", label: t("anyStatus") }, ...STATUSES.map((value) => ({ value, label: t(value) }))]}
        />
      </div>
      {all.length === 0 ? (
        <EmptyState title={t("noRuns")} hint={t("noRunsHint")} />
      ) : shown.length === 0 ? (
        <EmptyState title={t("noMatch")} />
      ) : (
        <VirtualList
          label={t("runs")}
          count={shown.length}
          rowHeight={60}
          height="calc(100vh - 260px)"
          keyOf={(index) => shown[index]?.dialogue_id ?? index}
          onEnd={() => void loadMore()}
          row={(index) => {
            const dialogue = shown[index];
            if (dialogue === undefined) return null;
            return (
              <Link className={styles["run"] ?? ""} to={`/run/${dialogue.dialogue_id}`}>
                <span className={styles["name"]}>
                  {nameOf(scripts.data, dialogue.script_id)} · {dialogue.session}
                </span>
                <span className={styles["facts"]}>
                  {dialogue.forked_from != null && <Tag>{t("forked")}</Tag>}
                  <StatusTag status={dialogue.status} />
                  <span>{t("version", { version: dialogue.version })}</span>
                  {dialogue.changed !== undefined && <time dateTime={dialogue.changed}>{format.time(dialogue.changed)}</time>}
                </span>
              </Link>
            );
          }}
        />
      )}
      {starting && (
        <StartForm
          scripts={scripts.data ?? []}
          scriptId={script}
          version={Number.isNaN(version) ? null : version}
          onClose={() => setParams(withoutStart, { replace: true })}
        />
      )}
    </Page>
  );
}
