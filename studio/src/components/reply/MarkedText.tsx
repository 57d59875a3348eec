import { DownloadOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { useMemo, useState } from "react";
import { type Finding } from "../../api/types.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { download } from "../download.ts";
import { PartBar } from "../PartBar.tsx";
import { PART_LENGTH, partStarts } from "../textParts.ts";
import { VirtualList } from "../VirtualList.tsx";
import { type Place } from "./align.ts";
import { type Line, lineAt, linesOf, marksOf, numbersAt, partAt, type Segment, segmentsOf } from "./lines.ts";
import styles from "./MarkedText.module.css";

type MarkedTextProps = {
  text: string;
  label: string;
  findings?: readonly Finding[];
  /** Selected finding, scrolled into view. */
  chosen?: number | null;
  onChoose?: (finding: number) => void;
  /** Place to scroll to and mark, such as that of an event. */
  place?: Place | null;
  /** Called with the ends of a clicked line. */
  onPlace?: (start: number, end: number) => void;
  height?: number | string;
  follow?: boolean;
};

const NONE: readonly Finding[] = [];

/** Characters of a part; a longer text is shown in parts. */
const PART = 1_000_000;

/** Text by lines, with the places of findings marked. */
export function MarkedText(props: MarkedTextProps) {
  const { text, label, findings = NONE, chosen = null, onChoose, place = null, onPlace, height = 420, follow = false } = props;
  const t = useText(reply);
  const { bytes } = useFormat();
  const starts = useMemo(() => partStarts(text, PART), [text]);
  const numbers = useMemo(() => numbersAt(text, starts), [text, starts]);
  const marks = useMemo(() => marksOf(text, findings), [text, findings]);
  const mark = chosen === null ? undefined : marks.find(({ finding }) => finding === chosen);
  const shown = mark?.start ?? place?.start;
  // Part chosen by the user, until another place is to be shown.
  const [turned, setTurned] = useState<{ part: number; from: number | undefined } | null>(null);
  const parts = starts.length;
  const wanted = shown === undefined ? (follow ? parts - 1 : 0) : partAt(starts, shown);
  const part = turned !== null && turned.from === shown ? Math.min(turned.part, parts - 1) : wanted;
  const [start, end] = [starts[part] ?? 0, starts[part + 1] ?? text.length];
  const lines = useMemo(() => linesOf(text, start, end, numbers[part]), [text, start, end, numbers, part]);
  return (
    <div className={styles["plain"]}>
      {parts > 1 && (
        <PartBar part={part} parts={parts} size={text.length} onPart={(next) => setTurned({ part: next, from: shown })} onDownload={() => download("reply.txt", text)} />
      )}
      {parts === 1 && text.length > PART_LENGTH && (
        <Button size="small" icon={<DownloadOutlined />} onClick={() => download("reply.txt", text)}>
          {t("downloadRaw", { size: bytes(text.length) })}
        </Button>
      )}
      <VirtualList
        key={part}
        label={label}
        count={lines.length}
        rowHeight={20}
        height={height}
        follow={follow}
        selected={shown === undefined || shown < start || shown >= end ? null : lineAt(lines, shown)}
        row={(index) => {
          const line = lines[index];
          if (line === undefined) return null;
          const segments = segmentsOf(text, line, marks);
          return (
            <TextLine
              line={line}
              segments={place === null ? segments : withPlace(segments, line, place)}
              {...{ findings, chosen, onChoose, onPlace }}
            />
          );
        }}
      />
    </div>
  );
}

type Shown = Segment & { inPlace?: boolean };

/** Segments that are also split at the ends of a place. */
function withPlace(segments: readonly Segment[], line: Line, place: Place): Shown[] {
  let at = line.start;
  return segments.flatMap((segment) => {
    const start = at;
    at += segment.text.length;
    const from = Math.min(Math.max(place.start - start, 0), segment.text.length);
    const to = Math.min(Math.max(place.end - start, 0), segment.text.length);
    if (from >= to) return [segment];
    return [
      { ...segment, text: segment.text.slice(0, from) },
      { ...segment, text: segment.text.slice(from, to), inPlace: true },
      { ...segment, text: segment.text.slice(to) },
    ].filter((piece) => piece.text !== "");
  });
}

type TextLineProps = {
  line: Line;
  segments: readonly Shown[];
  findings: readonly Finding[];
  chosen: number | null;
  onChoose: ((finding: number) => void) | undefined;
  onPlace: ((start: number, end: number) => void) | undefined;
};

function TextLine({ line, segments, findings, chosen, onChoose, onPlace }: TextLineProps) {
  const t = useText(reply);
  return (
    // The keyboard selects events in their own list; clicking is a shortcut.
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions
    <div className={styles["line"]} onClick={onPlace === undefined ? undefined : () => onPlace(line.start, line.end)}>
      <span className={styles["number"]} aria-hidden="true">
        {line.first ? line.number : ""}
      </span>
      <span className={styles["text"]}>
        {segments.map((segment, index) => {
          const number = segment.marks.at(-1);
          const finding = number === undefined ? undefined : findings[number];
          const here = segment.inPlace === true ? styles["place"] : undefined;
          if (number === undefined || finding === undefined) {
            return (
              <span key={index} className={here}>
                {segment.text}
              </span>
            );
          }
          const active = chosen !== null && segment.marks.includes(chosen);
          const classes = [styles["mark"], styles[finding.severity], active ? styles["chosen"] : "", here].join(" ");
          const about = t("markOf", { code: finding.code, message: finding.message });
          return (
            <button
              key={index}
              type="button"
              className={classes}
              title={about}
              onClick={(click) => {
                click.stopPropagation();
                onChoose?.(next(segment.marks, chosen));
              }}
            >
              {segment.text}
              <span className="visually-hidden">{about}</span>
            </button>
          );
        })}
      </span>
    </div>
  );
}

/** Finding to select at a place: the one before the selected one, so that clicks select each in turn. */
function next(marks: readonly number[], chosen: number | null): number {
  const at = chosen === null ? -1 : marks.indexOf(chosen);
  return marks.at(at === -1 ? -1 : at - 1) ?? 0;
}
