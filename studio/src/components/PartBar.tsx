import { DownloadOutlined, LeftOutlined, RightOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { common } from "../i18n/texts/common.ts";
import { useFormat, useText } from "../i18n/useText.ts";
import styles from "./PartBar.module.css";

type PartBarProps = {
  part: number;
  parts: number;
  /** Size of the whole. */
  size: number;
  onPart: (part: number) => void;
  onDownload: () => void;
};

/** Displayed part of a long text, with the ways to the others and the whole as a file. */
export function PartBar({ part, parts, size, onPart, onDownload }: PartBarProps) {
  const t = useText(common);
  const format = useFormat();
  return (
    <div className={styles["bar"]}>
      <Button size="small" icon={<LeftOutlined />} aria-label={t("previousPart")} disabled={part === 0} onClick={() => onPart(part - 1)} />
      <span role="status">{t("partShown", { part: part + 1, parts, size: format.bytes(size) })}</span>
      <Button size="small" icon={<RightOutlined />} aria-label={t("nextPart")} disabled={part === parts - 1} onClick={() => onPart(part + 1)} />
      <Button size="small" icon={<DownloadOutlined />} onClick={onDownload}>
        {t("download")}
      </Button>
    </div>
  );
}
