import { useMemo } from "react";
import { Link } from "react-router";
import { type Finding } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";
import { Content } from "../../components/Page.tsx";
import { Badge } from "../../components/reply/Badge.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Inspect.module.css";
import { allRules, verdictsOf } from "./rules.ts";

type RuleVerdictsProps = { contract: string; findings: readonly Finding[]; height: number };

/** Rules that a text is held to, each with its verdict. */
export function RuleVerdicts({ contract, findings, height }: RuleVerdictsProps) {
  const t = useText(inspect);
  const { data, error, loading, reload } = useResource("rules", allRules);
  const verdicts = useMemo(() => verdictsOf(data ?? [], contract, findings), [data, contract, findings]);
  return (
    <Content loading={loading && data === null} error={error} onRetry={reload}>
      <VirtualList
        label={t("byRule")}
        count={verdicts.length}
        rowHeight={60}
        height={height}
        row={(index) => {
          const verdict = verdicts[index];
          if (verdict === undefined) return null;
          const { rule, findings: count, repaired } = verdict;
          const state = count === 0 ? "rulesKept" : repaired === count ? "rulesRepaired" : "rulesBroken";
          const tone = count === 0 ? "success" : repaired === count ? "warning" : "danger";
          return (
            <div className={styles["rule"]}>
              <div className={styles["line"]}>
                <Link className={styles["code"] ?? ""} to={`/inspect/rules/${encodeURIComponent(rule.code)}`}>
                  {rule.code}
                </Link>
                <span className={styles["muted"]}>{rule.rows[0]}</span>
                <span className={styles["spread"]}>
                  <Badge tone={tone}>{state === "rulesKept" ? t(state) : t(state, { count })}</Badge>
                </span>
              </div>
              <div className={styles["muted"]}>{rule.title}</div>
            </div>
          );
        }}
      />
    </Content>
  );
}
