import { Button } from "antd";
import { useEffect, useId, useRef, useState } from "react";
import { common } from "../i18n/texts/common.ts";
import { useFormat, useText } from "../i18n/useText.ts";
import styles from "./Plot.module.css";
import { scaleOf, spread } from "./plot/scale.ts";

export type Series = {
  readonly name: string;
  /** Value for each label; `null` for a gap. */
  readonly values: readonly (number | null)[];
};

type PlotProps = {
  title: string;
  /** Sentence that describes the plot, for screen readers. */
  description?: string;
  /** Labels along the horizontal axis: days, rounds and the like. */
  labels: readonly string[];
  /** Column heading of the labels in the table. */
  labelName: string;
  series: readonly Series[];
  /** Lines, bars side by side, or bars on top of each other. */
  kind?: "line" | "bar" | "stacked";
  format?: (value: number) => string;
  /** Range that the vertical axis always covers, such as 0 to 100. */
  range?: readonly [number, number];
  /** Horizontal line, such as a threshold. */
  threshold?: { readonly value: number; readonly name: string };
  height?: number;
  /** True if the title is visible; not needed in a section of the same title. */
  titled?: boolean;
};

/** Width before the container is measured. */
const WIDTH = 640;
const LEFT = 56;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 26;

/** Plot of a few series, or the same data as a table. */
export function Plot(props: PlotProps) {
  const { title, description, labels, labelName, series, kind = "line", threshold, height = 200, titled = true } = props;
  const t = useText(common);
  const { number } = useFormat();
  const format = props.format ?? ((value: number) => number(value, 2));
  const id = useId();
  const [table, setTable] = useState(false);
  const [place, width] = useWidth();
  const known = series.flatMap(({ values }) => values.filter((value) => value !== null));
  const empty = known.length === 0;
  return (
    <figure ref={place} className={styles["figure"]}>
      <figcaption className={styles["caption"]}>
        <span className={titled ? undefined : "visually-hidden"}>{title}</span>
        {!empty && (
          <Button size="small" type="text" onClick={() => setTable(!table)}>
            {t(table ? "showPlot" : "showTable")}
          </Button>
        )}
      </figcaption>
      {empty ? (
        <p className={styles["none"]}>{t("noPoints")}</p>
      ) : table ? (
        <Table labels={labels} labelName={labelName} series={series} format={format} title={title} />
      ) : (
        <>
          <svg
            className={styles["plot"]}
            viewBox={`0 0 ${width} ${height}`}
            role="img"
            aria-labelledby={`${id}-title ${id}-description`}
          >
            <title id={`${id}-title`}>{title}</title>
            <desc id={`${id}-description`}>{description ?? series.map(({ name }) => name).join(", ")}</desc>
            <Drawing {...{ labels, series, kind, range: props.range ?? [], threshold, width, height, format }} />
          </svg>
          {(series.length > 1 || threshold !== undefined) && (
            <ul className={styles["legend"]}>
              {series.map(({ name }, index) => (
                <li key={name}>
                  <span className={styles["swatch"]} style={{ background: colourOf(index) }} aria-hidden="true" />
                  {name}
                </li>
              ))}
              {threshold !== undefined && (
                <li>
                  <span className={styles["dash"]} aria-hidden="true" />
                  {threshold.name}
                </li>
              )}
            </ul>
          )}
        </>
      )}
    </figure>
  );
}

/** Current width of the container, so that letters keep their size. */
function useWidth() {
  const place = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(WIDTH);
  useEffect(() => {
    if (place.current === null) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(200, Math.round(entry?.contentRect.width ?? WIDTH))));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return [place, width] as const;
}

const colourOf = (index: number): string => `var(--plot-${(index % 6) + 1})`;

type DrawingProps = Required<Pick<PlotProps, "labels" | "series" | "kind" | "height" | "format">> & {
  threshold: PlotProps["threshold"];
  range: readonly number[];
  width: number;
};

