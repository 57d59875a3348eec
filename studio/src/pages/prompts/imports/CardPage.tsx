import { Tag } from "antd";
import type { ReactNode } from "react";
import { useParams } from "react-router";
import { api } from "../../../api/client.ts";
import { useResource } from "../../../api/useResource.ts";
import { EmptyState } from "../../../components/EmptyState.tsx";
import { LongText } from "../../../components/LongText.tsx";
import { Section } from "../../../components/Section.tsx";
import { imports } from "../../../i18n/texts/imports.ts";
import { useText } from "../../../i18n/useText.ts";
import styles from "./CardPage.module.css";
import { type CardFields, type CardText, textsOf } from "./cardTexts.ts";
import { Entries } from "./Entries.tsx";
import { ImportFrame, type Kept } from "./ImportFrame.tsx";
import { type LoreEntry } from "./lore.ts";

type Card = Kept & { card?: CardFields; entries?: readonly LoreEntry[] };

/** Card: its texts, its world info and the resulting prompt. */
export function Component() {
  const t = useText(imports);
  const { id = "" } = useParams();
  const resource = useResource(`card ${id}`, async (signal) => {
    const { data } = await api.get("/api/v1/cards/{id}", { path: { id }, signal });
    return data as unknown as Card;
  });
  const card = resource.data?.card ?? {};
  const texts = textsOf(card);
  const entries = resource.data?.entries ?? [];
  const about: (readonly [string, ReactNode])[] = [];
  if (filled(card.nickname)) about.push([t("nickname"), card.nickname]);
  if (filled(card.creator)) about.push([t("creator"), card.creator]);
  if (filled(card.character_version)) about.push([t("characterVersion"), card.character_version]);
  if (card.tags !== undefined && card.tags.length > 0) {
    about.push([t("tags"), card.tags.map((tag, index) => <Tag key={index} className={styles["tag"] ?? ""}>
        {tag}
      </Tag>)]);
  }
  return (
    <ImportFrame kind="cards" id={id} resource={resource} about={about}>
      <Section title={t("texts")}>
        {texts.length === 0 ? (
          <EmptyState title={t("noTexts")} />
        ) : (
          <div className={styles["texts"]}>
            {texts.map((one, index) => (
              <Field key={index} field={one} />
            ))}
          </div>
        )}
      </Section>
      {entries.length > 0 && (
        <Section title={t("lore")} hint={t("entries", { count: entries.length })}>
          <Entries entries={entries} />
        </Section>
      )}
    </ImportFrame>
  );
}

const filled = (text: string | undefined): text is string => text !== undefined && text.trim() !== "";

function Field({ field }: { field: CardText }) {
  const t = useText(imports);
  const label = labelOf(field, t);
  return (
    <div className={styles["field"]}>
      <h3 className={styles["name"]}>{label}</h3>
      <LongText text={field.text} label={label} maxHeight={320} />
    </div>
  );
}

function labelOf(field: CardText, t: ReturnType<typeof useText<typeof imports>>): string {
  if ("number" in field) return t(field.name, { number: field.number });
  if ("depth" in field) return t("depthPrompt", { depth: field.depth, role: field.role });
  return t(field.name);
}
