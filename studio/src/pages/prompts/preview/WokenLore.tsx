import { BulbOutlined } from "@ant-design/icons";
import { api } from "../../../api/client.ts";
import { useResource } from "../../../api/useResource.ts";
import { Section } from "../../../components/Section.tsx";
import { preview } from "../../../i18n/texts/preview.ts";
import { useText } from "../../../i18n/useText.ts";
import { type LoreEntry } from "../imports/lore.ts";
import { type Cause, causeOf, splitByTitle } from "./loreKeys.ts";
import { type Ingredients } from "./renderPrompt.ts";
import styles from "./WokenLore.module.css";

/** World info that is in the prompt, and why, as far as it can be told. */
export function WokenLore({ titles, given }: { titles: readonly string[]; given: Ingredients }) {
  const t = useText(preview);
  const { card, books } = given;
  const entries = useResource(`lore ${card ?? ""} ${books.join(" ")}`, async (signal) => {
    const found: LoreEntry[] = [];
    if (card !== null) {
      const { data } = await api.get("/api/v1/cards/{id}", { path: { id: card }, signal });
      found.push(...((data.entries ?? []) as unknown as LoreEntry[]));
    }
    for (const id of books) {
      const { data } = await api.get("/api/v1/lorebooks/{id}", { path: { id }, signal });
      found.push(...((data.entries ?? []) as unknown as LoreEntry[]));
    }
    return found;
  });
  const { woken, asleep } = splitByTitle(entries.data ?? [], titles);
  const texts = given.history.map(({ content }) => content);
  return (
    <Section title={t("lore")} hint={titles.length === 0 ? undefined : t("loreHint")}>
      {titles.length === 0 && <p className={styles["hint"]}>{t("loreNone")}</p>}
      <ul className={styles["list"]}>
        {woken.map(({ title, entry }, index) => (
          <li key={index} className={styles["entry"]}>
            <BulbOutlined className={styles["icon"] ?? ""} aria-hidden="true" />
            <span className={styles["words"]}>
              <strong>{title}</strong>{" "}
              <span className={styles["hint"]}>
                {entry === null ? t("byUnknown") : <CauseText cause={causeOf(entry, texts)} />}
              </span>
            </span>
          </li>
        ))}
      </ul>
      {asleep.length > 0 && (
        <details className={styles["asleep"]}>
          <summary>{t("asleep", { count: asleep.length })}</summary>
          <ul className={styles["list"]}>
            {asleep.slice(0, 200).map(({ id, title, keys }, index) => (
              <li key={`${id} ${index}`} className={styles["entry"]}>
                <span className={styles["words"]}>
                  {title} <span className={styles["hint"]}>{keys.join(", ")}</span>
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </Section>
  );
}

function CauseText({ cause }: { cause: Cause }) {
  const t = useText(preview);
  switch (cause.kind) {
    case "constant":
      return t("byConstant");
    case "keys":
      return t("byKey", { key: cause.keys.join(", ") });
    case "other":
      return t("byOther");
  }
}
