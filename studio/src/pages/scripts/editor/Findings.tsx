import { Button } from "antd";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { CodeWords } from "../../../components/CodeWords.tsx";
import { VirtualList } from "../../../components/VirtualList.tsx";
import { type ScriptFinding } from "../requests.ts";
import styles from "./Editor.module.css";

/** Findings of the server, each with a link to its place. */
export function Findings({ findings, onGo }: { findings: readonly ScriptFinding[]; onGo: (finding: ScriptFinding) => void }) {
  const t = useText(scripts);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  return (
    <section aria-label={t("findings")} className={styles["findings"]}>
      <p role="status" className={styles["muted"]}>
        {t("findings")}
        {": "}
        {t("errorsAnd", { errors, warnings: findings.length - errors })}
      </p>
      {findings.length > 0 && (
        <VirtualList
          label={t("findings")}
          count={findings.length}
          height={240}
          fit
          rowHeight={45}
          row={(index) => {
            const finding = findings[index];
            if (finding === undefined) return null;
            return (
              <div className={styles["finding"]}>
                <Button size="small" type="link" onClick={() => onGo(finding)}>
                  {t("lineIs", { line: String(finding.line) })}
                </Button>
                <span className={styles[finding.severity]}>
                  <CodeWords text={finding.message} />
                </span>
                <code className={styles["muted"]}>{finding.code}</code>
              </div>
            );
          }}
        />
      )}
    </section>
  );
}
