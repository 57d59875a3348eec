import { ReloadOutlined } from "@ant-design/icons";
import { Button, Segmented } from "antd";
import { Link, useSearchParams } from "react-router";
import { useResource } from "../../api/useResource.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { overview } from "../../i18n/texts/overview.ts";
import { useText } from "../../i18n/useText.ts";
import { Figures } from "./Figures.tsx";
import { Plots } from "./Plots.tsx";
import { type Range, RANGES, loadFigures, rangeOf } from "./ranges.ts";

/** Figures of the server's replies over the last days. */
export function Component() {
  const t = useText(overview);
  const frame = useText(app);
  const [params, setParams] = useSearchParams();
  const range = rangeOf(params.get("range"));
  const { data, error, loading, reload } = useResource(`figures ${range}`, (signal) => loadFigures(range, signal));
  const texts: Record<Range, string> = { "2d": t("twoDays"), "7d": t("week"), "30d": t("month"), "90d": t("quarter") };
  const empty = data?.data.length === 0;
  return (
    <Page
      title={frame("overview")}
      purpose={t("purpose")}
      loading={data === null}
      error={error}
      onRetry={reload}
      actions={
        <>
          <Segmented
            aria-label={t("range")}
            value={range}
            options={(Object.keys(RANGES) as Range[]).map((value) => ({ value, label: texts[value] }))}
            onChange={(value) => setParams(value === "7d" ? {} : { range: value }, { replace: true })}
          />
          <Button icon={<ReloadOutlined />} loading={loading} onClick={reload}>
            {t("refresh")}
          </Button>
        </>
      }
    >
      {empty && <EmptyState title={t("empty")} hint={t("emptyHint")} action={<Link to="/live">{t("toLive")}</Link>} />}
      {data !== null && !empty && (
        <>
          <Figures figures={data} />
          <Plots figures={data} />
        </>
      )}
    </Page>
  );
}
