import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";

export function Component() {
  const t = useText(inspect);
  const frame = useText(app);
  return <Page title={frame("inspect")} purpose={t("purpose")} />;
}