function Drawing({ labels, series, kind, range, threshold, width, height, format }: DrawingProps) {
  const known = series.flatMap(({ values }) => values.filter((value) => value !== null));
  const stacked = kind === "stacked";
  /** Sum of the values of a label in the series before one. */
  const before = (index: number, end: number) =>
    series.slice(0, end).reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
  const shown = stacked ? labels.map((_, index) => before(index, series.length)) : known;
  const scale = scaleOf([...shown, ...range, ...(threshold === undefined ? [] : [threshold.value])]);
  const wide = width - LEFT - RIGHT;
  const bars = kind !== "line";
  const step = bars ? wide / labels.length : wide / Math.max(1, labels.length - 1);
  const x = (index: number) => LEFT + (bars ? (index + 0.5) * step : labels.length === 1 ? wide / 2 : index * step);
  const y = (value: number) => TOP + (1 - (value - scale.min) / (scale.max - scale.min)) * (height - TOP - BOTTOM);
  const barWidth = Math.max(2, Math.min(28, (step * 0.7) / (stacked ? 1 : series.length)));
  const longest = Math.max(1, ...labels.map((label) => label.length));
  const labelWidth = Math.min(90, 16 + 9 * longest);
  // The last label would stand over the edge.
  const anchorOf = (index: number) => (index > 0 && index === labels.length - 1 ? "end" : "middle");
  return (
    <>
      {scale.ticks.map((tick) => (
        <g key={tick}>
          <line x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} className={styles["grid"]} />
          <text x={LEFT - 8} y={y(tick) + 4} textAnchor="end" className={styles["tick"]}>
            {format(tick)}
          </text>
        </g>
      ))}
      {spread(labels.length, Math.max(2, Math.floor(wide / labelWidth))).map((index) => (
        <text key={index} x={anchorOf(index) === "end" ? width : x(index)} y={height - 6} textAnchor={anchorOf(index)} className={styles["tick"]}>
          {labels[index]}
        </text>
      ))}
      {threshold !== undefined && (
        <line
          x1={LEFT}
          x2={width - RIGHT}
          y1={y(threshold.value)}
          y2={y(threshold.value)}
          className={styles["threshold"]}
        />
      )}
      {series.map(({ name, values }, number) => (
        <g key={name} style={{ color: colourOf(number) }}>
          {!bars && <path d={pathOf(values, x, y)} className={styles["line"]} />}
          {values.map((value, index) => {
            if (value === null) return null;
            const label = `${name}, ${labels[index] ?? ""}: ${format(value)}`;
            if (!bars) {
              return (
                <circle key={index} cx={x(index)} cy={y(value)} r={values.length > 60 ? 1.5 : 3} fill="currentColor">
                  <title>{label}</title>
                </circle>
              );
            }
            const left = x(index) + (stacked ? -0.5 : number - series.length / 2) * barWidth;
            const foot = stacked ? before(index, number) : 0;
            const [above, below] = [Math.min(y(foot + value), y(foot)), Math.max(y(foot + value), y(foot))];
            return (
              <rect key={index} x={left} y={above} width={barWidth - 1} height={below - above} fill="currentColor">
                <title>{label}</title>
              </rect>
            );
          })}
        </g>
      ))}
    </>
  );
}

/** Line through the values, interrupted at gaps. */
function pathOf(values: readonly (number | null)[], x: (index: number) => number, y: (value: number) => number): string {
  let joined = false;
  return values
    .map((value, index) => {
      if (value === null) {
        joined = false;
        return "";
      }
      const command = joined ? "L" : "M";
      joined = true;
      return `${command}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join("");
}

type TableProps = Required<Pick<PlotProps, "labels" | "labelName" | "series" | "format" | "title">>;

function Table({ labels, labelName, series, format, title }: TableProps) {
  return (
    // Keys scroll the focused element.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles["table"]} tabIndex={0} role="region" aria-label={title}>
      <table>
        <thead>
          <tr>
            <th scope="col">{labelName}</th>
            {series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {labels.map((label, index) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {series.map(({ name, values }) => {
                const value = values[index] ?? null;
                return <td key={name}>{value === null ? "–" : format(value)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
