import { useMemo, useState } from "react";
import { download } from "./download.ts";
import styles from "./LongText.module.css";
import { PartBar } from "./PartBar.tsx";
import { partStarts } from "./textParts.ts";

type LongTextProps = {
  text: string;
  label: string;
  /** File name of the download. */
  fileName?: string;
  maxHeight?: number | string;
  /** Hides the frame, for a text inside another frame. */
  bare?: boolean;
  /** Prose rather than data: page font, no frame, natural height. */
  prose?: boolean;
};

/** Plain text of any length: a long one is shown in parts and can be downloaded in full. */
export function LongText(props: LongTextProps) {
  const { text, label, fileName = "text.txt", maxHeight = "60vh", bare = false, prose = false } = props;
  const starts = useMemo(() => partStarts(text), [text]);
  const [chosen, setChosen] = useState(0);
  const part = Math.min(chosen, starts.length - 1);
  const shown = text.slice(starts[part], starts[part + 1]);
  return (
    <div className={bare || prose ? `${styles["text"] ?? ""} ${styles["bare"] ?? ""}` : styles["text"]}>
      {starts.length > 1 && (
        <PartBar part={part} parts={starts.length} size={text.length} onPart={setChosen} onDownload={() => download(fileName, text)} />
      )}
      {prose ? (
        <div className={styles["prose"]}>{shown}</div>
      ) : (
        // Keys scroll the focused element.
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <pre className={styles["body"]} style={{ maxHeight }} tabIndex={0} role="region" aria-label={label}>
          {shown}
        </pre>
      )}
    </div>
  );
}
