import { App, Button, Select, Tag } from "antd";
import { useState } from "react";
import { Link } from "react-router";
import { api } from "../../../api/client.ts";
import { ApiError } from "../../../api/errors.ts";
import { useCursorList } from "../../../api/useCursorList.ts";
import { useResource } from "../../../api/useResource.ts";
import { Content } from "../../../components/Page.tsx";
import { useProblemText } from "../../../components/useProblemText.ts";
import { Section } from "../../../components/Section.tsx";
import { VirtualList } from "../../../components/VirtualList.tsx";
import { templates } from "../../../i18n/texts/templates.ts";
import { useFormat, useText } from "../../../i18n/useText.ts";
import { UnifiedDiff } from "../diff/UnifiedDiff.tsx";
import { isOvertaken, type LoadedTemplate, publishTemplate } from "./saveTemplate.ts";
import styles from "./VersionList.module.css";

type Version = { version: number; created: string; hash: string; published: boolean };

type VersionsProps = {
  base: LoadedTemplate;
  onPublished: (version: number) => void;
  /** Called when another user changed the template, so that nothing was published. */
  onOvertaken: () => void;
};

/** Versions of a template: the published one, differences, and a way back to an earlier one. */
export function VersionList({ base, onPublished, onOvertaken }: VersionsProps) {
  const t = useText(templates);
  const format = useFormat();
  const { message } = App.useApp();
  const { line } = useProblemText();
  const { id, version: shown } = base;
  const [pair, setPair] = useState<readonly [from: number, to: number] | null>(null);
  const list = useCursorList<Version>(shown === null ? null : `versions ${id}`, {
    load: async (after, signal) => {
      const { data } = await api.get("/api/v1/templates/{name}/versions", {
        path: { name: id },
        query: { after, limit: 200 },
        signal,
      });
      return data as unknown as { data: Version[]; has_more: boolean };
    },
    cursorOf: ({ version }) => String(version),
  });
  const rows = list.rows;
  const newest = rows[0]?.version ?? 0;
  const [from, to] = pair ?? [rows[1]?.version ?? newest, newest];
  const compared = useResource(newest < 2 ? null : `diff ${id} ${from} ${to}`, async (signal) => {
    if (from === to) return "";
    const { data } = await api.get("/api/v1/templates/{name}/diff", {
      path: { name: id },
      query: { from, to },
      signal,
    });
    return data.diff;
  });

  async function publish(version: number): Promise<void> {
    try {
      await publishTemplate(base, version);
      onPublished(version);
      list.reload();
      void message.success(t("savedPublished", { version }));
    } catch (error) {
      if (isOvertaken(error)) onOvertaken();
      else if (error instanceof ApiError) void message.error(line(error));
      else throw error;
    }
  }

  const options = rows.map(({ version }) => ({ value: version, label: t("showsVersion", { version }) }));
  return (
    <Section title={t("versions")}>
      {shown === null ? (
        <p className={styles["hint"]}>{t("noVersions")}</p>
      ) : (
        <Content loading={list.loading && rows.length === 0} error={list.error} onRetry={list.reload}>
          <VirtualList
            label={t("versions")}
            count={rows.length}
            rowHeight={48}
            height={`min(300px, ${rows.length * 49 + 2}px)`}
            keyOf={(index) => rows[index]?.version ?? index}
            onEnd={list.more}
            row={(index) => {
              const row = rows[index];
              if (row === undefined) return null;
              const { version, created, published } = row;
              return (
                <div className={styles["row"]}>
                  <Link
                    aria-label={t("show", { version })}
                    to={`/prompts/templates/${encodeURIComponent(id)}?version=${version}`}
                  >
                    {t("showsVersion", { version })}
                  </Link>
                  <time dateTime={created} className={styles["hint"]}>
                    {format.time(created)}
                  </time>
                  {published ? (
                    <Tag>{t("published")}</Tag>
                  ) : (
                    <Button size="small" onClick={() => void publish(version)}>
                      {t("use")}
                    </Button>
                  )}
                </div>
              );
            }}
          />
          {newest > 1 && (
            <>
              <div className={styles["pair"]} role="group" aria-label={t("compare")}>
                <span className={styles["hint"]}>{t("compare")}</span>
                <Select aria-label={t("from")} value={from} options={options} onChange={(one) => setPair([one, to])} />
                <span aria-hidden="true">{"→"}</span>
                <Select aria-label={t("to")} value={to} options={options} onChange={(one) => setPair([from, one])} />
              </div>
              <Content loading={compared.loading} error={compared.error} onRetry={compared.reload}>
                {compared.data === "" || compared.data === null ? (
                  <p className={styles["hint"]}>{t("same")}</p>
                ) : (
                  <UnifiedDiff diff={compared.data} label={t("diff")} />
                )}
              </Content>
            </>
          )}
        </Content>
      )}
    </Section>
  );
}
