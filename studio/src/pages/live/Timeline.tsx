import { useMemo } from "react";
import { live } from "../../i18n/texts/live.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./Live.module.css";
import { type RunView } from "./MessageRun.ts";
import { lengthOf, type TimelineFigures, timelineOf } from "./timeline.ts";

const WIDTH = 600;
const HEIGHT = 44;

/** Arrival times of the pieces of a reply. */
export function Timeline({ view, running }: { view: RunView; running: boolean }) {
  const t = useText(live);
  const { events, times, watched, record, outages } = view;
  const count = events.length;
  const figures = useMemo(() => timelineOf(events.slice(0, count), times), [events, times, count]);
  const format = useDuration();
  const title = <h2 className={styles["partTitle"]}>{t("timeline")}</h2>;
  if (!watched) {
    const timings = (record?.timings ?? {}) as { first_byte_ms?: number; total_ms?: number };
    const shown = (value: number | undefined) => (value === undefined ? "–" : format(value));
    return (
      <div className={styles["part"]}>
        {title}
        <p className={styles["hint"]}>{t("replayed")}</p>
        <FigureList
          items={[
            [t("firstByte"), shown(timings.first_byte_ms)],
            [t("total"), shown(timings.total_ms)],
          ]}
        />
      </div>
    );
  }
  return (
    <div className={styles["part"]}>
      {title}
      {figures.pieces === 0 ? (
        <p className={styles["hint"]}>{t("noTimes")}</p>
      ) : (
        <Drawing figures={figures} outages={outages} running={running} />
      )}
      <Figures figures={figures} />
    </div>
  );
}

function Figures({ figures }: { figures: TimelineFigures }) {
  const t = useText(live);
  const { number } = useFormat();
  const format = useDuration();
  const shown = (value: number | null) => (value === null ? "–" : format(value));
  const { firstText, firstAnswer, end, longestGap, medianGap, pieces, characters } = figures;
  const seconds = (end - (firstText ?? 0)) / 1000;
  const items = [
    [t("firstText"), shown(firstText)],
    [t("firstAnswer"), shown(firstAnswer)],
    [t("total"), shown(end)],
    [t("longestGap"), shown(longestGap === null ? null : lengthOf(longestGap))],
    [t("medianGap"), shown(medianGap)],
    [t("pieces"), number(pieces)],
    [t("rate"), seconds > 0 ? number(characters / seconds) : "–"],
  ] as const;
  return <FigureList items={items} />;
}

function FigureList({ items }: { items: readonly (readonly [name: string, value: string])[] }) {
  return (
    <dl className={styles["figures"]}>
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

type DrawingProps = { figures: TimelineFigures; outages: RunView["outages"]; running: boolean };

function Drawing({ figures, outages, running }: DrawingProps) {
  const t = useText(live);
  const { number } = useFormat();
  const format = useDuration();
  const { spans, end, gaps, firstText, pieces } = figures;
  const most = Math.max(1, ...spans);
  const wide = WIDTH / spans.length;
  const x = (at: number) => Math.min(WIDTH, (at / end) * WIDTH);
  return (
    <svg
      className={styles["timeline"]}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={t("timelineOf", { pieces, end: format(end) })}
      data-running={running}
    >
      {gaps.map((gap) => (
        <rect key={gap.from} className={styles["gap"]} x={x(gap.from)} width={Math.max(1, x(gap.to) - x(gap.from))} y={0} height={HEIGHT}>
          <title>{t("gapAt", { length: format(lengthOf(gap)), from: format(gap.from) })}</title>
        </rect>
      ))}
      {outages.map(({ from, to }) => (
        <rect key={from} className={styles["outage"]} x={x(from)} width={Math.max(2, x(to ?? end) - x(from))} y={0} height={HEIGHT}>
          <title>{t("outageAt", { length: format((to ?? end) - from) })}</title>
        </rect>
      ))}
      {spans.map((count, index) =>
        count === 0 ? null : (
          <rect
            key={index}
            className={styles["piece"]}
            x={index * wide}
            width={Math.max(1, wide - 1)}
            y={HEIGHT - 4 - (count / most) * (HEIGHT - 10)}
            height={(count / most) * (HEIGHT - 10) + 2}
          >
            <title>{number(count)}</title>
          </rect>
        ),
      )}
      {firstText !== null && <line className={styles["firstText"]} x1={x(firstText)} x2={x(firstText)} y1={0} y2={HEIGHT} />}
    </svg>
  );
}

function useDuration(): (milliseconds: number) => string {
  const t = useText(live);
  const { number } = useFormat();
  return (milliseconds) =>
    milliseconds < 1000
      ? t("milliseconds", { count: number(milliseconds) })
      : t("seconds", { count: number(milliseconds / 1000, 2) });
}
