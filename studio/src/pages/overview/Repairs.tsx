import { overview } from "../../i18n/texts/overview.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./OverviewPage.module.css";
import { type FiguresOfRange } from "./ranges.ts";

/** Most rules that are shown. */
const MOST = 12;

/** Repairs of each rule, most frequent first. */
export function Repairs({ rules }: { rules: FiguresOfRange["repairs"] }) {
  const t = useText(overview);
  const { number } = useFormat();
  const most = rules[0]?.count ?? 1;
  if (rules.length === 0) return <p className={styles["hint"]}>{t("noRepairs")}</p>;
  return (
    <ol className={styles["bars"]}>
      {rules.slice(0, MOST).map(({ rule, code, count }) => (
        <li key={`${rule} ${code}`} className={styles["bar"]}>
          <span className={styles["fill"]} style={{ width: `${(100 * count) / most}%` }} aria-hidden="true" />
          <span>
            <strong>{rule}</strong> <code>{code}</code>
          </span>
          <span>{number(count)}</span>
        </li>
      ))}
    </ol>
  );
}
