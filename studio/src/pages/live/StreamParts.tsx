import { Segmented } from "antd";
import { useMemo, useState } from "react";
import { eventAt, eventIn, placesOf } from "../../components/reply/align.ts";
import { ByteIndex } from "../../components/reply/bytes.ts";
import { EventList } from "../../components/reply/EventList.tsx";
import { FindingList } from "../../components/reply/FindingList.tsx";
import { MarkedText } from "../../components/reply/MarkedText.tsx";
import { live } from "../../i18n/texts/live.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./Live.module.css";
import { type RunView } from "./MessageRun.ts";
import { ModelCalls } from "./ModelCalls.tsx";

type Chosen = { readonly event: number | null; readonly finding: number | null };

const NOTHING: Chosen = { event: null, finding: null };

/** Raw text, events and findings in sync: selecting one shows the others. */
export function StreamParts({ view, running }: { view: RunView; running: boolean }) {
  const t = useText(live);
  const texts = useText(reply);
  const format = useFormat();
  const [part, setPart] = useState<"events" | "findings" | "calls">("events");
  const [chosen, setChosen] = useState<Chosen>(NOTHING);
  const { raw, events, times, model } = view;
  const { findings } = model;
  const count = events.length;
  // While the message runs, places are searched only on demand.
  const wanted = chosen !== NOTHING || !running;
  const places = useMemo(
    () => (wanted ? placesOf(raw, events.slice(0, count)) : []),
    [wanted, raw, events, count],
  );

  function chooseEvent(event: number): void {
    const place = placesOf(raw, events.slice(0, event + 1))[event] ?? null;
    const bytes = new ByteIndex(raw);
    const near = place === null ? -1 : findings.findIndex(({ span }) => {
      const [start, end] = [bytes.unitAt(span.start), bytes.unitAt(span.end)];
      return start < place.end && end >= place.start;
    });
    setChosen({ event, finding: near === -1 ? null : near });
  }

  function chooseFinding(finding: number): void {
    const start = findings[finding]?.span.start ?? 0;
    setChosen({ finding, event: eventAt(placesOf(raw, events), new ByteIndex(raw).unitAt(start)) });
  }

  const place = chosen.event === null ? null : (places[chosen.event] ?? null);
  const named = (name: string, number: number) => `${name} ${format.number(number)}`;
  return (
    <>
      <div className={styles["part"]}>
        <h2 className={styles["partTitle"]}>{texts("rawText")}</h2>
        {raw === "" ? (
          <p className={styles["hint"]}>{texts("noRaw")}</p>
        ) : (
          <MarkedText
            text={raw}
            label={texts("rawText")}
            findings={findings}
            chosen={chosen.finding}
            onChoose={chooseFinding}
            place={place}
            onPlace={(start, end) => setChosen({ event: eventIn(placesOf(raw, events), start, end), finding: null })}
            height={260}
            follow={running}
          />
        )}
      </div>
      <div className={styles["part"]}>
        <Segmented
          block
          value={part}
          onChange={setPart}
          options={[
            { value: "events" as const, label: named(texts("events"), count) },
            { value: "findings" as const, label: named(texts("findings"), findings.length) },
            { value: "calls" as const, label: t("calls") },
          ]}
        />
        {part === "events" && (
          <EventList
            events={events}
            {...(view.watched ? { times } : {})}
            selected={chosen.event}
            onSelect={chooseEvent}
            height={300}
            follow={running && chosen.event === null}
          />
        )}
        {part === "findings" && (
          <FindingList findings={findings} selected={chosen.finding} onSelect={chooseFinding} height={300} running={running} />
        )}
        {part === "calls" && <ModelCalls record={view.record} />}
      </div>
    </>
  );
}
