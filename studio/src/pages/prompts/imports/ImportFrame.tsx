import { ArrowLeftOutlined, DownloadOutlined, EyeOutlined } from "@ant-design/icons";
import { Alert, App, Button } from "antd";
import { type ReactNode, useMemo } from "react";
import { Link, useNavigate } from "react-router";
import { addressOf, send } from "../../../api/client.ts";
import { type Resource } from "../../../api/useResource.ts";
import { YamlEditor } from "../../../components/CodeEditor.tsx";
import { download } from "../../../components/download.ts";
import { KeyValue } from "../../../components/KeyValue.tsx";
import { Page } from "../../../components/Page.tsx";
import { Section } from "../../../components/Section.tsx";
import { useProblemText } from "../../../components/useProblemText.ts";
import { imports } from "../../../i18n/texts/imports.ts";
import { prompts } from "../../../i18n/texts/prompts.ts";
import { useFormat, useText } from "../../../i18n/useText.ts";
import { yamlOf } from "../preview/yaml.ts";
import styles from "./ImportFrame.module.css";
import { RemoveImport } from "./RemoveImport.tsx";

export type Kept = {
  name: string;
  file: string;
  version: string;
  size: number;
  created: string;
  warnings?: readonly string[];
  skein?: object;
};

type FrameProps = {
  kind: "cards" | "lorebooks";
  id: string;
  resource: Resource<Kept>;
  /** Further lines of the summary. */
  about?: readonly (readonly [name: string, value: ReactNode])[];
  children: ReactNode;
};

/** Page of an import: its description, the warnings, and the resulting prompt. */
export function ImportFrame({ kind, id, resource, about = [], children }: FrameProps) {
  const t = useText(imports);
  const shared = useText(prompts);
  const format = useFormat();
  const navigate = useNavigate();
  const { lineOf } = useProblemText();
  const { message } = App.useApp();
  const { data } = resource;
  const yaml = useMemo(() => (data?.skein === undefined ? "" : yamlOf(data.skein)), [data]);

  async function fetchFile(as: "v3" | "original", name: string): Promise<void> {
    try {
      const path = kind === "cards" ? "/api/v1/cards/{id}" : "/api/v1/lorebooks/{id}";
      const response = await send(addressOf(path, { id }, { format: as }));
      download(name, await response.blob());
    } catch (error) {
      void message.error(lineOf(error));
    }
  }

  const query = kind === "cards" ? `card=${id}` : `books=${id}`;
  return (
    <Page
      title={data?.name ?? id}
      purpose={
        <Link to="/prompts/imports">
          <ArrowLeftOutlined aria-hidden="true" /> {t("back")}
        </Link>
      }
      loading={resource.loading && data === null}
      error={data === null ? resource.error : null}
      onRetry={resource.reload}
      actions={
        data === null ? undefined : (
          <>
            <Button type="primary" icon={<EyeOutlined />} onClick={() => void navigate(`/prompts/preview?${query}`)}>
              {t("previewPrompt")}
            </Button>
            <Button icon={<DownloadOutlined />} onClick={() => void fetchFile("original", data.file)}>
              {t("original")}
            </Button>
            <Button icon={<DownloadOutlined />} onClick={() => void fetchFile("v3", `${data.name}.v3.json`)}>
              {t("v3")}
            </Button>
            <RemoveImport
              text
              kind={kind}
              id={id}
              name={data.name}
              onRemoved={() => void navigate("/prompts/imports")}
            />
          </>
        )
      }
    >
      {data !== null && (
        <>
          {data.warnings !== undefined && data.warnings.length > 0 && (
            <Alert
              className={styles["warnings"] ?? ""}
              type="warning"
              showIcon
              title={`${t("warningsOfImport")} · ${shared("warnings", { count: data.warnings.length })}`}
              description={
                <ul className={styles["list"]}>
                  {data.warnings.map((warning, index) => (
                    <li key={index}>{warning}</li>
                  ))}
                </ul>
              }
            />
          )}
          <Section title={t("about")}>
            <KeyValue
              items={[
                [t("file"), data.file],
                [t("format"), data.version],
                [t("size"), format.bytes(data.size)],
                [t("created"), format.time(data.created)],
                ...about,
              ]}
            />
          </Section>
          {children}
          <Section title={t("skein")} hint={t("skeinHint")}>
            <YamlEditor label={t("skein")} value={yaml} readOnly height="min(50vh, 420px)" />
          </Section>
        </>
      )}
    </Page>
  );
}
