import { Link } from "react-router";
import { type Finding } from "../../api/types.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import { CodeWords } from "../CodeWords.tsx";
import { VirtualList } from "../VirtualList.tsx";
import { Badge, TONES } from "./Badge.tsx";
import styles from "./lists.module.css";

type FindingListProps = {
  findings: readonly Finding[];
  selected?: number | null;
  onSelect?: (index: number) => void;
  height?: number | string;
  /** True while more findings may arrive. */
  running?: boolean;
};

/** Findings of a reply, with repair and rule. */
export function FindingList({ findings, selected = null, onSelect, height = 420, running = false }: FindingListProps) {
  const t = useText(reply);
  if (findings.length === 0) return <p className={styles["none"]}>{t(running ? "noFindingsYet" : "noFindings")}</p>;
  return (
    <VirtualList
      label={t("findings")}
      count={findings.length}
      rowHeight={88}
      height={height}
      selected={selected}
      row={(index) => {
        const finding = findings[index];
        if (finding === undefined) return null;
        return (
          <FindingRow
            finding={finding}
            active={index === selected}
            onSelect={onSelect === undefined ? undefined : () => onSelect(index)}
          />
        );
      }}
    />
  );
}

type FindingRowProps = { finding: Finding; active: boolean; onSelect: (() => void) | undefined };

function FindingRow({ finding, active, onSelect }: FindingRowProps) {
  const t = useText(reply);
  return (
    // The button inside does the same by keyboard.
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions
    <div className={`${styles["finding"] ?? ""} ${active ? (styles["active"] ?? "") : ""}`} onClick={onSelect}>
      <div className={styles["head"]}>
        <Badge tone={TONES[finding.severity]}>{t(finding.severity)}</Badge>
        {onSelect === undefined ? (
          <span className={styles["code"]}>{finding.code}</span>
        ) : (
          <button
            type="button"
            className={styles["code"]}
            aria-pressed={active}
            onClick={(click) => {
              click.stopPropagation();
              onSelect();
            }}
          >
            {finding.code}
          </button>
        )}
        <span className={styles["where"]}>{t("line", { line: finding.line, column: finding.column })}</span>
      </div>
      <div className={styles["message"]}>
        <CodeWords text={finding.message} />
      </div>
      <div className={styles["head"]}>
        <span className={finding.repair === null ? styles["where"] : styles["repair"]} style={{ marginLeft: 0 }}>
          <CodeWords text={finding.repair === null ? t("noRepair") : t("repair", { repair: finding.repair })} />
        </span>
        <Link
          className={styles["where"] ?? ""}
          to={`/inspect/rules/${encodeURIComponent(finding.code)}`}
          onClick={(click) => click.stopPropagation()}
        >
          {t("aboutRule", { rule: finding.rule })}
        </Link>
      </div>
    </div>
  );
}
