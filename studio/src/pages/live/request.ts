import { type Schemas } from "../../api/types.ts";
import { targetOf } from "./targets.ts";

export const DIALECTS = [
  "auto", "thinkingml", "jsonseq", "aiplan", "filament", "ai_say", "toolcall", "json_value", "plain",
] as const;

/** Values of the form. */
export type Draft = {
  text: string;
  target?: string | undefined;
  model?: string | undefined;
  /** Asks the second target too. */
  compare?: boolean | undefined;
  /** Second target for the same request. */
  second?: string | undefined;
  secondModel?: string | undefined;
  dialect?: string | undefined;
  profile?: "lenient" | "strict" | undefined;
  protocol?: "jsonseq_v1" | "legacy" | undefined;
  systemPrompt?: string | undefined;
  instructions?: boolean | undefined;
  temperature?: number | null | undefined;
  maxTokens?: number | null | undefined;
  maxReasks?: number | null | undefined;
  hold?: "none" | "until_final" | "all" | undefined;
  tools?: string[] | undefined;
  conversation?: string | undefined;
};

export type MessageBody = Schemas["NewMessage"];

/** Fields that upstreams and aliases share. */
function shared(draft: Draft): Partial<MessageBody> {
  const { dialect, profile, hold, instructions, maxReasks, tools } = draft;
  const options = hold === undefined ? {} : { options: { hold } };
  const contract = { ...(profile === undefined ? {} : { profile }), ...options };
  return {
    ...(dialect === undefined || dialect === "auto" ? {} : { dialect }),
    ...(Object.keys(contract).length === 0 ? {} : { contract: contract as NonNullable<MessageBody["contract"]> }),
    ...(instructions === true ? { instructions } : {}),
    ...(typeof maxReasks === "number" ? { max_reasks: maxReasks } : {}),
    ...(tools === undefined || tools.length === 0 ? {} : { tools: tools }),
  };
}

const given = (text: string | undefined): string | undefined => (text?.trim() === "" ? undefined : text?.trim());

/** Body of `POST /api/v1/messages` for an upstream. */
export function messageBody(draft: Draft, target: string | undefined, model: string | undefined): MessageBody {
  const upstream = targetOf(target)?.name;
  const { text, systemPrompt, temperature, maxTokens, protocol, conversation } = draft;
  return {
    text,
    ...shared(draft),
    ...(upstream === undefined ? {} : { upstream }),
    ...(given(model) === undefined ? {} : { model: given(model) }),
    ...(given(systemPrompt) === undefined ? {} : { system_prompt: systemPrompt }),
    ...(typeof temperature === "number" ? { temperature } : {}),
    ...(typeof maxTokens === "number" ? { max_tokens: maxTokens } : {}),
    ...(given(conversation) === undefined ? {} : { conversation_id: given(conversation) }),
    output_protocol: protocol ?? "jsonseq_v1",
    extensions: true,
    findings: true,
  } as MessageBody;
}

/** Body of `POST /v1/responses` for an alias: it runs in the background, and is followed like any message. */
export function responseBody(draft: Draft, alias: string): Record<string, unknown> {
  const { text, systemPrompt, temperature, maxTokens } = draft;
  return {
    model: alias,
    input: text,
    background: true,
    store: true,
    stream: true,
    ...(given(systemPrompt) === undefined ? {} : { instructions: systemPrompt }),
    ...(typeof temperature === "number" ? { temperature } : {}),
    ...(typeof maxTokens === "number" ? { max_output_tokens: maxTokens } : {}),
    tambour: { ...shared(draft), extensions: true, findings: true },
  };
}
