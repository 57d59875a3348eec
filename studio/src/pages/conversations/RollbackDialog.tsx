import { App, Modal } from "antd";
import { useState } from "react";
import { api, basedOn } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { useResource } from "../../api/useResource.ts";
import { Content } from "../../components/Page.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import { Differences } from "./Differences.tsx";
import { type Difference, invert, pointOf, type Update } from "./operations.ts";
import { type StatePoint, updatesAfter } from "./points.ts";
import { usePointLabel } from "./usePointLabel.ts";

type RollbackProps = {
  id: string;
  /** Target: a message or an update; `null` for the beginning. */
  target: string | null;
  points: readonly StatePoint[];
  updates: readonly Update[];
  /** Version of the displayed state. */
  etag: string | null;
  onClose: () => void;
  onDone: () => void;
};

/** Shows the effect of a rollback, and performs it on confirmation. */
export function RollbackDialog({ id, target, points, updates, etag, onClose, onDone }: RollbackProps) {
  const t = useText(conversations);
  const { message } = App.useApp();
  const { line } = useProblemText();
  const labelOf = usePointLabel();
  const [busy, setBusy] = useState(false);
  const point = points.find((one) => one.id === target) ?? null;
  const last = updates.at(-1);
  const changes = useResource(`preview ${id} ${target ?? ""} ${updates.length}`, async (signal) => {
    // From the target to now; from the beginning, to the last update.
    if (target === null && last === undefined) return [];
    const query = target === null ? { to: last === undefined ? null : pointOf(last) } : { from: target };
    const { data } = await api.get("/api/v1/conversations/{id}/state/history", {
      path: { id },
      query: { ...query, limit: 1 },
      signal,
    });
    return invert((data.diff ?? []) as unknown as Difference[]);
  });

  async function roll(): Promise<void> {
    setBusy(true);
    try {
      const { data } = await api.post(
        "/api/v1/conversations/{id}/state/rollback",
        { to: target },
        { path: { id }, ...basedOn(etag) },
      );
      void message.success(t("rolledBack", { count: data.taken_back }));
      onDone();
      onClose();
    } catch (error) {
      void message.error(error instanceof ApiError ? line(error) : String(error));
      setBusy(false);
      if (error instanceof ApiError && error.code === "changed_meanwhile") onDone();
    }
  }

  return (
    <Modal
      open
      width={680}
      title={t("rollbackTitle", { point: labelOf(point) })}
      okText={t("rollback")}
      okButtonProps={{ danger: true, disabled: changes.data === null }}
      cancelText={t("cancel")}
      confirmLoading={busy}
      onOk={() => void roll()}
      onCancel={onClose}
    >
      <p>{t("rollbackText", { count: updatesAfter(point, points, updates) })}</p>
      <Content loading={changes.loading} error={changes.error} onRetry={changes.reload}>
        {changes.data?.length === 0 ? (
          <p>{t("rollbackNothing")}</p>
        ) : (
          <Differences differences={changes.data ?? []} label={t("rollbackPreview")} />
        )}
      </Content>
    </Modal>
  );
}
