// The package as an ES module, and copied as a CommonJS one: types of events, options and results.
import {
  type AsyncReader,
  check,
  contract,
  decode,
  DecodeError,
  decodeInto,
  decodeStream,
  type Event,
  type Finding,
  loads,
  type Operation,
  Pipeline,
  repair,
  State,
  StateError,
  type SyncReader,
  TambourError,
  type ToolCall,
} from "@tambour/core";
import { Dialogue, importCard, renderPrompt, Script, ScriptError } from "@tambour/core/prompts";

/** Holds if two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const assertSame = <A, B>(_: Same<A, B>): void => undefined;

/** Text of an event; the name of an event tells its data. */
function show(event: Event): string {
  switch (event.event) {
    case "final_delta":
      assertSame<typeof event.data.text, string>(true);
      return event.data.text;
    case "phase_start":
      assertSame<typeof event.data.id, number>(true);
      return `${event.data.id} ${event.data.title}`;
    case "tool_call":
      assertSame<typeof event.data, ToolCall>(true);
      assertSame<typeof event.data.args, unknown>(true);
      return event.data.name;
    case "completed":
      assertSame<typeof event.data.finish_reason, "stop" | "length" | "content_filter" | "tool_calls" | "cancelled">(true);
      return String(event.data.metadata.truncated);
    case "error":
      return event.data.upstream?.code ?? event.data.code;
    case "finding":
      assertSame<typeof event.data, Finding>(true);
      return event.data.severity;
    // @ts-expect-error -- no event has this name
    case "final_text":
      return "";
    default:
      // @ts-expect-error -- an event that is left has no text for sure
      return event.data.text;
  }
}

const delta: Event<"final_delta"> = { event: "final_delta", data: { text: "a" } };
// @ts-expect-error -- the data of another event
const wrong: Event<"final_delta"> = { event: "final_delta", data: { title: "a" } };

export async function read(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = decode(body, { dialect: "thinkingml", findings: true, "limits.input": 1 << 20 });
  assertSame<typeof reader, AsyncReader<string | Uint8Array>>(true);
  for await (const event of reader) show(event);
  const events = body.pipeThrough(decodeStream({ dialect: "auto" }));
  assertSame<typeof events, ReadableStream<Event>>(true);

  const sync = decode(["a", new Uint8Array()], { finish: null, incomplete: true });
  assertSame<typeof sync, SyncReader<string | Uint8Array>>(true);
  for (const event of sync) show(event);

  // @ts-expect-error -- no dialect has this name
  decode("a", { dialect: "plane" });
  // @ts-expect-error -- no option has this name
  decode("a", { "plain.thoughts": "open" });
  // @ts-expect-error -- the option does not accept this value
  decode("a", { "plain.reasoning": "maybe" });
  // @ts-expect-error -- no reply ends for this reason
  decode("a", { finish: "end" });
  // @ts-expect-error -- no chunk
  decode([1]);
  // @ts-expect-error -- no state
  new Pipeline({ state: { trust: 5 } });

  const pipeline = new Pipeline({ dialect: "toolcall", tools: [{ name: "add" }], state: new State({ trust: 5 }) });
  pipeline.push("a").map(show);
  pipeline.insert({ event: "tool_result", data: { call_id: "call_1", ok: true, elapsed_ms: 1 } });
  // @ts-expect-error -- no event has this name
  pipeline.insert({ event: "tool_done", data: {} });
  const calls: ToolCall[] = pipeline.pendingCalls;
  void [calls, delta, wrong];
}

export function useState(): number {
  const operations: Operation[] = [["ADD", "trust", 3], ["DEL", "bag"]];
  const state = new State({ trust: 5 });
  try {
    return state.apply(operations, { message: "m1" }).results.length;
  } catch (error) {
    if (error instanceof StateError) return error.events.length;
    if (error instanceof TambourError) return error.line ?? 0;
    throw error;
  }
}

export function useFunctions(text: string): unknown {
  assertSame<ReturnType<typeof loads>, unknown>(true);
  const prompt: string = contract("thinkingml", { text_language: "en" });
  const schema: unknown = contract("aiplan", { format: "json-schema" });
  // @ts-expect-error -- a form in JSON is no text
  const wrongForm: string = contract("aiplan", { format: "json-schema" });
  // @ts-expect-error -- no contract has this name
  check(text, { contract: "plane" });
  const { passed } = check(text, { contract: "events" });
  return [prompt, schema, wrongForm, passed, repair(text, { dialect: "thinkingml" }).is_fallback];
}

interface Trip {
  city: string;
  stops: { name: string; days: number }[];
}

export function useInto(chunks: string[], later: AsyncIterable<string>): Trip | undefined {
  for (const trip of decodeInto<Trip>({ type: "object" }, chunks)) {
    assertSame<typeof trip.city, string | undefined>(true);
    const name: string | undefined = trip.stops?.[0]?.name;
    void name;
  }
  const final: Promise<Trip> = decodeInto<Trip>({ type: "object" }, later).final();
  void final;
  try {
    return decodeInto<Trip>({}, chunks).final();
  } catch (error) {
    if (error instanceof DecodeError) void error.findings.map((finding) => finding.span.start);
    return undefined;
  }
}

export function usePrompts(source: string): void {
  const { skein, entries } = importCard(new Uint8Array(), { name: "a.png" });
  renderPrompt(skein, { entries }, { language: "en", countTokens: (text) => text.length });
  // @ts-expect-error -- no such language
  renderPrompt(skein, {}, { language: "fr" });
  try {
    const dialogue = new Dialogue(new Script(source), { session: "a", "ai_say.role": "Coach" });
    const step = dialogue.next();
    switch (step.type) {
      case "call":
        dialogue.reply(step.call.messages.map((message) => message.content).join(), { finish: "stop" });
        break;
      case "event":
        show(step.event);
        break;
      case "await_user":
        assertSame<typeof step.continues, boolean>(true);
        break;
      case "await_answer":
        dialogue.answer(step.call_id, 1);
        break;
      case "finished":
        assertSame<keyof typeof step, "type">(true);
    }
  } catch (error) {
    if (error instanceof ScriptError) void error.problems[0]?.finding.line;
  }
}
