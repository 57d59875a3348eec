import { CheckCircleFilled, MinusCircleOutlined } from "@ant-design/icons";
import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";
import { type ActionCoverage, type Coverage } from "./model.ts";
import styles from "./PlaceTree.module.css";
import { type Reach, reachOf, summaryOf, treeOf } from "./tree.ts";

type PlaceTreeProps = {
  coverage: Coverage;
  /** Path of the next action. */
  path: string | null;
};

/** Names of exits in the catalogue. */
type ExitName = "exit_criteria" | "llm_suggestion" | "max_rounds" | "answered" | "unanswered";


/** Session as a tree, with the place of the dialogue and the coverage so far. */
export function PlaceTree({ coverage, path }: PlaceTreeProps) {
  const t = useText(run);
  return (
    <div className={styles["tree"]}>
      <p className={styles["summary"]}>{t("coverage", summaryOf(coverage.actions))}</p>
      <ol className={styles["phases"]} aria-label={t("place")}>
        {treeOf(coverage.actions).map(({ phase, steps }, index) => (
          <li key={`${index} ${phase}`}>
            <span className={styles["phase"]}>{phase}</span>
            <ol className={styles["steps"]}>
              {steps.map((step) => (
                <li key={step.path}>
                  <span className={styles["topic"]}>{step.topic}</span>
                  <ol className={styles["actions"]}>
                    {step.actions.map(({ action, number }) => (
                      <Action key={action.path} action={action} number={number} here={action.path === path} over={path === null} />
                    ))}
                  </ol>
                </li>
              ))}
            </ol>
          </li>
        ))}
      </ol>
    </div>
  );
}

type ActionProps = { action: ActionCoverage; number: number; here: boolean; over: boolean };

/** Ring for the current action, tick for a reached one, minus for one left out, else a hollow dot. */
function Mark({ reach, here, over }: { reach: Reach } & Pick<ActionProps, "here" | "over">) {
  const t = useText(run);
  if (here) return <span className={styles["ring"]} role="img" aria-label={t("here")} />;
  if (reach === "reached") return <CheckCircleFilled className={styles["reached"] ?? ""} aria-label={t("left")} role="img" />;
  if (reach === "left_out") return <MinusCircleOutlined className={styles["left_out"] ?? ""} aria-label={t("left_out")} role="img" />;
  return <span className={styles["hollow"]} role="img" aria-label={t(over ? "never" : "notYet")} />;
}

function Action({ action, number, here, over }: ActionProps) {
  const t = useText(run);
  const reach = reachOf(action);
  return (
    <li className={`${styles["action"] ?? ""} ${here ? (styles["here"] ?? "") : ""}`} aria-current={here ? "step" : undefined}>
      <div className={styles["line"]}>
        <Mark reach={reach} here={here} over={over} />
        <span>
          {number}. <code>{action.action_id ?? action.action_type}</code>
        </span>
        {here && <span className={styles["badge"]}>{t("here")}</span>}
        {action.max_rounds !== null && action.reached > 0 && (
          <span className={styles["rounds"]}>{t("roundsReached", { rounds: action.rounds, max: action.max_rounds })}</span>
        )}
      </div>
      {action.condition !== null && <code className={styles["condition"]}>{action.condition}</code>}
      {action.exits.length > 0 && (
        <ul className={styles["exits"]} aria-label={t("exit")}>
          {action.exits.map(({ exit, count }) => {
            const name = t(exit as ExitName);
            const told = count > 0 ? t("exitTaken", { exit: name }) : t("exitNever", { exit: name });
            return (
              <li key={exit} className={count > 0 ? styles["taken"] : ""} title={told}>
                <span aria-hidden="true">{name}</span>
                <span className="visually-hidden">{told}</span>
              </li>
            );
          })}
        </ul>
      )}
    </li>
  );
}
