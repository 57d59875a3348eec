import { Input, Select } from "antd";
import { useMemo } from "react";
import { inspect } from "../../i18n/texts/inspect.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Inspect.module.css";
import { type RecordFilter, type RuleCount, STATES } from "./records/filter.ts";
import { type RecordIndex } from "./records/RecordIndex.ts";

type FiltersProps = {
  index: RecordIndex;
  version: number;
  filter: RecordFilter;
  rules: readonly RuleCount[];
  onChange: (filter: RecordFilter) => void;
};

/** Filters of the displayed records. */
export function Filters({ index, version, filter, rules, onChange }: FiltersProps) {
  const t = useText(inspect);
  const texts = useText(reply);
  const change = (part: RecordFilter) => onChange({ ...filter, ...part });
  const models = useMemo(
    () => index.models.list.filter((model) => model !== "").map((value) => ({ value })),
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [index, version],
  );
  return (
    <div className={styles["filters"]}>
      <Input.Search
        allowClear
        aria-label={t("filterText")}
        placeholder={t("filterText")}
        value={filter.text ?? ""}
        onChange={(event) => change({ text: event.target.value })}
      />
      <Select
        allowClear
        showSearch
        aria-label={t("filterRule")}
        placeholder={t("anyRule")}
        value={filter.rule ?? null}
        options={rules.map(({ name }) => ({ value: name }))}
        onChange={(rule: string | undefined) => change({ rule })}
      />
      <Select
        allowClear
        aria-label={t("filterSeverity")}
        placeholder={t("anySeverity")}
        value={filter.severity ?? null}
        options={(["error", "warning", "info"] as const).map((value) => ({ value, label: texts(value) }))}
        onChange={(severity: RecordFilter["severity"]) => change({ severity })}
      />
      <Select
        allowClear
        showSearch
        aria-label={t("filterModel")}
        placeholder={t("anyModel")}
        value={filter.model ?? null}
        options={models}
        onChange={(model: string | undefined) => change({ model })}
      />
      <Select
        allowClear
        aria-label={t("filterState")}
        placeholder={t("anyState")}
        value={filter.state ?? null}
        options={STATES.map((value) => ({ value, label: t(value) }))}
        onChange={(state: RecordFilter["state"]) => change({ state })}
      />
    </div>
  );
}
