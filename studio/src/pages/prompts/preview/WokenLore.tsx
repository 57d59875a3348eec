import { BulbOutlined } from "@ant-design/icons";
import { api } from "../../../api/client.ts";
import { useResource } from "../../../api/useResource.ts";
import { Section } from "../../../components/Section.tsx";
import { preview } from "../../../i18n/texts/preview.ts";
import { useText } from "../../../i18n/useText.ts";
import { type LoreEntry } from "../imports/lore.ts";
import { asleepOf } from "./asleep.ts";
import { type Ingredients, type Rendered } from "./renderPrompt.ts";
import styles from "./WokenLore.module.css";

type Woken = Rendered["lore_woken"][number];
type Unused = Rendered["lore_dropped"][number];

/** World info in the prompt with its triggers, entries found but left out, and the rest of the files. */
export function WokenLore({ rendered, given }: { rendered: Rendered; given: Ingredients }) {
  const t = useText(preview);
  const { card, books } = given;
  const { lore_woken: woken, lore_dropped: unused } = rendered;
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
  const asleep = asleepOf(entries.data ?? [], [...woken, ...unused].map(({ title }) => title));
  return (
    <Section title={t("lore")}>
      {woken.length === 0 && <p className={styles["hint"]}>{t("loreNone")}</p>}
      <ul className={styles["list"]}>
        {woken.map((one, index) => (
          <li key={index} className={styles["entry"]}>
            <BulbOutlined className={styles["icon"] ?? ""} aria-hidden="true" />
            <span className={styles["words"]}>
              <strong>{one.title}</strong>{" "}
              <span className={styles["hint"]}>
                <CauseText woken={one} />
              </span>
            </span>
          </li>
        ))}
        {unused.map((one, index) => (
          <li key={`unused ${index}`} className={styles["entry"]}>
            <span className={styles["words"]}>
              {one.title}{" "}
              <span className={styles["hint"]}>
                <UnusedText unused={one} />
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

function CauseText({ woken }: { woken: Woken }) {
  const t = useText(preview);
  const { by, key = "", found_in: where } = woken;
  const places = { messages: t("inMessages"), persons: t("inPersons"), others: t("inOthers"), entries: t("inEntries") };
  switch (by) {
    case "constant":
      return t("byConstant");
    case "sticky":
      return t("bySticky");
    case "forced":
      return t("byForced");
    case "key":
      return where === undefined ? t("byExpression", { key }) : t("byKey", { key, place: places[where] });
  }
}

function UnusedText({ unused }: { unused: Unused }) {
  const t = useText(preview);
  switch (unused.why) {
    case "probability":
      return t("notByChance");
    case "group":
      return t("notInGroup");
    case "budget":
      return t("notInBudget");
  }
}
