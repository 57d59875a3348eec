import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";

export function Component() {
  const t = useText(conversations);
  const frame = useText(app);
  return <Page title={frame("conversations")} purpose={t("purpose")} />;
}
