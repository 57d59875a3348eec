import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { settings } from "../../i18n/texts/settings.ts";
import { useText } from "../../i18n/useText.ts";

export function Component() {
  const t = useText(settings);
  const frame = useText(app);
  return <Page title={frame("settings")} purpose={t("purpose")} />;
}
