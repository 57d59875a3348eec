import { type ReactNode } from "react";
import { Badge } from "../../components/reply/Badge.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Inspect.module.css";
import { type Reading } from "./TextInspection.tsx";

type SummaryProps = { reading: Reading; kind: "reply" | "transcript"; actions?: ReactNode };

/** Verdict on a text, in one line. */
export function Summary({ reading, kind, actions }: SummaryProps) {
  const t = useText(inspect);
  const { contract, verdict, findings } = reading;
  const count = (severity: string) => findings.filter((finding) => finding.severity === severity).length;
  const repairs = findings.filter(({ repair }) => repair !== null).length;
  return (
    <div className={styles["summary"]} role="status">
      <Badge tone={verdict === "pass" ? "success" : "danger"}>{t(verdict)}</Badge>
      <span>{t(kind === "reply" ? "kindReply" : "kindTranscript")}</span>
      <Badge>{contract}</Badge>
      <span className={styles["muted"]}>
        {[
          t("errors", { count: count("error") }),
          t("warnings", { count: count("warning") }),
          t("notes", { count: count("info") }),
          t("repairs", { count: repairs }),
        ].join(" · ")}
      </span>
      <span className={styles["spread"]}>{actions}</span>
    </div>
  );
}
