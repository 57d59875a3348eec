import { Button, Drawer, Select, Tag } from "antd";
import { useState } from "react";
import { api } from "../../../api/client.ts";
import { ApiError } from "../../../api/errors.ts";
import { useResource } from "../../../api/useResource.ts";
import { ErrorState } from "../../../components/ErrorState.tsx";
import { Content } from "../../../components/Page.tsx";
import { VirtualList } from "../../../components/VirtualList.tsx";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useFormat, useText } from "../../../i18n/useText.ts";
import { allVersions } from "../requests.ts";
import styles from "./Editor.module.css";

type VersionsDrawerProps = {
  id: string;
  published: number | null;
  /** Publishes a version; returns the error if refused. */
  onPublish: (version: number) => Promise<ApiError | null>;
  /** Applies the text of a version as a change of the script. */
  onTake: (text: string) => void;
  onClose: () => void;
};

/** Versions of a script: the published one, differences, and a way back to an earlier one. */
export function VersionsDrawer({ id, published, onPublish, onTake, onClose }: VersionsDrawerProps) {
  const t = useText(scripts);
  const format = useFormat();
  const list = useResource(`versions of ${id}`, (signal) => allVersions(id, signal));
  const versions = list.data ?? [];
  const [pair, setPair] = useState<{ from?: number; to?: number }>({});
  const to = pair.to ?? versions[0]?.version ?? 1;
  // Autosaves leave gaps in the numbers.
  const from = pair.from ?? versions[versions.findIndex(({ version }) => version === to) + 1]?.version ?? to;
  const [refused, setRefused] = useState<ApiError | null>(null);
  const diff = useResource(list.data === null ? null : `diff of ${id} ${from} ${to}`, (signal) =>
    api.get("/api/v1/scripts/{id}/diff", { path: { id }, query: { from, to }, signal }),
  );
  const options = versions.map(({ version }) => ({ value: version, label: t("versionOf", { version: String(version) }) }));

  async function take(version: number) {
    setRefused(null);
    try {
      const { data } = await api.get("/api/v1/scripts/{id}", { path: { id }, query: { version } });
      onTake(data.yaml ?? "");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setRefused(error);
    }
  }

  async function publish(version: number) {
    setRefused(null);
    setRefused(await onPublish(version));
  }

  return (
    <Drawer open title={t("versions")} onClose={onClose} size={Math.min(720, window.innerWidth)}>
      {refused !== null && <ErrorState error={refused} />}
      <Content loading={list.loading && list.data === null} error={list.error} onRetry={list.reload}>
        <VirtualList
          label={t("versions")}
          count={versions.length}
          height={Math.min(320, versions.length * 58 + 2)}
          rowHeight={57}
          row={(index) => {
            const version = versions[index];
            if (version === undefined) return null;
            const name = String(version.version);
            return (
              <div className={styles["version"]}>
                <span>
                  <strong>{t("versionOf", { version: name })}</strong>{" "}
                  {version.version === published && <Tag className={styles["added"] ?? ""}>{t("publishedVersion", { version: name })}</Tag>}
                  <br />
                  <small className={styles["muted"]}>{format.time(version.created)}</small>
                </span>
                <span>
                  <Button size="small" type="text" aria-label={t("takeVersion", { version: name })} onClick={() => void take(version.version)}>
                    {t("takeVersion", { version: name })}
                  </Button>
                  <Button size="small" disabled={version.version === published} onClick={() => void publish(version.version)}>
                    {t("publishVersion", { version: name })}
                  </Button>
                </span>
              </div>
            );
          }}
        />
        <h3>{t("compareWith")}</h3>
        <div className={styles["bar"]}>
          <Select aria-label={t("compareFrom")} value={from} options={options} onChange={(value: number) => setPair({ from: value, to })} />
          <Select aria-label={t("compareTo")} value={to} options={options} onChange={(value: number) => setPair({ from, to: value })} />
        </div>
        <Content loading={diff.loading && diff.data === null} error={diff.error} onRetry={diff.reload}>
          <Difference text={diff.data?.data.diff ?? ""} />
        </Content>
      </Content>
    </Drawer>
  );
}

/** Unified diff with coloured and marked lines. */
function Difference({ text }: { text: string }) {
  const t = useText(scripts);
  const lines = text.split("\n").filter((line) => line !== "");
  if (lines.length === 0) return <p className={styles["muted"]}>{t("noDifference")}</p>;
  const kind = (line: string) => (line.startsWith("+") ? "added" : line.startsWith("-") ? "gone" : line.startsWith("@") ? "place" : "");
  return (
    <VirtualList
      label={t("difference")}
      count={lines.length}
      height={Math.min(420, lines.length * 24 + 2)}
      rowHeight={23}
      row={(index) => {
        const line = lines[index] ?? "";
        return <code className={`${styles["diff"] ?? ""} ${styles[kind(line)] ?? ""}`}>{line}</code>;
      }}
    />
  );
}
