import { ReloadOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { Link } from "react-router";
import { useResource } from "../../api/useResource.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { overview } from "../../i18n/texts/overview.ts";
import { useText } from "../../i18n/useText.ts";
import { Figures } from "./Figures.tsx";
import { loadOverview } from "./load.ts";
import { Plots } from "./Plots.tsx";

/** How the server does: its newest messages summed up. */
export function Component() {
  const t = useText(overview);
  const frame = useText(app);
  const { data, error, loading, reload } = useResource("overview", loadOverview);
  return (
    <Page
      title={frame("overview")}
      purpose={data === null || data.summary.count === 0 ? t("purpose") : t("sample", { count: data.summary.count })}
      loading={data === null}
      error={error}
      onRetry={reload}
      actions={
        <Button icon={<ReloadOutlined />} loading={loading} onClick={reload}>
          {t("refresh")}
        </Button>
      }
    >
      {data?.summary.count === 0 && (
        <EmptyState title={t("empty")} hint={t("emptyHint")} action={<Link to="/live">{t("toLive")}</Link>} />
      )}
      {data !== null && data.summary.count > 0 && (
        <>
          <Figures summary={data.summary} />
          <Plots {...data} />
        </>
      )}
    </Page>
  );
}
