import { api } from "../../api/client.ts";
import { useResource } from "../../api/useResource.ts";
import { KeyValue } from "../../components/KeyValue.tsx";
import { Page } from "../../components/Page.tsx";
import { Section } from "../../components/Section.tsx";
import { app } from "../../i18n/texts/app.ts";
import { limits } from "../../i18n/texts/limits.ts";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { type Entry } from "../../i18n/texts.ts";
import { useFormat, useLanguage, useText } from "../../i18n/useText.ts";
import { ConstraintsSection } from "./ConstraintsSection.tsx";
import { KeysSection } from "./KeysSection.tsx";
import { OutputForm } from "./OutputForm.tsx";
import { ToolsSections } from "./ToolsSections.tsx";
import { UpstreamsSection } from "./UpstreamsSection.tsx";

const LIMITS = new Map<string, Entry>(Object.entries(limits));

/** Settings of the server, and its access keys. */
export function Component() {
  const t = useText(texts);
  const frame = useText(app);
  const { number } = useFormat();
  const language = useLanguage();
  const nameOfLimit = (name: string) => {
    const words = LIMITS.get(name);
    return words === undefined ? name : t("limitName", { words: words[language], name });
  };
  const { data, error, reload, replace } = useResource("settings", (signal) =>
    api.get("/api/v1/settings", { signal }).then((answer) => answer.data),
  );
  return (
    <Page title={frame("settings")} purpose={t("purpose")} loading={data === null} error={error} onRetry={reload}>
      {data !== null && (
        <>
          <OutputForm key={data.version} settings={data} onSaved={replace} />
          <UpstreamsSection />
          <ConstraintsSection upstreams={data.upstreams} />
          <KeysSection />
          <ToolsSections />
          <Section title={t("limits")} hint={t("limitsHint")}>
            <KeyValue
              items={[
                ...Object.entries(data.limits).map(([name, value]) => [nameOfLimit(name), number(value)] as const),
                [t("iterations"), number(data.tools.max_iterations)] as const,
              ]}
            />
          </Section>
        </>
      )}
    </Page>
  );
}
