import { CheckOutlined, CloseOutlined } from "@ant-design/icons";
import { Button, Drawer } from "antd";
import { useState } from "react";
import { VirtualList } from "../../components/VirtualList.tsx";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import { type Step } from "./operations.ts";
import { preview } from "./stateTree.ts";
import styles from "./Steps.module.css";

/** Most operations shown inline; more get a list of their own. */
const SHOWN = 12;

/** Operations with their results: the values before and after, or the reason of a refusal. */
export function Steps({ steps }: { steps: readonly Step[] }) {
  const t = useText(conversations);
  const [all, setAll] = useState(false);
  return (
    <>
      <ul className={styles["list"]}>
        {steps.slice(0, SHOWN).map((step, index) => (
          <li key={index}>
            <StepLine step={step} />
          </li>
        ))}
      </ul>
      {steps.length > SHOWN && (
        <Button type="link" size="small" onClick={() => setAll(true)}>
          {t("showAll", { count: steps.length })}
        </Button>
      )}
      <Drawer open={all} size={640} title={t("showAll", { count: steps.length })} onClose={() => setAll(false)}>
        <VirtualList
          label={t("history")}
          count={steps.length}
          height="100%"
          row={(index) => {
            const step = steps[index];
            return step === undefined ? null : <StepLine step={step} />;
          }}
        />
      </Drawer>
    </>
  );
}

function StepLine({ step }: { step: Step }) {
  const t = useText(conversations);
  const { op, path, ok, before, after, reason, message, value } = step;
  return (
    <div className={styles["step"]}>
      {ok ? (
        <CheckOutlined className={styles["ok"] ?? ""} aria-label={t("ok")} />
      ) : (
        <CloseOutlined className={styles["refused"] ?? ""} aria-hidden="true" />
      )}
      <span className={styles["words"]}>
        <code className={styles["name"]}>{op}</code> <code className={styles["path"]}>{path}</code>{" "}
        {ok ? (
          <span className={styles["values"]}>
            {before !== undefined && <span className={styles["before"]}>{preview(before, 400)}</span>}
            {before !== undefined && after !== undefined && " → "}
            {after !== undefined && <span className={styles["after"]}>{preview(after, 400)}</span>}
          </span>
        ) : (
          <>
            {value !== undefined && <span className={styles["values"]}>{preview(value, 200)}</span>}
            <span className={styles["reason"]}>
              {t("notApplied", { reason: message ?? reason ?? "" })}
              {reason !== undefined && message !== undefined && <code> {reason}</code>}
            </span>
          </>
        )}
      </span>
    </div>
  );
}
