import { FileSearchOutlined } from "@ant-design/icons";
import { Button, Result } from "antd";
import { isRouteErrorResponse, Link, useLocation, useRouteError } from "react-router";
import { app } from "../i18n/texts/app.ts";
import { useText } from "../i18n/useText.ts";

/** Part of the message of browsers for a lazy chunk that no longer exists. */
const GONE = /dynamically imported module|module script|Importing a module/i;

/** Error page in place of a page that failed. */
export function PageError() {
  const t = useText(app);
  const error = useRouteError();
  if (isRouteErrorResponse(error) && error.status === 404) return <NotFound />;
  const message = error instanceof Error ? error.message : String(error);
  const outdated = GONE.test(message);
  return (
    <Result
      status={outdated ? "info" : "error"}
      title={<h1 style={{ margin: 0, fontSize: 24 }}>{t(outdated ? "outdated" : "pageFailed")}</h1>}
      subTitle={
        <>
          <p>{t(outdated ? "outdatedHint" : "pageFailedHint")}</p>
          {!outdated && <code>{message}</code>}
        </>
      }
      extra={[
        <Button key="reload" type="primary" onClick={() => location.reload()}>
          {t("reload")}
        </Button>,
        <Link key="overview" to="/">
          {t("toOverview")}
        </Link>,
      ]}
    />
  );
}

export function NotFound() {
  const t = useText(app);
  const { pathname } = useLocation();
  return (
    <Result
      icon={<FileSearchOutlined aria-hidden="true" style={{ color: "var(--accent)" }} />}
      title={<h1 style={{ margin: 0, fontSize: 24 }}>{t("notFound")}</h1>}
      subTitle={t("notFoundHint", { path: pathname })}
      extra={<Link to="/">{t("toOverview")}</Link>}
    />
  );
}
