import { overview } from "../../i18n/texts/overview.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./OverviewPage.module.css";
import { type Summary } from "./summary.ts";

/** The figures that are seen first. */
export function Figures({ summary }: { summary: Summary }) {
  const t = useText(overview);
  const { number, percent } = useFormat();
  const { clean, repaired, replaced } = summary.validity;
  const figures = [
    {
      name: t("messages"),
      value: number(summary.count),
      hint: `${t("completed")} ${number(summary.completed)} · ${t("failed")} ${number(summary.failed)}`,
    },
    {
      name: t("valid"),
      value: summary.completed === 0 ? "–" : percent((clean + repaired) / summary.completed),
      hint: t("validHint", { clean, repaired, replaced }),
    },
    {
      name: t("firstText"),
      value: summary.firstTextMs === null ? "–" : t("milliseconds", { value: number(summary.firstTextMs) }),
      hint: t("firstTextHint"),
    },
    { name: t("tokens"), value: number(summary.tokens), hint: t("tokensHint") },
  ];
  return (
    <ul className={styles["figures"]}>
      {figures.map(({ name, value, hint }) => (
        <li key={name} className={styles["figure"]}>
          <h2 className={styles["name"]}>{name}</h2>
          <p className={styles["value"]}>{value}</p>
          <p className={styles["hint"]}>{hint}</p>
        </li>
      ))}
    </ul>
  );
}
