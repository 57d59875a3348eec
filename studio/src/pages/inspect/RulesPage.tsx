import { Input, Select } from "antd";
import { useDeferredValue, useMemo, useState } from "react";
import { Link } from "react-router";
import { useResource } from "../../api/useResource.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Page } from "../../components/Page.tsx";
import { Badge } from "../../components/reply/Badge.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Inspect.module.css";
import { allRules, findRules, type Level } from "./rules.ts";

/** All rules, with a search. */
export function Component() {
  const t = useText(inspect);
  const { data, error, loading, reload } = useResource("rules", allRules);
  const [text, setText] = useState("");
  const [owner, setOwner] = useState<string>();
  const wanted = useDeferredValue(text);
  const rules = useMemo(() => findRules(data ?? [], wanted, owner), [data, wanted, owner]);
  const owners = useMemo(() => [...new Set((data ?? []).map((rule) => rule.owner))].map((value) => ({ value })), [data]);
  return (
    <Page title={t("rules")} purpose={t("rulesPurpose")} loading={loading && data === null} error={error} onRetry={reload}>
      <div className={styles["ruleFilters"]}>
        <Input.Search
          allowClear
          aria-label={t("findRule")}
          placeholder={t("findRule")}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Select
          allowClear
          aria-label={t("owner")}
          placeholder={t("anyOwner")}
          value={owner ?? null}
          options={owners}
          onChange={(chosen: string | undefined) => setOwner(chosen)}
        />
      </div>
      {rules.length === 0 ? (
        <EmptyState title={t("noRule")} />
      ) : (
        <VirtualList
          label={t("rules")}
          count={rules.length}
          rowHeight={60}
          height="65vh"
          fit
          row={(index) => {
            const rule = rules[index];
            if (rule === undefined) return null;
            return (
              <div className={styles["rule"]}>
                <div className={styles["line"]}>
                  <Link className={styles["code"] ?? ""} to={`/inspect/rules/${encodeURIComponent(rule.code)}`}>
                    {rule.code}
                  </Link>
                  <span className={styles["muted"]}>{rule.rows.join(" ")}</span>
                  <span className={styles["spread"]}>
                    <Badge>{rule.owner}</Badge> <Badge>{t(rule.level satisfies Level)}</Badge>
                  </span>
                </div>
                <div>{rule.title}</div>
              </div>
            );
          }}
        />
      )}
    </Page>
  );
}
