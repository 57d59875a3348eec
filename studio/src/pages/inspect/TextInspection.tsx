import { api } from "../../api/client.ts";
import { type Finding, type TypedEvent } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";
import { Content } from "../../components/Page.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { ExportMenu } from "./ExportMenu.tsx";
import { type CheckedText } from "./records/exports.ts";
import { LargeText } from "./LargeText.tsx";
import { ReplyParts } from "./ReplyParts.tsx";
import { type InspectOptions } from "./SourceForm.tsx";
import { Summary } from "./Summary.tsx";
import { eventsOf } from "./transcript.ts";

/** Result of the server for a text. */
export type Reading = {
  readonly contract: string;
  readonly verdict: "pass" | "fail";
  readonly findings: readonly Finding[];
  readonly events: readonly TypedEvent[];
  /** Repaired reply; `undefined` for a transcript, which has none. */
  readonly repaired: string | null | undefined;
};

/** Reads a text with both routes of the server: for its verdict, and for its events. */
export async function readText(
  text: string,
  kind: "reply" | "transcript",
  { dialect, profile }: InspectOptions,
  signal: AbortSignal,
): Promise<Reading> {
  if (kind === "transcript") {
    const { data } = await api.post("/api/v1/check", { reply: text, contract: "events", profile }, { signal });
    return { ...data, events: eventsOf(text), repaired: undefined };
  }
  const named = dialect === "auto" ? {} : { contract: dialect };
  const [checked, decoded] = await Promise.all([
    api.post("/api/v1/check", { reply: text, profile, ...named }, { signal }),
    api.post("/api/v1/decode", { reply: text, dialect, extensions: true, repaired: true }, { signal }),
  ]);
  return { ...checked.data, events: decoded.data.events, repaired: decoded.data.repaired ?? null };
}

type TextInspectionProps = { text: string; kind: "reply" | "transcript"; name: string; options: InspectOptions };

/** Inspection of a reply or a transcript. */
export function TextInspection({ text, kind, name, options }: TextInspectionProps) {
  const { dialect, profile } = options;
  const reading = useResource(`${dialect} ${profile}`, (signal) => readText(text, kind, options, signal));
  const { line } = useProblemText();
  const { data } = reading;
  async function* texts(): AsyncGenerator<CheckedText> {
    if (data === null) return;
    const { contract, verdict, findings } = data;
    yield await Promise.resolve({ record: null, id: "", model: "", contract, verdict, findings });
  }
  if (reading.error?.status === 413) {
    return <LargeText file={new Blob([text])} name={name} kind={kind} dialect={dialect} reason={line(reading.error)} />;
  }
  return (
    <Content loading={reading.loading && data === null} error={reading.error} onRetry={reading.reload}>
      {data !== null && (
        <>
          <Summary reading={data} kind={kind} actions={<ExportMenu name={name} texts={texts} />} />
          <ReplyParts text={text} reading={data} />
        </>
      )}
    </Content>
  );
}
