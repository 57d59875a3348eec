import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { prompts } from "../../i18n/texts/prompts.ts";
import { useText } from "../../i18n/useText.ts";

export function Component() {
  const t = useText(prompts);
  const frame = useText(app);
  return <Page title={frame("prompts")} purpose={t("purpose")} />;
}
