import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { live } from "../../i18n/texts/live.ts";
import { useText } from "../../i18n/useText.ts";

export function Component() {
  const t = useText(live);
  const frame = useText(app);
  return <Page title={frame("live")} purpose={t("purpose")} />;
}
