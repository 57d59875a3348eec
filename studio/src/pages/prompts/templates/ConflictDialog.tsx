import { Button, Modal } from "antd";
import { templates } from "../../../i18n/texts/templates.ts";
import { useText } from "../../../i18n/useText.ts";
import { SideBySide } from "../diff/SideBySide.tsx";
import { type LoadedTemplate } from "./saveTemplate.ts";

type ConflictProps = {
  theirs: LoadedTemplate;
  mine: string;
  busy: boolean;
  onClose: () => void;
  onTake: () => void;
  onSave: () => void;
};

/** Both versions of a template that two people changed, with the ways to resolve it. */
export function ConflictDialog({ theirs, mine, busy, onClose, onTake, onSave }: ConflictProps) {
  const t = useText(templates);
  return (
    <Modal
      open
      width={1000}
      title={t("conflict")}
      onCancel={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("keepEditing")}</Button>
          <Button danger onClick={onTake}>
            {t("takeTheirs")}
          </Button>
          <Button type="primary" loading={busy} onClick={onSave}>
            {t("saveMine")}
          </Button>
        </>
      }
    >
      <p>{theirs.version === null ? t("removedText") : t("conflictText", { version: theirs.version })}</p>
      <SideBySide before={theirs.text} after={mine} beforeLabel={t("theirs")} afterLabel={t("mine")} />
    </Modal>
  );
}
