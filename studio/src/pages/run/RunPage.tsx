import { PlusOutlined } from "@ant-design/icons";
import { Button, Input, Select, Tag } from "antd";
import { Link, useSearchParams } from "react-router";
import { api } from "../../api/client.ts";
import { useCursorList } from "../../api/useCursorList.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { ErrorState } from "../../components/ErrorState.tsx";
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
const PAGE = 200;

/** Address without the parameters of a new run. */
function withoutStart(address: URLSearchParams): URLSearchParams {
  const next = new URLSearchParams(address);
  next.delete("new");
  next.delete("version");
  return next;
}

/** Lists the runs, and starts new ones. */
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
  const runs = useCursorList<Dialogue>(`dialogues ${script ?? ""} ${status ?? ""}`, {
    load: async (after, signal) =>
      (await api.get("/api/v1/dialogues", { signal, query: { limit: PAGE, script_id: script, status, after } })).data,
    cursorOf: ({ dialogue_id: id }) => id,
    // The server does not search runs: a search loads them all.
    atLeast: words === "" ? 0 : Infinity,
  });
  const shown = found(runs.rows, scripts.data, words);

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
      loading={(runs.loading && runs.rows.length === 0) || (scripts.loading && scripts.data === null)}
      error={runs.rows.length === 0 ? runs.error : null}
      onRetry={runs.reload}
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
      {runs.rows.length > 0 && runs.error !== null && <ErrorState error={runs.error} onRetry={runs.reload} />}
      {words !== "" && runs.loadingMore && (
        <p role="status" className={styles["searching"]}>
          {t("searching", { count: runs.rows.length })}
        </p>
      )}
      {runs.rows.length === 0 ? (
        <EmptyState title={t("noRuns")} hint={t("noRunsHint")} />
      ) : shown.length === 0 ? (
        !runs.hasMore && <EmptyState title={t("noMatch")} />
      ) : (
        <VirtualList
          label={t("runs")}
          count={shown.length}
          rowHeight={60}
          height="calc(100vh - 260px)"
          fit
          keyOf={(index) => shown[index]?.dialogue_id ?? index}
          onEnd={runs.more}
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
                  {dialogue.created !== undefined && (
                    <time dateTime={dialogue.created}>{t("begun", { time: format.time(dialogue.created) })}</time>
                  )}
                  {dialogue.changed !== undefined && dialogue.changed !== dialogue.created && (
                    <time dateTime={dialogue.changed}>{t("changedAt", { time: format.time(dialogue.changed) })}</time>
                  )}
                  <code title={dialogue.dialogue_id}>{dialogue.dialogue_id.slice(-6)}</code>
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
