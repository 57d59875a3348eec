import { DownloadOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { useMemo } from "react";
import { download } from "../../components/download.ts";
import { VirtualList } from "../../components/VirtualList.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import { diffLines } from "./diff.ts";
import styles from "./Inspect.module.css";

const SIGNS = { same: " ", removed: "−", added: "+" } as const;

/** Reply before and after its repair, by lines. */
export function Comparison({ before, after, height }: { before: string; after: string | null; height: number }) {
  const t = useText(inspect);
  const lines = useMemo(() => (after === null ? [] : diffLines(before, after)), [before, after]);
  if (after === null) return <p className={styles["muted"]}>{t("notRepaired")}</p>;
  if (after === before) return <p className={styles["muted"]}>{t("same")}</p>;
  return (
    <div className={styles["parts"]}>
      <div className={styles["plain"]}>
        <VirtualList
          label={t("differences")}
          count={lines.length}
          rowHeight={20}
          height={height - 44}
          row={(index) => {
            const line = lines[index];
            if (line === undefined) return null;
            return (
              <div className={`${styles["diff"] ?? ""} ${styles[line.kind] ?? ""}`}>
                <span aria-hidden="true">{SIGNS[line.kind]}</span>
                <span>
                  {line.kind !== "same" && <span className="visually-hidden">{t(line.kind)}</span>}
                  {line.text}
                </span>
              </div>
            );
          }}
        />
      </div>
      <div>
        <Button icon={<DownloadOutlined />} onClick={() => download("repaired.txt", after)}>
          {t("downloadRepaired")}
        </Button>
      </div>
    </div>
  );
}
