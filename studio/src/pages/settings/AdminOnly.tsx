import { Section } from "../../components/Section.tsx";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useText } from "../../i18n/useText.ts";

/** Section as shown to a key without the right to it. */
export function AdminOnly({ title }: { title: string }) {
  const t = useText(texts);
  return (
    <Section title={title}>
      <p style={{ margin: 0, color: "var(--muted)" }}>{t("adminOnly")}</p>
    </Section>
  );
}
