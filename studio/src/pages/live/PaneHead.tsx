import { CloseOutlined, LinkOutlined, StopOutlined } from "@ant-design/icons";
import { App, Button } from "antd";
import { Link } from "react-router";
import { Badge, type Tone } from "../../components/reply/Badge.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { live } from "../../i18n/texts/live.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./Live.module.css";
import { type MessageRun, type RunView } from "./MessageRun.ts";

type PaneHeadProps = {
  run: MessageRun;
  view: RunView;
  label: string | undefined;
  running: boolean;
  onClose: (() => void) | undefined;
};

type Ended = "completed" | "failed" | "cancelled" | "superseded";

const STATUS_TONES: Record<Ended, Tone> = {
  completed: "success",
  failed: "danger",
  cancelled: "warning",
  superseded: "muted",
};

/** Description and state of a message, with its actions. */
export function PaneHead({ run, view, label, running, onClose }: PaneHeadProps) {
  const t = useText(live);
  const format = useFormat();
  const { lineOf } = useProblemText();
  const { message } = App.useApp();
  const { record } = view;
  const request = (record?.request ?? {}) as Record<string, unknown>;
  const asked = [request["upstream"], request["model"]].filter((one) => typeof one === "string").join(" / ");
  const dialect = record?.metadata?.dialect ?? view.model.completed?.metadata.dialect;
  return (
    <div className={styles["paneHead"]}>
      <div className={styles["paneTitle"]}>
        {label !== undefined && <strong>{label}</strong>}
        <span role="status">
          <Status view={view} running={running} />
        </span>
        {asked !== "" && <span>{asked}</span>}
        {dialect !== undefined && <Badge>{dialect}</Badge>}
        {record !== null && <span className={styles["hint"]}>{format.time(record.created)}</span>}
      </div>
      <div className={styles["paneActions"]}>
        {running && (
          <Button
            size="small"
            icon={<StopOutlined />}
            disabled={view.cancelling}
            onClick={() =>
              void run.cancel().catch((error: unknown) => message.error(lineOf(error)))
            }
          >
            {t("cancel")}
          </Button>
        )}
        {!running && view.raw !== "" && (
          <Link to={`/inspect?message=${run.id}`} className={styles["hint"] ?? ""}>
            {t("inspect")}
          </Link>
        )}
        <Button
          size="small"
          icon={<LinkOutlined />}
          onClick={() =>
            void navigator.clipboard
              .writeText(`${location.origin}/live/${run.id}`)
              .then(() => message.success(t("linkCopied")))
              .catch(() => message.info(`${location.origin}/live/${run.id}`))
          }
        >
          {t("copyLink")}
        </Button>
        {onClose !== undefined && (
          <Button size="small" type="text" icon={<CloseOutlined />} aria-label={t("close")} onClick={onClose} />
        )}
      </div>
    </div>
  );
}

function Status({ view, running }: { view: RunView; running: boolean }) {
  const t = useText(live);
  const status = view.record?.status;
  if (!running && status !== undefined && status !== "running") return <Badge tone={STATUS_TONES[status]}>{t(status)}</Badge>;
  if (view.cancelling) return <Badge tone="warning">{t("cancelling")}</Badge>;
  if (view.stream === "waiting" || view.stream === "failed") return <Badge tone="danger">{t("dropped")}</Badge>;
  const { waiting } = view.model;
  if (waiting !== null) {
    return (
      <Badge tone="warning">{t(waiting.state === "awaiting_confirmation" ? "waitingForPeople" : "waitingForTools")}</Badge>
    );
  }
  if (view.stream === "connecting" && view.events.length === 0) return <Badge>{t("connecting")}</Badge>;
  return <Badge tone="accent">{t("runningNow")}</Badge>;
}
