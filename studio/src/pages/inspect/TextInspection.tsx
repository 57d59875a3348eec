import { useMemo } from "react";
import { api } from "../../api/client.ts";
import { type Finding, type TypedEvent } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";
import { Content } from "../../components/Page.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { type Decoder } from "../../decoder/decoder.ts";
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

/** Most characters that the browser reads itself; a longer text would stop the page for a while. */
const MOST_HERE = 500_000;

/** Reads a text in the browser; `null` if it is too long, or the decoder fails. */
function readHere(decoder: Decoder, text: string, kind: "reply" | "transcript", { dialect, profile }: InspectOptions): Reading | null {
  if (text.length > MOST_HERE) return null;
  try {
    if (kind === "reply") return decoder.read(text, dialect, profile);
    return { ...decoder.check(text, "events", profile), events: eventsOf(text), repaired: undefined };
  } catch {
    return null;
  }
}

type TextInspectionProps = {
  text: string;
  kind: "reply" | "transcript";
  name: string;
  options: InspectOptions;
  /** Reader in the browser; `undefined` while it loads, `null` if only the server can read. */
  decoder: Decoder | null | undefined;
};

/** Inspection of a reply or a transcript: in the browser where it can, else by the server. */
export function TextInspection({ text, kind, name, options, decoder }: TextInspectionProps) {
  const { dialect, profile } = options;
  const here = useMemo(
    () => (decoder == null ? null : readHere(decoder, text, kind, { dialect, profile })),
    [decoder, text, kind, dialect, profile],
  );
  // A text that is typed changes under the same name, but the server is asked about a new one.
  const request = `${dialect} ${profile} ${text.length > MOST_HERE ? "" : text}`;
  const reading = useResource(decoder === undefined || here !== null ? null : request, (signal) => readText(text, kind, options, signal));
  const { line } = useProblemText();
  const data = here ?? reading.data;
  async function* texts(): AsyncGenerator<CheckedText> {
    if (data === null) return;
    const { contract, verdict, findings } = data;
    yield await Promise.resolve({ record: null, id: "", model: "", contract, verdict, findings });
  }
  if (reading.error?.status === 413) {
    return <LargeText file={new Blob([text])} name={name} kind={kind} dialect={dialect} reason={line(reading.error)} />;
  }
  return (
    <Content loading={data === null && reading.error === null} error={reading.error} onRetry={reading.reload}>
      {data !== null && (
        <>
          <Summary reading={data} kind={kind} actions={<ExportMenu name={name} texts={texts} />} />
          <ReplyParts text={text} reading={data} />
        </>
      )}
    </Content>
  );
}
