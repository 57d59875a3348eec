import { useState } from "react";
import { useResource } from "../api/useResource.ts";
import { download } from "./download.ts";
import { ErrorState } from "./ErrorState.tsx";
import styles from "./LongText.module.css";
import { PartBar } from "./PartBar.tsx";
import { filePart, filePartCount } from "./textParts.ts";

type FileTextProps = { file: Blob; name: string; label: string; maxHeight?: number | string };

/** File of any size as text: only the displayed part is read. */
export function FileText({ file, name, label, maxHeight = "60vh" }: FileTextProps) {
  const parts = filePartCount(file.size);
  const [part, setPart] = useState(0);
  const { data, error, reload } = useResource(String(part), () => filePart(file, part));
  return (
    <div className={styles["text"]}>
      <PartBar part={part} parts={parts} size={file.size} onPart={setPart} onDownload={() => download(name, file)} />
      {error !== null && <ErrorState error={error} onRetry={reload} />}
      {/* Keys scroll the focused element. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={styles["body"]} style={{ maxHeight }} tabIndex={0} role="region" aria-label={label}>
        {data}
      </pre>
    </div>
  );
}
