import { PlusOutlined } from "@ant-design/icons";
import { Button, Input, Tag } from "antd";
import { useMemo, useState } from "react";
import { Link } from "react-router";
import { api } from "../../../api/client.ts";
import { type Schemas } from "../../../api/types.ts";
import { useCursorList } from "../../../api/useCursorList.ts";
import { EmptyState } from "../../../components/EmptyState.tsx";
import { VirtualList } from "../../../components/VirtualList.tsx";
import { templates } from "../../../i18n/texts/templates.ts";
import { useFormat, useText } from "../../../i18n/useText.ts";
import { PromptsFrame } from "../PromptsFrame.tsx";
import { NewTemplate } from "./NewTemplate.tsx";
import styles from "./TemplatesPage.module.css";

type Template = Schemas["Template"];

export function Component() {
  const t = useText(templates);
  const [search, setSearch] = useState("");
  const [creating, setCreating] = useState(false);
  const list = useCursorList<Template>("templates", {
    load: async (after, signal) => (await api.get("/api/v1/templates", { query: { after, limit: 200 }, signal })).data,
    cursorOf: (row) => row.template_id,
    atLeast: Infinity,
  });
  const wanted = search.trim().toLowerCase();
  const shown = useMemo(
    () => list.rows.filter(({ template_id: id }) => id.toLowerCase().includes(wanted)),
    [list.rows, wanted],
  );
  return (
    <PromptsFrame
      purpose={t("purpose", { name: "{name}", "%name%": "{%name%}" })}
      loading={list.loading && list.rows.length === 0}
      error={list.rows.length === 0 ? list.error : null}
      onRetry={list.reload}
      actions={
        <Button type="primary" icon={<PlusOutlined />} onClick={() => setCreating(true)}>
          {t("create")}
        </Button>
      }
    >
      <Input.Search
        className={styles["search"] ?? ""}
        aria-label={t("search")}
        placeholder={t("search")}
        allowClear
        value={search}
        onChange={({ target }) => setSearch(target.value)}
      />
      {shown.length === 0 ? (
        <EmptyState title={t("noMatch")} action={<Button onClick={() => setSearch("")}>{t("clearSearch")}</Button>} />
      ) : (
        <VirtualList
          label={t("list")}
          count={shown.length}
          rowHeight={64}
          height="calc(100dvh - 260px)"
          fit
          keyOf={(index) => shown[index]?.template_id ?? index}
          row={(index) => {
            const template = shown[index];
            return template === undefined ? null : <Row template={template} />;
          }}
        />
      )}
      {creating && <NewTemplate known={list.rows} onClose={() => setCreating(false)} />}
    </PromptsFrame>
  );
}

function Row({ template }: { template: Template }) {
  const t = useText(templates);
  const format = useFormat();
  const { template_id: id, source = "stored", published = null, latest = 0, changed } = template;
  return (
    <div className={styles["row"]}>
      <div className={styles["words"]}>
        <Link className={styles["name"] ?? ""} to={`/prompts/templates/${encodeURIComponent(id)}`}>
          {id}
        </Link>
        <div className={styles["meta"]}>
          {source === "stored" && (
            <span>{published === null ? t("draftOnly") : t("publishedVersion", { version: published })}</span>
          )}
          {source === "stored" && published !== null && latest > published && (
            <span>{t("newerDraft", { version: latest })}</span>
          )}
          {changed !== undefined && <time dateTime={changed}>{format.time(changed)}</time>}
        </div>
      </div>
      <Tag>{t(source)}</Tag>
    </div>
  );
}
