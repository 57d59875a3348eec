import { useState } from "react";
import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import { LongText } from "../LongText.tsx";
import styles from "./Reply.module.css";
import { type ReplyModel } from "./ReplyModel.ts";
import { useThoughtDisplay } from "./useThoughtDisplay.ts";

/** Thinking of a reply by phases, open while it is written, then folded; a manual choice stays. */
export function ThoughtLog({ model, running }: { model: ReplyModel; running: boolean }) {
  const t = useText(reply);
  const display = useThoughtDisplay();
  const [chosen, setChosen] = useState<boolean | null>(null);
  const { phases } = model;
  if (phases.length === 0) return null;
  if (display === "hidden") return <p className={styles["muted"]}>{t("thinkingHidden")}</p>;
  const writing = running && model.thinking;
  const open = chosen ?? (display === "shown" || writing);
  return (
    <details className={styles["fold"]} open={open}>
      <summary
        onClick={(click) => {
          click.preventDefault();
          setChosen(!open);
        }}
      >
        {t(writing ? "thinkingNow" : "thinking")}{" "}
        <span className={styles["muted"]}>{t("phaseCount", { count: phases.length })}</span>
      </summary>
      <ol className={styles["phases"]}>
        {phases.map(({ title, text }, index) => {
          const last = writing && index === phases.length - 1;
          const name = title ?? t("furtherThought");
          return (
            <li key={index} className={`${styles["phase"] ?? ""} ${last ? (styles["phaseOpen"] ?? "") : ""}`}>
              <details open>
                <summary>{name}</summary>
                <LongText text={text} label={name} fileName="thinking.txt" prose />
              </details>
            </li>
          );
        })}
      </ol>
    </details>
  );
}
