import { VirtualList } from "../../../components/VirtualList.tsx";
import { linesOf } from "./unified.ts";
import styles from "./UnifiedDiff.module.css";

const SIGNS = { added: "+", removed: "−", same: " ", head: "", place: "", note: "" } as const;

/** Unified diff with coloured lines; signs serve users who do not see colours. */
export function UnifiedDiff({ diff, label }: { diff: string; label: string }) {
  const lines = linesOf(diff);
  return (
    <VirtualList
      label={label}
      count={lines.length}
      rowHeight={24}
      height={`min(50vh, ${lines.length * 25 + 2}px)`}
      row={(index) => {
        const line = lines[index];
        if (line === undefined) return null;
        return (
          <div className={`${styles["line"] ?? ""} ${styles[line.kind] ?? ""}`}>
            <span className={styles["sign"]}>{SIGNS[line.kind]}</span>
            <span className={styles["text"]}>{line.text}</span>
          </div>
        );
      }}
    />
  );
}
