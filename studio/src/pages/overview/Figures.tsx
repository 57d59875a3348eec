import { overview } from "../../i18n/texts/overview.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./OverviewPage.module.css";
import { type FiguresOfRange } from "./ranges.ts";
import { validOf } from "./series.ts";

/** Figures shown first. */
export function Figures({ figures: { total, currency } }: { figures: FiguresOfRange }) {
  const t = useText(overview);
  const { number, percent } = useFormat();
  const { completed, failed, cancelled, repaired, replaced } = total;
  const valid = validOf(total);
  const tokens = total.input_tokens + total.output_tokens;
  const milliseconds = (value: number | null) => (value === null ? "–" : t("milliseconds", { value: number(value) }));
  const figures = [
    {
      name: t("messages"),
      value: number(completed + failed + cancelled),
      hint: [
        `${t("completed")} ${number(completed)}`,
        `${t("failed")} ${number(failed)}`,
        `${t("cancelled")} ${number(cancelled)}`,
      ].join(" · "),
    },
    {
      name: t("valid"),
      value: valid === null ? "–" : percent(valid),
      hint: t("validHint", { clean: completed - repaired - replaced, repaired, replaced }),
    },
    {
      name: t("firstText"),
      value: milliseconds(total.first_text_ms),
      hint: t("firstTextHint", { p95: milliseconds(total.first_text_p95_ms) }),
    },
    {
      name: t("tokens"),
      value: number(tokens),
      hint: `${t("inputTokens")} ${number(total.input_tokens)} · ${t("outputTokens")} ${number(total.output_tokens)}`,
    },
    {
      name: t("cost"),
      value: total.unpriced_tokens === tokens ? "–" : `${number(total.cost, 4)} ${currency}`,
      hint: total.unpriced_tokens === 0 ? t("costHint") : t("unpriced", { count: number(total.unpriced_tokens) }),
    },
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
