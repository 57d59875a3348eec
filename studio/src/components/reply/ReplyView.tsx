import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import { Markdown } from "../Markdown.tsx";
import { EventBlock } from "./EventBlock.tsx";
import styles from "./Reply.module.css";
import { type Block, type ReplyModel } from "./ReplyModel.ts";
import { ToolBlock } from "./ToolBlock.tsx";

type ReplyViewProps = {
  model: ReplyModel;
  /** Whether more of it comes. */
  running?: boolean;
  /** Called with the text of an option that was chosen. */
  onChoose?: (text: string) => void;
};

/** A reply as a user of an application would see it: thinking by phases, the answer, and the blocks in it. */
export function ReplyView({ model, running = false, onChoose }: ReplyViewProps) {
  const t = useText(reply);
  return (
    <div className={styles["reply"]}>
      {model.summary !== "" && (
        <p className={styles["summary"]}>
          {t("summary")}: {model.summary}
        </p>
      )}
      {model.draft !== "" && (
        <details className={styles["fold"]}>
          <summary>{t("draft")}</summary>
          <div className={styles["phaseText"]}>{model.draft}</div>
        </details>
      )}
      <Phases model={model} running={running} />
      <section aria-label={t("answer")}>
        {model.blocks.map((block) => (
          <BlockView key={block.index} block={block} onChoose={onChoose} />
        ))}
        {model.blocks.length === 0 && <p className={styles["muted"]}>{t("noAnswer")}</p>}
      </section>
      {model.queries.length > 0 && (
        <section aria-label={t("queries")}>
          <p className={styles["blockHead"]}>{t("queries")}</p>
          <ul className={styles["queries"]}>
            {model.queries.map((query) => (
              <li key={query}>{query}</li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function Phases({ model, running }: { model: ReplyModel; running: boolean }) {
  const t = useText(reply);
  if (model.phases.length === 0) return null;
  const last = model.phases.length - 1;
  return (
    <details className={styles["fold"]} open>
      <summary>
        {t(running && model.thinking ? "thinkingNow" : "thinking")}{" "}
        <span className={styles["muted"]}>{t("phaseCount", { count: model.phases.length })}</span>
      </summary>
      <ol className={styles["phases"]}>
        {model.phases.map((phase, index) => {
          const open = running && model.thinking && index === last;
          return (
            <li key={index} className={`${styles["phase"] ?? ""} ${open ? (styles["phaseOpen"] ?? "") : ""}`}>
              <details open>
                <summary>{phase.title}</summary>
                <div className={styles["phaseText"]}>{phase.text}</div>
              </details>
            </li>
          );
        })}
      </ol>
    </details>
  );
}

function BlockView({ block, onChoose }: { block: Block; onChoose: ((text: string) => void) | undefined }) {
  switch (block.kind) {
    case "text":
      return <Markdown text={block.text} />;
    case "tool":
      return <ToolBlock run={block.run} />;
    case "event":
      return <EventBlock event={block.event} onChoose={onChoose} />;
  }
}
