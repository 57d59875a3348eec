import { BranchesOutlined, SearchOutlined } from "@ant-design/icons";
import { Alert, Button, Tooltip } from "antd";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Markdown } from "../../components/Markdown.tsx";
import { ValueText } from "../../components/reply/ValueText.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Chat.module.css";
import { callsIn } from "./calls.ts";
import { type Decision, type RecordedTurn, resultOf, type Round } from "./model.ts";
import { useDecisionWords } from "./useDecisionWords.ts";
import { type Pending } from "./useTurn.ts";
import { shownValue } from "./variables.ts";

type ChatProps = {
  turns: readonly RecordedTurn[];
  rounds: readonly Round[];
  pending: Pending | null;
  onFork: (turn: string) => void;
  onInspect: (round: number) => void;
};

/** Conversation so far, turn by turn, with the running turn. */
export function Chat({ turns, rounds, pending, onFork, onInspect }: ChatProps) {
  const t = useText(run);
  const count = turns.length + (pending === null ? 0 : 1);
  if (count === 0) return <EmptyState title={t("modelFirst")} hint={t("modelFirstHint")} />;
  return (
    <VirtualList
      label={t("chat")}
      count={count}
      rowHeight={140}
      height="100%"
      follow
      keyOf={(index) => turns[index]?.turn ?? "pending"}
      row={(index) => {
        const turn = turns[index];
        if (turn !== undefined) return <Said turn={turn} rounds={rounds} onFork={onFork} onInspect={onInspect} />;
        return pending === null ? null : <Running pending={pending} />;
      }}
    />
  );
}

function Said({ turn, rounds, onFork, onInspect }: { turn: RecordedTurn } & Omit<ChatProps, "turns" | "pending">) {
  const t = useText(run);
  const result = turn.result === null ? null : resultOf(turn.result);
  const answer = turn.answer as { value: unknown } | null;
  const said = turn.text ?? (answer === null ? null : shownValue(answer.value));
  const calls = callsIn(rounds, turn.turn);
  const decision = result?.metadata?.exit_decision ?? null;
  return (
    <div className={styles["turn"]}>
      <div className={styles["user"]}>
        {said !== null && (
          <div className={styles["bubble"]}>
            <span className="visually-hidden">{t("you")}: </span>
            <ValueText value={said} label={t("you")} />
          </div>
        )}
        <Tooltip title={t("forkHint")}>
          <Button size="small" type="text" icon={<BranchesOutlined />} onClick={() => onFork(turn.turn)}>
            {t("fork")}
          </Button>
        </Tooltip>
      </div>
      {result?.ai_message != null && (
        <div className={styles["message"]}>
          <span className="visually-hidden">{t("assistant")}: </span>
          <Markdown text={result.ai_message} />
        </div>
      )}
      {result?.error != null && <Alert type="error" showIcon title={result.error.code} description={result.error.message} />}
      {result?.notices.map((notice, index) => (
        <Alert key={index} type="warning" showIcon title={notice.message} />
      ))}
      <div className={styles["foot"]}>
        {calls.map(({ round, attempt, isUnusable }) => (
          <Button key={round.number} size="small" type="text" icon={<SearchOutlined />} onClick={() => onInspect(round.number)}>
            {attempt !== null
              ? t(isUnusable ? "attemptUnusable" : "attempt", { attempt })
              : round.action_type === "ai_think"
                ? t("thinkCall")
                : t("inspect", { round: round.round ?? 1 })}
          </Button>
        ))}
        {result?.metadata?.assessment?.understanding_level !== undefined && (
          <span>{t("level", { level: result.metadata.assessment.understanding_level })}</span>
        )}
        {decision !== null && <Decided decision={decision} />}
      </div>
    </div>
  );
}

/** Decision after a round, with its reason and the unmet conditions. */
function Decided({ decision }: { decision: Decision }) {
  const t = useText(run);
  const words = useDecisionWords();
  const { should_exit: exits, decision_source: source, reason, unmet } = decision;
  return (
    <>
      <span>
        {exits ? t("exitsBecause", { source: words.source(source), reason }) : t("goesOnBecause", { reason })}
      </span>
      {!exits && unmet.length > 0 && <span>{t("unmetHere", { conditions: unmet.map(words.unmet).join(t("comma")) })}</span>}
    </>
  );
}

function Running({ pending }: { pending: Pending }) {
  const t = useText(run);
  const said = pending.input.text ?? (pending.input.answer === undefined ? null : shownValue(pending.input.answer.value));
  return (
    <div className={styles["turn"]} aria-busy="true">
      {said !== null && (
        <div className={styles["user"]}>
          <div className={styles["bubble"]}>
            <ValueText value={said} label={t("you")} />
          </div>
        </div>
      )}
      <div className={styles["message"]} aria-live="polite">
        {pending.text === "" ? <span className={styles["waiting"]}>…</span> : <Markdown text={pending.text} />}
      </div>
      {pending.dropped && <Alert type="warning" showIcon title={t("dropped")} role="status" />}
    </div>
  );
}
