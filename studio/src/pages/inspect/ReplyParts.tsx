import { Segmented } from "antd";
import { useMemo, useState } from "react";
import { eventAt, eventIn, placesOf } from "../../components/reply/align.ts";
import { ByteIndex } from "../../components/reply/bytes.ts";
import { EventList } from "../../components/reply/EventList.tsx";
import { FindingList } from "../../components/reply/FindingList.tsx";
import { MarkedText } from "../../components/reply/MarkedText.tsx";
import { ReplyModel } from "../../components/reply/ReplyModel.ts";
import { ReplyView } from "../../components/reply/ReplyView.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { Comparison } from "./Comparison.tsx";
import styles from "./Inspect.module.css";
import { RuleVerdicts } from "./RuleVerdicts.tsx";
import { type Reading } from "./TextInspection.tsx";

type Part = "findings" | "events" | "shown" | "comparison" | "rules";

/** Text with its marks, beside the result of reading it. */
export function ReplyParts({ text, reading, height = 560 }: { text: string; reading: Reading; height?: number }) {
  const t = useText(inspect);
  const texts = useText(reply);
  const { number } = useFormat();
  const [part, setPart] = useState<Part>("findings");
  const [finding, setFinding] = useState<number | null>(null);
  const [event, setEvent] = useState<number | null>(null);
  const { findings, events, repaired, contract } = reading;
  // Another text has other findings and events.
  const [shown, setShown] = useState(text);
  if (shown !== text) {
    setShown(text);
    setFinding(null);
    setEvent(null);
  }
  const places = useMemo(() => placesOf(text, events), [text, events]);
  const model = useMemo(() => ReplyModel.of(events), [events]);
  // A reply without repairs stays verbatim, however its dialect would write it.
  const mended = findings.some(({ repair }) => repair !== null) || reading.verdict === "fail";
  const after = mended ? (repaired ?? null) : text;
  const place = event === null ? null : (places[event] ?? null);

  const chooseFinding = (chosen: number) => {
    setFinding(chosen);
    setEvent(eventAt(places, new ByteIndex(text).unitAt(findings[chosen]?.span.start ?? 0)));
  };
  const chooseEvent = (chosen: number) => {
    setEvent(chosen);
    const at = places[chosen];
    const bytes = new ByteIndex(text);
    const near = at == null ? -1 : findings.findIndex(({ span }) => {
      return bytes.unitAt(span.start) < at.end && bytes.unitAt(span.end) >= at.start;
    });
    setFinding(near === -1 ? null : near);
  };
  const options: { value: Part; label: string }[] = [
    { value: "findings", label: `${texts("findings")} ${number(findings.length)}` },
    { value: "events", label: `${texts("events")} ${number(events.length)}` },
    { value: "shown", label: t("shown") },
    ...(repaired === undefined ? [] : [{ value: "comparison" as const, label: t("beforeAfter") }]),
    { value: "rules", label: t("byRule") },
  ];
  return (
    <div className={styles["split"]}>
      <MarkedText
        text={text}
        label={texts("rawText")}
        findings={findings}
        chosen={finding}
        onChoose={(chosen) => {
          chooseFinding(chosen);
          if (part === "shown" || part === "comparison") setPart("findings");
        }}
        place={place}
        onPlace={(start, end) => {
          setEvent(eventIn(places, start, end));
          setFinding(null);
        }}
        height={height}
      />
      <div className={styles["parts"]}>
        <div className={styles["choices"]}>
          <Segmented value={part} onChange={setPart} options={options} />
        </div>
        {part === "findings" && (
          <FindingList findings={findings} selected={finding} onSelect={chooseFinding} height={height - 48} />
        )}
        {part === "events" && (
          <EventList events={events} selected={event} onSelect={chooseEvent} height={height - 48} />
        )}
        {part === "shown" && (
          <div className={styles["surface"]}>
            <ReplyView model={model} />
          </div>
        )}
        {part === "comparison" && <Comparison before={text} after={after} height={height - 48} />}
        {part === "rules" && <RuleVerdicts contract={contract} findings={findings} height={height - 48} />}
      </div>
    </div>
  );
}
