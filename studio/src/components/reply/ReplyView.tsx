import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import { LongText } from "../LongText.tsx";
import { Markdown } from "../Markdown.tsx";
import { VirtualList } from "../VirtualList.tsx";
import { EventBlock } from "./EventBlock.tsx";
import styles from "./Reply.module.css";
import { type Block, type ReplyModel } from "./ReplyModel.ts";
import { ThoughtLog } from "./ThoughtLog.tsx";
import { ToolBlock } from "./ToolBlock.tsx";

/** Most blocks of an answer that are all in the page; of more, only the visible ones. */
const MANY = 200;

type ReplyViewProps = {
  model: ReplyModel;
  /** True while the reply grows. */
  running?: boolean;
  /** Called with the text of the chosen option. */
  onChoose?: ((text: string) => void) | undefined;
};

/** Reply as a user of an application sees it: thinking by phases, the answer, and its blocks. */
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
          <LongText text={model.draft} label={t("draft")} fileName="draft.txt" prose />
        </details>
      )}
      <ThoughtLog model={model} running={running} />
      <section aria-label={t("answer")}>
        <Blocks blocks={model.blocks} onChoose={onChoose} />
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

type Choose = ReplyViewProps["onChoose"];

function Blocks({ blocks, onChoose }: { blocks: readonly Block[]; onChoose: Choose }) {
  const t = useText(reply);
  if (blocks.length <= MANY) {
    return blocks.map((block) => <BlockView key={block.index} block={block} onChoose={onChoose} />);
  }
  return (
    <VirtualList
      label={t("answer")}
      count={blocks.length}
      rowHeight={80}
      height="70vh"
      keyOf={(index) => blocks[index]?.index ?? index}
      row={(index) => {
        const block = blocks[index];
        return block === undefined ? null : <BlockView block={block} onChoose={onChoose} />;
      }}
    />
  );
}

function BlockView({ block, onChoose }: { block: Block; onChoose: Choose }) {
  switch (block.kind) {
    case "text":
      return <Markdown text={block.text} />;
    case "tool":
      return <ToolBlock run={block.run} />;
    case "event":
      return <EventBlock event={block.event} onChoose={onChoose} />;
  }
}
