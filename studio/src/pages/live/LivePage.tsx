import { PlusOutlined, ToolOutlined } from "@ant-design/icons";
import { App, Button } from "antd";
import { useRef, useState } from "react";
import { useNavigate, useParams, useSearchParams } from "react-router";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Page } from "../../components/Page.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { app } from "../../i18n/texts/app.ts";
import { live } from "../../i18n/texts/live.ts";
import { useText } from "../../i18n/useText.ts";
import { ComposeForm, type ComposeHandle } from "./ComposeForm.tsx";
import styles from "./Live.module.css";
import { MessagePane } from "./MessagePane.tsx";
import { MessageRun } from "./MessageRun.ts";
import { type Draft } from "./request.ts";
import { ask } from "./send.ts";
import { ToolCallForm } from "./ToolCallForm.tsx";

/** One message, or two side by side: request and result. */
export function Component() {
  const t = useText(live);
  const frame = useText(app);
  const { lineOf } = useProblemText();
  const { message } = App.useApp();
  const navigate = useNavigate();
  const { id } = useParams();
  const [query] = useSearchParams();
  const beside = query.get("beside");
  const form = useRef<ComposeHandle>(null);
  const runs = useRuns();
  const [calls, setCalls] = useState(false);

  async function send(draft: Draft): Promise<void> {
    const begun = performance.now();
    const asked = [ask(draft, draft.target, draft.model)];
    if (draft.compare === true) asked.push(ask({ ...draft, conversation: undefined }, draft.second, draft.secondModel));
    const [first, second] = await Promise.allSettled(asked);
    if (first?.status !== "fulfilled") throw first?.reason;
    runs.add(new MessageRun(first.value, begun));
    if (second?.status === "fulfilled") runs.add(new MessageRun(second.value, begun));
    if (second?.status === "rejected") {
      const reason = lineOf(second.reason);
      message.error(t("secondFailed", { reason }));
    }
    const search = second?.status === "fulfilled" ? `?beside=${second.value}` : "";
    await navigate(`/live/${first.value}${search}`);
  }

  const shown = [id, beside].filter((one): one is string => typeof one === "string" && one !== "");
  const remain = (left: string) => {
    const rest = shown.find((one) => one !== left);
    void navigate(rest === undefined ? "/live" : `/live/${rest}`);
  };
  return (
    <Page
      title={frame("live")}
      purpose={t("purpose")}
      wide={shown.length > 1}
      actions={
        <>
          <Button icon={<ToolOutlined />} aria-pressed={calls} onClick={() => setCalls(!calls)}>
            {t("callTool")}
          </Button>
          {shown.length > 0 && (
          <Button
            icon={<PlusOutlined />}
            onClick={() => {
              form.current?.fill("", undefined);
              void navigate("/live");
            }}
          >
            {t("newMessage")}
          </Button>
          )}
        </>
      }
    >
      {calls && <ToolCallForm />}
      <ComposeForm ref={form} onSend={send} />
      {shown.length === 0 && <EmptyState title={t("emptyTitle")} hint={t("emptyHint")} />}
      <div className={shown.length > 1 ? styles["pair"] : undefined}>
        {shown.map((one, index) => (
          <MessagePane
            key={one}
            run={runs.of(one)}
            label={shown.length > 1 ? t(index === 0 ? "first" : "second") : undefined}
            narrow={shown.length > 1}
            onChoose={(text, conversation) => form.current?.fill(text, conversation)}
            onClose={shown.length > 1 ? () => remain(one) : undefined}
          />
        ))}
      </div>
    </Page>
  );
}

/** Messages watched since the page was opened, so that going back to one shows it unchanged. */
function useRuns() {
  const [runs] = useState(() => new Map<string, MessageRun>());
  return {
    add: (run: MessageRun) => runs.set(run.id, run),
    of: (id: string): MessageRun => {
      const run = runs.get(id) ?? new MessageRun(id);
      runs.set(id, run);
      return run;
    },
  };
}
