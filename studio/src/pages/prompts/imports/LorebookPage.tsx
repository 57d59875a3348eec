import { useParams } from "react-router";
import { api } from "../../../api/client.ts";
import { useResource } from "../../../api/useResource.ts";
import { LongText } from "../../../components/LongText.tsx";
import { Section } from "../../../components/Section.tsx";
import { imports } from "../../../i18n/texts/imports.ts";
import { useText } from "../../../i18n/useText.ts";
import { Entries } from "./Entries.tsx";
import { ImportFrame, type Kept } from "./ImportFrame.tsx";
import { type LoreEntry } from "./lore.ts";

type Book = Kept & { book?: { description?: string }; entries?: readonly LoreEntry[] };

/** Lorebook: its entries and the resulting prompt. */
export function Component() {
  const t = useText(imports);
  const { id = "" } = useParams();
  const resource = useResource(`book ${id}`, async (signal) => {
    const { data } = await api.get("/api/v1/lorebooks/{id}", { path: { id }, signal });
    return data as unknown as Book;
  });
  const entries = resource.data?.entries ?? [];
  const description = resource.data?.book?.description ?? "";
  return (
    <ImportFrame kind="lorebooks" id={id} resource={resource}>
      {description !== "" && (
        <Section title={t("description")}>
          <LongText text={description} label={t("description")} maxHeight={240} />
        </Section>
      )}
      <Section title={t("lore")} hint={t("entries", { count: entries.length })}>
        <Entries entries={entries} />
      </Section>
    </ImportFrame>
  );
}
