import { App, Button, Space, Table } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { currentSession, requireKey } from "../../api/session.ts";
import { type Schemas } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";
import { wholeList } from "../../api/wholeList.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Content } from "../../components/Page.tsx";
import { Section } from "../../components/Section.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { AdminOnly } from "./AdminOnly.tsx";
import { EditKey } from "./EditKey.tsx";
import { NewKey } from "./NewKey.tsx";

type Key = Schemas["Key"];

/** Keys with their owners and quotas; only an admin sees them. */
export function KeysSection() {
  const t = useText(texts);
  const { line } = useProblemText();
  const format = useFormat();
  const { message, modal } = App.useApp();
  const [making, setMaking] = useState(false);
  const [editing, setEditing] = useState<Key | null>(null);
  const { data, error, reload } = useResource("keys", (signal) =>
    wholeList(
      async (after) => (await api.get("/api/v1/keys", { query: { limit: 100, after }, signal })).data,
      ({ id }) => id,
    ),
  );
  const limit = (value: number | undefined) => (value === undefined ? t("unlimited") : format.number(value));

  function remove(key: Key): void {
    modal.confirm({
      title: t("removeKeyOf", { name: key.name }),
      content: t("removeKeyHint"),
      okText: t("remove"),
      okButtonProps: { danger: true },
      cancelText: t("cancel"),
      onOk: async () => {
        try {
          await api.remove("/api/v1/keys/{id}", { path: { id: key.id } });
          reload();
        } catch (caught) {
          if (!(caught instanceof ApiError)) throw caught;
          void message.error(line(caught));
        }
      },
    });
  }

  if (error?.status === 403) return <AdminOnly title={t("keys")} />;
  return (
    <Section
      title={t("keys")}
      hint={t("keysHint")}
      actions={<Button onClick={() => setMaking(true)}>{t("newKey")}</Button>}
    >
      <Content loading={data === null} error={error} onRetry={reload}>
        {data?.length === 0 ? (
          <EmptyState title={t("noKeys")} />
        ) : (
          <Table<Key>
            size="small"
            rowKey="id"
            scroll={{ x: "max-content" }}
            pagination={{ hideOnSinglePage: true, pageSize: 50 }}
            dataSource={data ?? []}
            columns={[
              { title: t("name"), dataIndex: "name" },
              { title: t("owner"), dataIndex: "owner" },
              { title: t("rights"), dataIndex: "rights", render: (rights: Key["rights"]) => t(rights) },
              { title: t("perMinute"), dataIndex: "requests_per_minute", align: "right", render: limit },
              { title: t("perDay"), dataIndex: "tokens_per_day", align: "right", render: limit },
              {
                title: t("keyAliases"),
                dataIndex: "aliases",
                render: (aliases: string[] | undefined) => aliases?.join(", ") ?? t("unlimited"),
              },
              { title: t("created"), dataIndex: "created", render: (time: string) => format.time(time) },
              {
                title: t("actions"),
                key: "actions",
                render: (_, key) => (
                  <Space>
                    <Button size="small" aria-label={t("changeKeyOf", { name: key.name })} onClick={() => setEditing(key)}>
                      {t("change")}
                    </Button>
                    <Button
                      size="small"
                      danger
                      aria-label={t("removeKeyOf", { name: key.name })}
                      onClick={() => remove(key)}
                    >
                      {t("remove")}
                    </Button>
                  </Space>
                ),
              },
            ]}
          />
        )}
      </Content>
      {editing !== null && (
        <EditKey
          key={editing.id}
          of={editing}
          onClose={(changed) => {
            setEditing(null);
            if (changed) reload();
          }}
        />
      )}
      <NewKey
        open={making}
        first={data?.length === 0}
        onClose={(made) => {
          setMaking(false);
          // The first key ends the access of the local user without one.
          if (made && currentSession().key === null) requireKey(null);
          if (made) reload();
        }}
      />
    </Section>
  );
}
