import { Button } from "antd";
import { type EventData, isEvent, type TypedEvent } from "../../api/types.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import { LongText } from "../LongText.tsx";
import { Markdown } from "../Markdown.tsx";
import { BlockHead } from "./BlockHead.tsx";
import { JsonText } from "./JsonText.tsx";
import { MediaBlock } from "./MediaBlock.tsx";
import styles from "./Reply.module.css";
import { ValueText } from "./ValueText.tsx";

type EventBlockProps = { event: TypedEvent; onChoose: ((text: string) => void) | undefined };

/** Widget of an event of a reply. */
export function EventBlock({ event, onChoose }: EventBlockProps) {
  if (isEvent(event, "choice")) return <Choice data={event.data} onChoose={onChoose} />;
  if (isEvent(event, "status_bar")) return <StatusBar items={event.data.items} />;
  if (isEvent(event, "details")) return <Details data={event.data} />;
  if (isEvent(event, "ui_component")) return <Component data={event.data} />;
  if (isEvent(event, "media")) return <MediaBlock data={event.data} />;
  if (isEvent(event, "state_update")) return <StateUpdate data={event.data} />;
  if (isEvent(event, "plan")) return <Plan data={event.data} />;
  return (
    <div className={styles["block"]}>
      <BlockHead title={event.event} />
      <JsonText value={event.data} label={event.event} />
    </div>
  );
}

function Choice({ data, onChoose }: { data: EventData<"choice">; onChoose: EventBlockProps["onChoose"] }) {
  const t = useText(reply);
  return (
    <div className={styles["block"]} role="group" aria-label={data.prompt === "" ? t("choice") : data.prompt}>
      <BlockHead title={t("choice")} />
      {data.prompt !== "" && <Markdown text={data.prompt} />}
      <div className={styles["options"]}>
        {data.options.map(({ id, text }) => (
          <Button
            key={id}
            disabled={onChoose === undefined}
            aria-label={t("choose", { text })}
            onClick={() => onChoose?.(text)}
          >
            {text}
          </Button>
        ))}
      </div>
    </div>
  );
}

type StatusItem = { name: string; text: string; items: unknown[] };

function StatusBar({ items }: { items: readonly StatusItem[] }) {
  const t = useText(reply);
  return (
    <div className={styles["block"]} role="group" aria-label={t("statusBar")}>
      <BlockHead title={t("statusBar")} />
      <StatusItems items={items} />
    </div>
  );
}

function StatusItems({ items }: { items: readonly StatusItem[] }) {
  return (
    <dl className={styles["status"]}>
      {items.map(({ name, text, items: inner }, index) => (
        <div key={index}>
          <dt>{name}</dt>
          <dd>
            <ValueText value={text} label={name} />
            {inner.length > 0 && <StatusItems items={inner as StatusItem[]} />}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Details({ data }: { data: EventData<"details"> }) {
  const t = useText(reply);
  return (
    <div className={styles["block"]}>
      <details className={styles["fold"]}>
        <summary>{data.summary === "" ? t("details") : data.summary}</summary>
        <Markdown text={data.text} />
      </details>
    </div>
  );
}

/** Unknown component: its fields as a table, and its fallback text. */
function Component({ data }: { data: EventData<"ui_component"> }) {
  const t = useText(reply);
  const { view, props, fallback_text: fallback } = data;
  const fields: readonly (readonly [string, unknown])[] =
    typeof props === "object" && props !== null ? Object.entries(props) : [["", props]];
  return (
    <div className={styles["block"]}>
      <BlockHead title={t("component", { view })} />
      {typeof fallback === "string" && fallback !== "" && <Markdown text={fallback} />}
      <p className={styles["muted"]}>{t("noRenderer")}</p>
      <table className={styles["table"]} aria-label={t("component", { view })}>
        <thead>
          <tr>
            <th scope="col">{t("name")}</th>
            <th scope="col">{t("value")}</th>
          </tr>
        </thead>
        <tbody>
          {fields.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <ValueText value={value} label={name === "" ? t("value") : name} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function StateUpdate({ data }: { data: EventData<"state_update"> }) {
  const t = useText(reply);
  return (
    <div className={styles["block"]}>
      <details className={styles["fold"]}>
        <summary>
          {t("state")} <span className={styles["muted"]}>{t("operations", { count: data.operations.length })}</span>
        </summary>
        {data.analysis !== "" && <LongText text={data.analysis} label={t("analysis")} fileName="analysis.txt" prose />}
        <table className={styles["table"]} aria-label={t("state")}>
          <tbody>
            {data.operations.map(({ op, path, value, refused }, index) => {
              const result = data.results?.find((one) => one.index === index);
              const reason = refused ?? (result?.ok === false ? result.reason : null);
              return (
                <tr key={index}>
                  <th scope="row">
                    {op} {path}
                  </th>
                  <td>
                    {value !== undefined && <ValueText value={JSON.stringify(value)} label={path} />}
                    {reason !== null && reason !== undefined && (
                      <span className={styles["muted"]}> {t("refused", { reason })}</span>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </details>
    </div>
  );
}

function Plan({ data }: { data: EventData<"plan"> }) {
  const t = useText(reply);
  const tag = data.is_fallback ? "planFallback" : data.executable ? "planExecutable" : "planNotExecutable";
  return (
    <div className={styles["block"]}>
      <BlockHead title={t("plan")} tag={t(tag)} />
      <JsonText value={data.plan} label={t("plan")} />
    </div>
  );
}
