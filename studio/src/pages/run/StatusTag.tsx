import { Tag } from "antd";
import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";

type Status = "active" | "awaiting_ack" | "awaiting_answer" | "completed" | "failed";

const COLOURS: Readonly<Record<Status, string>> = {
  active: "processing",
  awaiting_ack: "warning",
  awaiting_answer: "warning",
  completed: "success",
  failed: "error",
};

/** Where a dialogue stands. */
export function StatusTag({ status }: { status: Status }) {
  const t = useText(run);
  return (
    <Tag color={COLOURS[status]} variant="outlined">
      {t(status)}
    </Tag>
  );
}
