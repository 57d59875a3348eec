import { DownloadOutlined } from "@ant-design/icons";
import { App, Button, Dropdown } from "antd";
import { useState } from "react";
import { download } from "../../components/download.ts";
import { useProblemText } from "../../components/useProblemText.ts";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import { blobOf, type CheckedText, exported, type Format, MEDIA_TYPES } from "./records/exports.ts";
import { allRules } from "./rules.ts";

type ExportMenuProps = {
  /** Name of the inspected file. */
  name: string;
  texts: () => AsyncIterable<CheckedText>;
  disabled?: boolean;
};

/** Exports the findings as a file. */
export function ExportMenu({ name, texts, disabled = false }: ExportMenuProps) {
  const t = useText(inspect);
  const { lineOf } = useProblemText();
  const { message } = App.useApp();
  const [busy, setBusy] = useState(false);

  async function run(format: Format): Promise<void> {
    setBusy(true);
    try {
      const rules = format === "sarif" ? await allRules() : [];
      const blob = await blobOf(exported(format, { name, texts: texts(), rules }), MEDIA_TYPES[format]);
      if (blob !== null) download(`${name.replace(/\.\w+$/, "")}.findings.${format}`, blob);
    } catch (error) {
      message.error(lineOf(error));
    } finally {
      setBusy(false);
    }
  }

  return (
    <Dropdown
      trigger={["click"]}
      disabled={disabled || busy}
      menu={{
        items: [
          { key: "json", label: t("exportJson") },
          { key: "sarif", label: t("exportSarif") },
          { key: "csv", label: t("exportCsv") },
        ],
        onClick: ({ key }) => void run(key as Format),
      }}
    >
      <Button icon={<DownloadOutlined />} loading={busy}>
        {t(busy ? "exporting" : "export")}
      </Button>
    </Dropdown>
  );
}
