import { useEffect, useState } from "react";
import { Link, useLocation, useSearchParams } from "react-router";
import { api } from "../../api/client.ts";
import { useResource } from "../../api/useResource.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Content, Page } from "../../components/Page.tsx";
import { useDecoder } from "../../decoder/useDecoder.ts";
import { app } from "../../i18n/texts/app.ts";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import { FileInspection } from "./FileInspection.tsx";
import { type Input, inputOf, inputOfTyped } from "./input.ts";
import { keptReply } from "./keptReply.ts";
import { LargeText } from "./LargeText.tsx";
import { type InspectOptions, SourceForm } from "./SourceForm.tsx";
import { TextInspection } from "./TextInspection.tsx";

type Given = { text: string; dialect?: string | undefined; profile?: InspectOptions["profile"] };

/** Text from another page, such as the example of a rule. */
function givenBy(state: unknown): Given | null {
  const given = state as { inspect?: Given } | null;
  return typeof given?.inspect?.text === "string" ? given.inspect : null;
}

export function Component() {
  const t = useText(inspect);
  const frame = useText(app);
  const location = useLocation();
  const [query, setQuery] = useSearchParams();
  const message = query.get("message");
  const given = givenBy(location.state) ?? keptReply();
  const record = useResource(message, async (signal) => {
    const { data } = await api.get("/api/v1/messages/{id}", { path: { id: message ?? "" }, signal });
    return { text: data.reply ?? "", dialect: data.metadata?.dialect };
  });
  const start = message === null ? given : record.data;
  return (
    <Page
      title={frame("inspect")}
      purpose={t("purpose")}
      actions={<Link to="/inspect/rules">{t("allRules")}</Link>}
    >
      <Content loading={record.loading && record.data === null} error={record.error} onRetry={record.reload}>
        <Inspection
          key={message ?? location.key}
          start={start}
          onChange={() => {
            if (message !== null) setQuery({}, { replace: true });
          }}
        />
      </Content>
    </Page>
  );
}

/** Milliseconds without a change after which a text that is typed is read. */
const PAUSE = 200;

function Inspection({ start, onChange }: { start: Given | null; onChange: () => void }) {
  const t = useText(inspect);
  const [options, setOptions] = useState<InspectOptions>({ dialect: start?.dialect ?? "auto", profile: start?.profile ?? "strict" });
  const [input, setInput] = useState<Input | null>(() => (start === null ? null : inputOf(start.text)));
  const decoder = useDecoder();
  // Text that is typed and not yet read. Only the browser reads it without being asked.
  const [typed, setTyped] = useState<string | null>(null);
  useEffect(() => {
    if (typed === null || decoder == null) return undefined;
    const timer = setTimeout(() => {
      setInput((before) => inputOfTyped(typed, before));
      setTyped(null);
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [typed, decoder]);
  return (
    <>
      <SourceForm
        start={start?.text ?? ""}
        options={options}
        onOptions={setOptions}
        onType={setTyped}
        onInput={(next) => {
          setTyped(null);
          setInput(next);
          onChange();
        }}
      />
      {input === null ? (
        <EmptyState title={t("emptyTitle")} hint={t("emptyHint")} />
      ) : input.kind === "records" ? (
        <FileInspection key={input.number} file={input.file} profile={options.profile} />
      ) : input.kind === "large" ? (
        <LargeText key={input.number} file={input.file} name={input.name} kind={input.of} dialect={options.dialect} />
      ) : (
        <TextInspection key={input.number} text={input.text} kind={input.kind} name={input.name} options={options} decoder={decoder} />
      )}
    </>
  );
}
