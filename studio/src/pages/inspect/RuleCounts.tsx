import { Link } from "react-router";
import { Badge, TONES } from "../../components/reply/Badge.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Inspect.module.css";
import { type RuleCount } from "./records/filter.ts";

type RuleCountsProps = {
  rules: readonly RuleCount[];
  chosen: string | undefined;
  onChoose: (rule: string | undefined) => void;
};

/** Rules that records break, by frequency; choosing one shows only its records. */
export function RuleCounts({ rules, chosen, onChoose }: RuleCountsProps) {
  const t = useText(inspect);
  const texts = useText(reply);
  if (rules.length === 0) return <p className={styles["muted"]}>{texts("noFindingsYet")}</p>;
  return (
    <VirtualList
      label={t("byRule")}
      count={rules.length}
      rowHeight={60}
      height={420}
      row={(index) => {
        const rule = rules[index];
        if (rule === undefined) return null;
        const [row = "", code = ""] = rule.name.split(" ");
        const active = chosen === rule.name;
        return (
          <div className={`${styles["rule"] ?? ""} ${active ? (styles["active"] ?? "") : ""}`}>
            <div className={styles["line"]}>
              <button
                type="button"
                className={styles["code"]}
                aria-pressed={active}
                onClick={() => onChoose(active ? undefined : rule.name)}
              >
                {code}
              </button>
              <span className={styles["spread"]}>
                <Badge tone={TONES[rule.worst]}>{texts(rule.worst)}</Badge>
              </span>
            </div>
            <div className={styles["line"]}>
              <span className={styles["muted"]}>
                {t("recordsIn", { count: rule.records })} · {t("repairs", { count: rule.repaired })}
              </span>
              <Link className={styles["spread"] ?? ""} to={`/inspect/rules/${encodeURIComponent(code)}`}>
                {texts("aboutRule", { rule: row })}
              </Link>
            </div>
          </div>
        );
      }}
    />
  );
}
