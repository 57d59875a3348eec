import { Alert } from "antd";
import { FileText } from "../../components/FileText.tsx";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { type LargeKind, MOST_BYTES, commandOf } from "./large.ts";

type LargeTextProps = {
  file: Blob;
  name: string;
  kind: LargeKind;
  dialect: string;
  /** Reason why the server refused it; absent if it was not sent at all. */
  reason?: string;
};

/** Text too large to inspect: shown in parts, with the command that checks it. */
export function LargeText({ file, name, kind, dialect, reason }: LargeTextProps) {
  const t = useText(inspect);
  const { bytes } = useFormat();
  return (
    <>
      <Alert
        type="warning"
        showIcon
        role="alert"
        style={{ marginBottom: 16 }}
        title={t("tooLarge")}
        description={
          <>
            <p>{reason ?? t("tooLargeHint", { size: bytes(file.size), most: bytes(MOST_BYTES) })}</p>
            <p>{t("tooLargeCommand")}</p>
            <code>{commandOf(kind, { name, size: file.size, dialect })}</code>
          </>
        }
      />
      <FileText file={file} name={name} label={name} />
    </>
  );
}
