import { InboxOutlined } from "@ant-design/icons";
import { Alert, Button, Spin } from "antd";
import { type DragEvent, useRef, useState } from "react";
import { Link } from "react-router";
import { useProblemText } from "../../../components/useProblemText.ts";
import { imports } from "../../../i18n/texts/imports.ts";
import { prompts } from "../../../i18n/texts/prompts.ts";
import { useText } from "../../../i18n/useText.ts";
import { keepSkein } from "../preview/keptSkein.ts";
import styles from "./DropZone.module.css";
import { addressOfImport, importFiles, type ImportedFile, type ImportOutcome } from "./importFiles.ts";

/** Accepts files by drop or selection, imports them, and shows the result of each. */
export function DropZone({ onImported }: { onImported: () => void }) {
  const t = useText(imports);
  const { lineOf } = useProblemText();
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(0);
  const [outcome, setOutcome] = useState<ImportOutcome | null>(null);

  async function take(files: readonly File[]): Promise<void> {
    if (files.length === 0) return;
    setBusy(files.length);
    setOutcome(null);
    try {
      const told = await importFiles(files);
      setOutcome(told);
      if (told.kind === "imported") onImported();
    } catch (error) {
      setOutcome({ kind: "refused", broken: [], detail: lineOf(error) });
    }
    setBusy(0);
  }

  function dragged(event: DragEvent, inside: boolean): void {
    event.preventDefault();
    setOver(inside);
  }

  return (
    <div>
      {/* Files are dropped on the zone; the keyboard uses the button inside. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <div
        className={`${styles["zone"] ?? ""} ${over ? (styles["over"] ?? "") : ""}`}
        role="group"
        aria-label={t("drop")}
        onDragEnter={(event) => dragged(event, true)}
        onDragOver={(event) => dragged(event, true)}
        onDragLeave={(event) => dragged(event, false)}
        onDrop={(event) => {
          dragged(event, false);
          void take(Array.from(event.dataTransfer.files));
        }}
      >
        {busy > 0 ? (
          <Spin />
        ) : (
          <InboxOutlined className={styles["icon"] ?? ""} aria-hidden="true" />
        )}
        <span className={styles["words"]}>
          <strong>{busy > 0 ? t("reading", { count: busy }) : t("drop")}</strong>
          <span className={styles["hint"]}>{t("dropHint")}</span>
        </span>
        <Button disabled={busy > 0} onClick={() => input.current?.click()}>
          {t("choose")}
        </Button>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label={t("choose")}
          accept=".png,.apng,.charx,.json,.jpg,.jpeg,application/json,image/png"
          onChange={({ currentTarget }) => {
            void take(Array.from(currentTarget.files ?? []));
            currentTarget.value = "";
          }}
        />
      </div>
      {outcome?.kind === "imported" && (
        <Alert
          className={styles["outcome"] ?? ""}
          type={outcome.files.some(({ warnings }) => warnings.length > 0) ? "warning" : "success"}
          role="status"
          closable
          title={t("imported", { count: outcome.files.length })}
          description={
            <ul className={styles["files"]}>
              {outcome.files.map((file, index) => (
                <li key={index}>
                  <Told file={file} />
                </li>
              ))}
            </ul>
          }
        />
      )}
      {outcome?.kind === "refused" && (
        <Alert
          className={styles["outcome"] ?? ""}
          type="error"
          role="alert"
          closable
          title={t("refused")}
          description={
            outcome.broken.length === 0 ? (
              outcome.detail
            ) : (
              <>
                <p className={styles["hint"]}>{t("refusedHint")}</p>
                <ul className={styles["files"]}>
                  {outcome.broken.map(({ file, message, excerpt }, index) => (
                    <li key={index}>
                      <strong>{file}</strong> {message}
                      {excerpt !== undefined && <code className={styles["excerpt"]}>{excerpt}</code>}
                    </li>
                  ))}
                </ul>
              </>
            )
          }
        />
      )}
    </div>
  );
}

function Told({ file }: { file: ImportedFile }) {
  const t = useText(imports);
  const shared = useText(prompts);
  const address = addressOfImport(file);
  const { skein } = file;
  return (
    <>
      {t(file.kind)} {address === null ? <strong>{file.name}</strong> : <Link to={address}>{file.name}</Link>}{" "}
      <span className={styles["hint"]}>
        {file.file} · {file.version}
        {file.entry_count > 0 && <> · {t("entries", { count: file.entry_count })}</>}
        {" · "}
        {file.warnings.length === 0 ? t("noWarnings") : shared("warnings", { count: file.warnings.length })}
      </span>
      {file.warnings.length > 0 && (
        <ul className={styles["warnings"]}>
          {file.warnings.map((warning, index) => (
            <li key={index}>{warning}</li>
          ))}
        </ul>
      )}
      {skein !== undefined && (
        <div>
          <span className={styles["hint"]}>{t("presetHint")}</span>{" "}
          <Link to="/prompts/preview" onClick={() => keepSkein(skein)}>
            {t("openPreset")}
          </Link>
        </div>
      )}
    </>
  );
}
