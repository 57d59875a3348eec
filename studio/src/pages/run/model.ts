import { type Schemas } from "../../api/types.ts";

export type Dialogue = Schemas["Dialogue"];
export type Coverage = Schemas["Coverage"];
export type ActionCoverage = Coverage["actions"][number];
export type Turn = Schemas["Turn"];
export type RecordedTurn = Schemas["DialogueTurn"];
export type Replayed = Schemas["Replayed"];

export type Position = {
  readonly session: string;
  readonly phase: string;
  readonly topic: string;
  readonly action_type: string;
  readonly action_id: string | null;
  readonly path: string;
};

export type Assessment = {
  readonly understanding_level?: number;
  readonly has_questions?: boolean;
  readonly expressed_understanding?: boolean;
  readonly reasoning?: string;
};

export type Decision = {
  readonly should_exit: boolean;
  readonly reason: string;
  readonly decision_source: string;
  readonly unmet: readonly string[];
  readonly round: number;
  readonly max_rounds: number;
  readonly assessment?: Assessment;
};

export type Fault = { readonly code: string; readonly message: string; readonly retryable?: boolean };

export type RoundFinding = {
  readonly rule: string;
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly repair?: string | null;
};

/** Round, as the trace records it. */
export type Round = {
  readonly number: number;
  readonly turn?: string | null;
  readonly created: string;
  readonly status: string;
  readonly action_type?: string;
  readonly path?: string | null;
  readonly round?: number;
  readonly max_rounds?: number | null;
  readonly attempt?: number;
  readonly upstream?: string;
  readonly model?: string | null;
  readonly template_id?: string;
  readonly template_hash?: string;
  readonly warnings?: readonly { readonly message: string }[];
  readonly notices?: readonly { readonly message: string }[];
  readonly prompt?: readonly { readonly role: string; readonly content: string }[];
  readonly raw?: string;
  readonly findings?: readonly RoundFinding[];
  readonly unreadable?: string | null;
  readonly asked_again?: boolean;
  readonly assessment?: Assessment | null;
  readonly exit_decision?: Decision | null;
  readonly assigned?: Readonly<Record<string, unknown>> | null;
  readonly usage?: { readonly total_tokens?: number } | null;
  readonly timings?: { readonly first_text_ms?: number | null; readonly total_ms?: number };
  readonly error?: Fault | null;
};

/** Rounds with a model call. */
export const callsOf = (rounds: readonly Round[]): Round[] => rounds.filter(({ prompt }) => prompt !== undefined);

export type Request = {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>> & { readonly call_id: string };
};

export type Result = Omit<Turn, "position" | "metadata" | "error" | "request" | "notices"> & {
  readonly notices: readonly { readonly code: string; readonly message: string }[];
  readonly position: Position | null;
  readonly metadata: {
    readonly action_type: string;
    readonly current_round: number;
    readonly max_rounds: number | null;
    readonly assessment: Assessment | null;
    readonly exit_decision: Decision | null;
  } | null;
  readonly error: Fault | null;
  readonly request: Request | null;
};

/** Turn with the types of its parts, which the API description leaves open. */
export const resultOf = (turn: Turn): Result => turn as unknown as Result;

export const isOver = (status: string): boolean => status === "completed" || status === "failed";
