import { useResource } from "../../api/useResource.ts";
import { LongText } from "../../components/LongText.tsx";
import { Content } from "../../components/Page.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Inspect.module.css";
import { MOST_BYTES } from "./large.ts";
import { LargeText } from "./LargeText.tsx";
import { type RecordFile } from "./records/RecordFile.ts";
import { ReplyParts } from "./ReplyParts.tsx";
import { Summary } from "./Summary.tsx";
import { readText } from "./TextInspection.tsx";

type RecordDetailProps = { file: RecordFile; at: number; profile: "strict" | "lenient" };

/** Record of a file, read from it again and inspected by the server. */
export function RecordDetail(props: RecordDetailProps) {
  const t = useText(inspect);
  const { file, at } = props;
  const title = t("record", { line: at + 1 });
  const line = file.part(at);
  return (
    <section className={styles["detail"]} aria-label={title}>
      <h2 className={styles["heading"]}>
        {title} <small className={styles["muted"]}>{file.view().index.idOf(at)}</small>
      </h2>
      {line.size > MOST_BYTES ? (
        <LargeText file={line} name={file.name} kind="record" dialect="auto" />
      ) : (
        <RecordReading {...props} title={title} />
      )}
    </section>
  );
}

function RecordReading({ file, at, profile, title }: RecordDetailProps & { title: string }) {
  const t = useText(inspect);
  const problem = useProblemText();
  const { data, error, loading, reload } = useResource(`${at} ${profile}`, async (signal) => {
    const [line, record] = await Promise.all([file.line(at), file.record(at)]);
    const text = record?.reply ?? null;
    if (text === null) return { line, text, reading: null };
    const dialect = record?.dialect === "" || record === null ? "auto" : record.dialect;
    return { line, text, reading: await readText(text, "reply", { dialect, profile }, signal) };
  });
  if (error?.status === 413) return <LargeText file={file.part(at)} name={file.name} kind="record" dialect="auto" reason={problem.line(error)} />;
  return (
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
  );
}
