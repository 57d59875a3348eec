import { SwapOutlined } from "@ant-design/icons";
import { Button, Select } from "antd";
import { api } from "../../api/client.ts";
import { useResource } from "../../api/useResource.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Content } from "../../components/Page.tsx";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./CompareTab.module.css";
import { Differences } from "./Differences.tsx";
import { type Difference, invert } from "./operations.ts";
import { type StatePoint } from "./points.ts";
import { usePointLabel } from "./usePointLabel.ts";

type CompareProps = {
  id: string;
  points: readonly StatePoint[];
  /** Changes with the state. */
  version: number;
  from: string | null;
  to: string | null;
  onChange: (from: string | null, to: string | null) => void;
};

const START = "start";
const NOW = "now";

/** Differences between the states at any two moments. */
export function CompareTab({ id, points, version, from, to, onChange }: CompareProps) {
  const t = useText(conversations);
  const labelOf = usePointLabel();
  const last = points.at(-1)?.id ?? null;
  const left = from ?? START;
  const right = to ?? NOW;
  const name = last === null ? null : `diff ${id} ${left} ${right} ${last} ${version}`;
  const compared = useResource(name, async (signal) => {
    const differences = async (query: { from?: string | null; to?: string | null }) => {
      const { data } = await api.get("/api/v1/conversations/{id}/state/history", {
        path: { id },
        query: { ...query, limit: 1 },
        signal,
      });
      return (data.diff ?? []) as unknown as Difference[];
    };
    if (left === right) return [];
    // The API reads an absent `from` as the beginning and an absent `to` as now; the reverse order is swapped.
    if (left === NOW) {
      return invert(await differences(right === START ? { to: last } : { from: right }));
    }
    if (right === START) return invert(await differences({ to: left }));
    if (left === START) return differences({ to: right === NOW ? last : right });
    return differences({ from: left, to: right === NOW ? null : right });
  });

  if (last === null) return <EmptyState title={t("historyEmpty")} hint={t("compareEmptyHint")} />;

  const options = [
    { value: START, label: t("beginning") },
    ...points.map((point) => ({ value: point.id, label: labelOf(point) })),
    { value: NOW, label: t("now") },
  ];
  const change = (a: string, b: string) => onChange(a === START ? null : a, b === NOW ? null : b);
  return (
    <>
      <div className={styles["choice"]}>
        <label className={styles["side"]}>
          <span>{t("from")}</span>
          <Select
            aria-label={t("from")}
            showSearch={{ optionFilterProp: "label" }}
            value={left}
            options={options}
            onChange={(value: string) => change(value, right)}
          />
        </label>
        <Button
          icon={<SwapOutlined />}
          aria-label={t("swap")}
          onClick={() => change(right, left)}
        />
        <label className={styles["side"]}>
          <span>{t("to")}</span>
          <Select
            aria-label={t("to")}
            showSearch={{ optionFilterProp: "label" }}
            value={right}
            options={options}
            onChange={(value: string) => change(left, value)}
          />
        </label>
      </div>
      <Content loading={compared.loading} error={compared.error} onRetry={compared.reload}>
        {compared.data?.length === 0 ? (
          <EmptyState title={t("noDifferences")} />
        ) : (
          <>
            <p role="status" className={styles["count"]}>
              {t("countDifferences", { count: compared.data?.length ?? 0 })}
            </p>
            <Differences differences={compared.data ?? []} label={t("differences")} />
          </>
        )}
      </Content>
    </>
  );
}
