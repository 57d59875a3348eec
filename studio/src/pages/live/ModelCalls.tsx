import { Alert, Collapse } from "antd";
import { type ReactNode } from "react";
import { Badge } from "../../components/reply/Badge.tsx";
import { JsonText } from "../../components/reply/JsonText.tsx";
import { LongText } from "../../components/LongText.tsx";
import { live } from "../../i18n/texts/live.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./Live.module.css";
import { type MessageRecord } from "./MessageRun.ts";
import { callsOf, type ModelCall } from "./modelCalls.ts";

const GAPS = { complaints: "gapComplaints", upstream: "gapUpstream", turn: "gapTurn" } as const;

/** Request and response of each model call of a message. */
export function ModelCalls({ record }: { record: MessageRecord | null }) {
  const t = useText(live);
  const format = useFormat();
  if (record === null) return <p className={styles["hint"]}>{t("noCalls")}</p>;
  const calls = callsOf(record);
  return (
    <Collapse
      size="small"
      defaultActiveKey={[calls.length]}
      items={calls.map((call, index) => ({
        key: index + 1,
        label: <CallTitle call={call} number={index + 1} />,
        children: (
          <div className={styles["stack"]}>
            <Labelled title={t("request")}>
              {call.gap !== "none" && <p>{t(GAPS[call.gap])}</p>}
              {call.request !== null && <JsonText value={call.request} label={t("request")} />}
            </Labelled>
            {call.parameters !== null && (
              <Labelled title={t("parameters")}>
                <JsonText value={call.parameters} label={t("parameters")} />
              </Labelled>
            )}
            {call.error !== null && <Alert type="warning" title={call.error} />}
            <Labelled title={t("response")}>
              <LongText text={call.response} label={t("response")} fileName="response.txt" maxHeight={240} />
            </Labelled>
            {call.told !== null && (
              <Labelled title={t("told")}>
                <LongText text={call.told} label={t("told")} maxHeight={240} />
              </Labelled>
            )}
            {call.usage !== null && (
              <Labelled title={t("usage")}>
                <JsonText value={call.usage} label={t("usage")} />
              </Labelled>
            )}
            {call.totalMs !== null && (
              <div className={styles["hint"]}>
                {t("total")}: {t("milliseconds", { count: format.number(call.totalMs) })}
              </div>
            )}
          </div>
        ),
      }))}
    />
  );
}

function CallTitle({ call, number }: { call: ModelCall; number: number }) {
  const t = useText(live);
  return (
    <span className={styles["paneTitle"]}>
      {t("call", { number })}
      <Badge tone={call.used ? "success" : "warning"}>{t(call.used ? "used" : "discarded")}</Badge>
      {call.finishReason !== null && <Badge>{call.finishReason}</Badge>}
      {call.upstream !== null && <span className={styles["hint"]}>{t("asUpstream", { name: call.upstream })}</span>}
    </span>
  );
}

function Labelled({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div>
      <div className={styles["hint"]}>{title}</div>
      {children}
    </div>
  );
}
