import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { overview } from "../../i18n/texts/overview.ts";
import { useText } from "../../i18n/useText.ts";

export function Component() {
  const t = useText(overview);
  const frame = useText(app);
  return <Page title={frame("overview")} purpose={t("purpose")} />;
}
