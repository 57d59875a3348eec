import { DeleteOutlined, DownOutlined, PlusOutlined } from "@ant-design/icons";
import { Alert, Button, Dropdown, Form, Input, type InputRef, Modal, Popconfirm, Space, Tag } from "antd";
import { useRef, useState } from "react";
import { Link, useNavigate } from "react-router";
import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { useResource } from "../../api/useResource.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { ErrorState } from "../../components/ErrorState.tsx";
import { Page } from "../../components/Page.tsx";
import { VirtualList } from "../../components/VirtualList.tsx";
import { app } from "../../i18n/texts/app.ts";
import { scripts } from "../../i18n/texts/scripts.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { allScripts, emptyScript, removeScript, type ScriptRow } from "./requests.ts";
import styles from "./Scripts.module.css";

/** Lists all scripts: versions, drafts and the published version. */
export function Component() {
  const t = useText(scripts);
  const frame = useText(app);
  const list = useResource("scripts", allScripts);
  const [search, setSearch] = useState("");
  const [naming, setNaming] = useState(false);
  const [refused, setRefused] = useState<ApiError | null>(null);
  // Script that was saved by another user since the list was loaded, and so was not deleted.
  const [changed, setChanged] = useState<ScriptRow | null>(null);
  const navigate = useNavigate();
  const words = search.trim().toLowerCase();
  const rows = (list.data ?? [])
    .filter(({ name = "", script_id: id }) => words === "" || name.toLowerCase().includes(words) || id.includes(words))
    .sort((a, b) => (b.changed ?? "").localeCompare(a.changed ?? ""));

  async function remove(row: ScriptRow) {
    setRefused(null);
    setChanged(null);
    try {
      await removeScript(row.script_id, row.latest ?? 0);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "changed_meanwhile") setChanged(row);
      // A script that is already gone is no failure.
      else if (error.status !== 404) setRefused(error);
    }
    list.reload();
  }

  async function takeExample() {
    setRefused(null);
    try {
      const { default: yaml } = await import("../../../../examples/abc-model/script.yaml?raw");
      const { data } = await api.post("/api/v1/scripts", { name: t("exampleName"), yaml }, { query: { draft: true } });
      await navigate(`/scripts/${encodeURIComponent(data.script_id)}`);
    } catch (error) {
      if (error instanceof ApiError) setRefused(error);
    }
  }

  const add = (
    <Button type="primary" icon={<PlusOutlined aria-hidden="true" />} onClick={() => setNaming(true)}>
      {t("newScript")}
    </Button>
  );
  const actions = (
    <Space.Compact>
      {add}
      <Dropdown trigger={["click"]} menu={{ items: [{ key: "example", label: t("takeExample"), onClick: () => void takeExample() }] }}>
        <Button type="primary" icon={<DownOutlined aria-hidden="true" />} aria-label={t("otherBeginnings")} />
      </Dropdown>
    </Space.Compact>
  );
  const example = (
    <Space wrap>
      {add}
      <Button onClick={() => void takeExample()}>{t("takeExample")}</Button>
    </Space>
  );
  return (
    <Page
      title={frame("scripts")}
      purpose={t("purpose")}
      actions={actions}
      loading={list.loading && list.data === null}
      error={list.error}
      onRetry={list.reload}
    >
      {refused !== null && <ErrorState error={refused} />}
      {changed !== null && (
        <Alert
          className={styles["notice"] ?? ""}
          type="warning"
          showIcon
          role="alert"
          closable={{ onClose: () => setChanged(null) }}
          title={t("notRemoved", { name: changed.name ?? changed.script_id })}
          description={t("notRemovedHint")}
          action={<Link to={`/scripts/${encodeURIComponent(changed.script_id)}`}>{t("lookAtIt")}</Link>}
        />
      )}
      {list.data?.length === 0 ? (
        <EmptyState title={t("noScripts")} hint={t("noScriptsHint")} action={example} />
      ) : (
        <>
          <Input.Search
            className={styles["search"] ?? ""}
            aria-label={t("search")}
            placeholder={t("search")}
            allowClear
            value={search}
            onChange={({ target }) => setSearch(target.value)}
          />
          {rows.length === 0 ? (
            <EmptyState title={t("noMatch")} action={<Button onClick={() => setSearch("")}>{t("clearSearch")}</Button>} />
          ) : (
            <VirtualList
              label={t("listOf")}
              count={rows.length}
              height="calc(100vh - 260px)"
              fit
              rowHeight={66}
              keyOf={(index) => rows[index]?.script_id ?? index}
              row={(index) => {
                const row = rows[index];
                return row === undefined ? null : <Row row={row} onRemove={() => void remove(row)} />;
              }}
            />
          )}
        </>
      )}
      {naming && <NewScript onClose={() => setNaming(false)} />}
    </Page>
  );
}

function Row({ row, onRemove }: { row: ScriptRow; onRemove: () => void }) {
  const t = useText(scripts);
  const format = useFormat();
  const { script_id: id, name = id, published = null, latest = 0, changed } = row;
  return (
    <div className={styles["row"]}>
      <div className={styles["rowName"]}>
        <Link to={`/scripts/${encodeURIComponent(id)}`}>{name}</Link>
        <span className={styles["muted"]}>{changed !== undefined && t("changedAt", { time: format.time(changed) })}</span>
      </div>
      <Tags published={published} latest={latest} />
      <Popconfirm title={t("removeAsk")} okText={t("remove")} cancelText={t("cancel")} onConfirm={onRemove}>
        <Button type="text" danger icon={<DeleteOutlined aria-hidden="true" />} aria-label={t("removeScript", { name })} />
      </Popconfirm>
    </div>
  );
}

/** Tags for the published version, and for the last one if it is not published. */
export function Tags({ published, latest }: { published: number | null; latest: number }) {
  const t = useText(scripts);
  return (
    <span className={styles["tags"]}>
      {published === null ? <Tag>{t("neverPublished")}</Tag> : <Tag className={styles["published"] ?? ""}>{t("publishedVersion", { version: String(published) })}</Tag>}
      {latest !== published && <Tag className={styles["draft"] ?? ""}>{t("draftVersion", { version: String(latest) })}</Tag>}
    </span>
  );
}

function NewScript({ onClose }: { onClose: () => void }) {
  const t = useText(scripts);
  const navigate = useNavigate();
  const [refused, setRefused] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const [form] = Form.useForm<{ name: string }>();
  const nameField = useRef<InputRef>(null);

  async function create({ name }: { name: string }) {
    setBusy(true);
    try {
      const body = { name: name.trim(), yaml: emptyScript(name.trim()) };
      const { data } = await api.post("/api/v1/scripts", body, { query: { draft: true } });
      await navigate(`/scripts/${encodeURIComponent(data.script_id)}?node=${encodeURIComponent("sessions[0]")}`);
    } catch (error) {
      if (error instanceof ApiError) setRefused(error);
      setBusy(false);
    }
  }

  return (
    <Modal
      open
      title={t("newScript")}
      okText={t("create")}
      cancelText={t("cancel")}
      confirmLoading={busy}
      onOk={() => form.submit()}
      onCancel={onClose}
      afterOpenChange={(open) => open && nameField.current?.focus()}
    >
      {refused !== null && <ErrorState error={refused} />}
      <Form form={form} layout="vertical" requiredMark={false} onFinish={(values) => void create(values)}>
        <Form.Item name="name" label={t("name")} rules={[{ required: true, whitespace: true, max: 200, message: t("nameNeeded") }]}>
          <Input ref={nameField} />
        </Form.Item>
      </Form>
    </Modal>
  );
}
