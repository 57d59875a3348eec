import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";

export function Component() {
  const t = useText(run);
  const frame = useText(app);
  return <Page title={frame("run")} purpose={t("purpose")} />;
}
