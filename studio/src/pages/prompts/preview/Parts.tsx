import { Tag } from "antd";
import { preview } from "../../../i18n/texts/preview.ts";
import { useFormat, useText } from "../../../i18n/useText.ts";
import styles from "./PromptResult.module.css";
import { type Part } from "./renderPrompt.ts";

/** Parts of a prompt in order: the tokens of each, and the parts that did not fit. */
export function Parts({ parts }: { parts: readonly Part[] }) {
  const t = useText(preview);
  const { number } = useFormat();
  const most = Math.max(1, ...parts.map(({ tokens }) => tokens));
  return (
    <ol className={styles["list"]}>
      {parts.map((part, index) => (
        <li key={index} className={styles["part"]}>
          <span
            className={styles["fill"]}
            style={{ width: `${(100 * part.tokens) / most}%`, opacity: part.dropped ? 0.35 : 1 }}
            aria-hidden="true"
          />
          <PartName part={part} />
          {part.dropped && (
            <>
              <Tag>{t("dropped")}</Tag>
              <span className={styles["hint"]}>{t("priority", { priority: part.priority })}</span>
            </>
          )}
          <span className={styles["count"]}>{number(part.tokens)}</span>
        </li>
      ))}
    </ol>
  );
}

function PartName({ part }: { part: Part }) {
  const t = useText(preview);
  const { kind, number = 0, index = 0, tag = "", title = "", role = "" } = part;
  switch (kind) {
    case "block":
      return <span>{t("partBlock", { number, name: tag })}</span>;
    case "lore":
      return <span>{t("partLore", { name: title })}</span>;
    case "message":
      return <span>{t("partMessage", { number: index + 1, name: role })}</span>;
    case "protocols":
      return <span>{t("partProtocols")}</span>;
    case "note":
      return <span>{t("partNote")}</span>;
  }
}
