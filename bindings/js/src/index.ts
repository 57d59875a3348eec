/**
 * Structured replies of language models as one typed, repaired, contract-checked event stream.
 *
 * `decode` and `decodeStream` read replies while they arrive, `decodeInto` reads them into values of a schema, `check`,
 * `repair`, `loads`, `sanitize` and `contract` work on whole texts, `State` holds what replies change. Prompts, cards,
 * scripts and dialogues are in `@tambour/core/prompts`, readers of foreign streams in `@tambour/core/openai` and
 * `@tambour/core/ai-sdk`.
 *
 * Data of events and results has the names of JSON Lines and of the server, such as `first_error`.
 */

export type { Chunk, ChunkSource, AsyncChunkSource } from "./chunks.js";
export { decode, decodeStream, type Decoded, type DecodeSettings, type DecodeStream } from "./decode.js";
export { DecodeError, StateError, TambourError } from "./errors.js";
export {
  check,
  contract,
  loads,
  loadsWithFindings,
  repair,
  sanitize,
  sanitizeWithFindings,
  version,
  type CheckSettings,
  type Contract,
  type ContractFormat,
  type ContractSettings,
  type LoadSettings,
  type RepairSettings,
  type Text,
} from "./functions.js";
export {
  AsyncPartials,
  decodeInto,
  Partials,
  type IntoSettings,
  type JsonSchema,
  type Partial,
  type StandardSchema,
} from "./into.js";
export type { Options } from "./options.js";
export { Pipeline, type Dialect, type FinishReason, type PipelineSettings } from "./pipeline.js";
export { AsyncReader, SyncReader } from "./readers.js";
export { State, type ApplySettings, type HistoryPoint, type Operation } from "./state.js";
export type * from "./types.js";
