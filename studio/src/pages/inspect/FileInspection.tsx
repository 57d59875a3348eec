import { Alert, Button, Progress } from "antd";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Badge } from "../../components/reply/Badge.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { ExportMenu } from "./ExportMenu.tsx";
import { Filters } from "./Filters.tsx";
import styles from "./Inspect.module.css";
import { RecordDetail } from "./RecordDetail.tsx";
import { RecordTable } from "./RecordTable.tsx";
import { type CheckedText } from "./records/exports.ts";
import { filtered, type RecordFilter, rulesOf, statesOf } from "./records/filter.ts";
import { type RecordFile, type Work } from "./records/RecordFile.ts";
import { RuleCounts } from "./RuleCounts.tsx";

/** File of records: its table, the rules that they break, and one record in detail. */
export function FileInspection({ file, profile }: { file: RecordFile; profile: "strict" | "lenient" }) {
  const t = useText(inspect);
  const format = useFormat();
  const { lineOf } = useProblemText();
  const { index, version, work, error, refused, whole } = useSyncExternalStore(file.subscribe, file.view);
  const [filter, setFilter] = useState<RecordFilter>({});
  const [chosen, setChosen] = useState<number | null>(null);

  useEffect(() => {
    file.read();
    return () => file.cancel();
  }, [file]);

  // The index is one object that grows; its version changes each time.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const rows = useMemo(() => filtered(index, filter), [index, version, filter]);
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const rules = useMemo(() => rulesOf(index, rows), [index, version, rows]);
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const states = useMemo(() => statesOf(index), [index, version]);

  async function* texts(): AsyncGenerator<CheckedText> {
    for (const at of rows) {
      const state = index.stateOf(at);
      if (state === "unchecked" || state === "unreadable") continue;
      const findings = index.countOf(at) === 0 ? [] : await file.findings(at);
      yield {
        record: at + 1, id: index.idOf(at), model: index.modelOf(at), contract: index.dialectOf(at), verdict: state, findings,
      };
    }
  }

  if (whole && index.size === 0) return <EmptyState title={t("noRecords")} />;
  return (
    <>
      <div className={styles["summary"]}>
        <strong>{file.name}</strong>
        <span className={styles["muted"]}>{format.bytes(file.file.size)}</span>
        <span role="status">{t("recordCount", { shown: rows.length, count: index.size })}</span>
        {states.fail > 0 && <Badge tone="danger">{`${t("fail")} ${format.number(states.fail)}`}</Badge>}
        {states.pass > 0 && <Badge tone="success">{`${t("pass")} ${format.number(states.pass)}`}</Badge>}
        {states.unchecked > 0 && <Badge>{`${t("unchecked")} ${format.number(states.unchecked)}`}</Badge>}
        {states.unreadable > 0 && <Badge tone="warning">{`${t("unreadable")} ${format.number(states.unreadable)}`}</Badge>}
        <span className={styles["spread"]}>
          <Button disabled={work !== null || rows.length === 0} onClick={() => void file.check(rows, profile)}>
            {t("checkShown", { count: rows.length })}
          </Button>
          <ExportMenu name={file.name} texts={texts} disabled={work !== null} />
        </span>
      </div>
      {work !== null && <WorkBar work={work} onCancel={() => file.cancel()} />}
      {error !== null && <Alert type="error" showIcon title={t("fileFailed")} description={lineOf(error)} />}
      {refused !== null && (
        <Alert
          type="warning"
          showIcon
          role="alert"
          title={t("refused", { count: refused.count })}
          description={t("refusedFirst", { line: refused.at + 1, reason: lineOf(refused.error) })}
        />
      )}
      {!whole && work === null && index.size > 0 && <Alert type="info" showIcon title={t("incomplete")} />}
      <Filters index={index} version={version} filter={filter} rules={rules} onChange={setFilter} />
      <div className={styles["file"]}>
        <div className={styles["parts"]}>
          {rows.length === 0 && index.size > 0 ? (
            <EmptyState title={t("noMatch")} action={<Button onClick={() => setFilter({})}>{t("clearFilters")}</Button>} />
          ) : (
            <RecordTable index={index} rows={rows} chosen={chosen} onChoose={setChosen} />
          )}
        </div>
        <RuleCounts rules={rules} chosen={filter.rule} onChoose={(rule) => setFilter({ ...filter, rule })} />
      </div>
      {chosen === null ? (
        index.size > 0 && <p className={styles["muted"]}>{t("chooseRecord")}</p>
      ) : (
        <RecordDetail key={chosen} file={file} at={chosen} profile={profile} />
      )}
    </>
  );
}

function WorkBar({ work, onCancel }: { work: Work; onCancel: () => void }) {
  const t = useText(inspect);
  const format = useFormat();
  const { name, done, of } = work;
  const shown = name === "reading" ? format.bytes : (value: number) => format.number(value);
  return (
    <div className={styles["work"]} role="status">
      <span>{t(name, { done: shown(done), of: shown(of) })}</span>
      <Progress
        percent={of === 0 ? 100 : Math.floor((done / of) * 100)}
        showInfo={false}
        size="small"
        aria-label={t("progress")}
      />
      <Button size="small" onClick={onCancel}>
        {t("cancel")}
      </Button>
    </div>
  );
}
