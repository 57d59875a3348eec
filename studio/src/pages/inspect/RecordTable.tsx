import { Badge } from "../../components/reply/Badge.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./Inspect.module.css";
import { type RecordIndex } from "./records/RecordIndex.ts";

type RecordTableProps = {
  index: RecordIndex;
  rows: Uint32Array;
  chosen: number | null;
  onChoose: (at: number) => void;
};

const STATE_TONES = { pass: "success", fail: "danger", unchecked: "muted", unreadable: "warning" } as const;

/** Records in the order of the file. */
export function RecordTable({ index, rows, chosen, onChoose }: RecordTableProps) {
  const t = useText(inspect);
  const { number } = useFormat();
  const selected = chosen === null ? -1 : rows.indexOf(chosen);
  return (
    <VirtualList
      label={t("records")}
      count={rows.length}
      rowHeight={38}
      height={420}
      selected={selected === -1 ? null : selected}
      onSelect={(place) => onChoose(rows[place] ?? 0)}
      row={(place) => {
        const at = rows[place] ?? 0;
        const state = index.stateOf(at);
        const count = index.countOf(at);
        return (
          <div className={styles["record"]}>
            <span className={styles["number"]}>{number(at + 1)}</span>
            <span className={styles["id"]}>{index.idOf(at)}</span>
            <span className={styles["model"]}>{index.modelOf(at)}</span>
            <span className={styles["preview"]}>{index.previewOf(at)}</span>
            <span className={styles["count"]}>{count === 0 ? "" : t("findingCount", { count })}</span>
            <Badge tone={STATE_TONES[state]}>{t(state)}</Badge>
          </div>
        );
      }}
    />
  );
}
