import { type TypedEvent } from "../../api/types.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { VirtualList } from "../VirtualList.tsx";
import styles from "./lists.module.css";

type EventListProps = {
  events: readonly TypedEvent[];
  /** Arrival times in milliseconds from the start. */
  times?: readonly number[];
  selected?: number | null;
  onSelect?: (index: number) => void;
  height?: number | string;
  follow?: boolean;
};

const IDS = new Set(["message_id", "request_id"]);

/** Data of an event in one line, without the ids that all events have. */
function short({ data }: TypedEvent): string {
  const fields = Object.entries(data as Readonly<Record<string, unknown>>).filter(([name]) => !IDS.has(name));
  if (fields.length === 0) return "";
  const [first] = fields;
  if (fields.length === 1 && first !== undefined && typeof first[1] === "string") return JSON.stringify(first[1].slice(0, 200));
  return JSON.stringify(Object.fromEntries(fields)).slice(0, 300);
}

/** Events in order of arrival. */
export function EventList(props: EventListProps) {
  const { events, times, selected = null, onSelect, height = 420, follow = false } = props;
  const t = useText(reply);
  const format = useFormat();
  if (events.length === 0) return <p className={styles["none"]}>{t("noEvents")}</p>;
  return (
    <VirtualList
      label={t("events")}
      count={events.length}
      rowHeight={30}
      height={height}
      follow={follow}
      selected={selected}
      {...(onSelect === undefined ? {} : { onSelect })}
      row={(index) => {
        const event = events[index];
        if (event === undefined) return null;
        const at = times?.[index];
        return (
          <div className={`${styles["event"] ?? ""} ${times === undefined ? (styles["compact"] ?? "") : ""}`}>
            {times !== undefined && (
              <span className={styles["at"]}>{at === undefined ? "" : t("milliseconds", { count: format.number(at) })}</span>
            )}
            <span className={styles["name"]}>{event.event}</span>
            <span className={styles["data"]}>{short(event)}</span>
          </div>
        );
      }}
    />
  );
}
