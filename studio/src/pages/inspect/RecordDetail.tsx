import { useResource } from "../../api/useResource.ts";
import { LongText } from "../../components/LongText.tsx";
import { Content } from "../../components/Page.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Inspect.module.css";
import { type RecordFile } from "./records/RecordFile.ts";
import { ReplyParts } from "./ReplyParts.tsx";
import { Summary } from "./Summary.tsx";
import { readText } from "./TextInspection.tsx";

/** One record of a file: read again from it, and looked into by the server. */
export function RecordDetail({ file, at, profile }: { file: RecordFile; at: number; profile: "strict" | "lenient" }) {
  const t = useText(inspect);
  const { data, error, loading, reload } = useResource(`${at} ${profile}`, async (signal) => {
    const [line, record] = await Promise.all([file.line(at), file.record(at)]);
    const text = record?.reply ?? null;
    if (text === null) return { line, text, reading: null };
    const dialect = record?.dialect === "" || record === null ? "auto" : record.dialect;
    return { line, text, reading: await readText(text, "reply", { dialect, profile }, signal) };
  });
  const title = t("record", { line: at + 1 });
  return (
    <section className={styles["detail"]} aria-label={title}>
      <h2 className={styles["heading"]}>
        {title} {data !== null && <small className={styles["muted"]}>{file.view().index.idOf(at)}</small>}
      </h2>
      <Content loading={loading && data === null} error={error} onRetry={reload}>
        {data?.reading && (
          <>
            <Summary reading={data.reading} kind="reply" />
            <ReplyParts text={data.text} reading={data.reading} height={480} />
          </>
        )}
        {data?.reading === null && (
          <>
            <p className={styles["muted"]}>{t("recordBroken")}</p>
            <LongText text={data.line} label={title} maxHeight={320} />
          </>
        )}
      </Content>
    </section>
  );
}
