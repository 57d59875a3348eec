import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { scripts } from "../../i18n/texts/scripts.ts";
import { useText } from "../../i18n/useText.ts";

export function Component() {
  const t = useText(scripts);
  const frame = useText(app);
  return <Page title={frame("scripts")} purpose={t("purpose")} />;
}
