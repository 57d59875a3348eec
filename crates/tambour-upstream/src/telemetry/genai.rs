//! Names of attributes in the OpenTelemetry convention for model calls (`gen_ai`), and the attributes of tool
//! calls. The convention is still changing; a new version of it affects this file and `src/genai.rs`.

use opentelemetry::KeyValue;
use serde_json::Value;

use super::ToolCallInfo;

/// Id of a conversation or dialogue.
pub(crate) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// Code of a failure.
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const MODEL: &str = "gen_ai.request.model";
pub(crate) const TEMPERATURE: &str = "gen_ai.request.temperature";
pub(crate) const TOP_P: &str = "gen_ai.request.top_p";
pub(crate) const MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(crate) const SEED: &str = "gen_ai.request.seed";
pub(crate) const STOP_SEQUENCES: &str = "gen_ai.request.stop_sequences";
pub(crate) const OUTPUT_TYPE: &str = "gen_ai.output.type";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const FIRST_CHUNK_TIME: &str = "gen_ai.response.time_to_first_chunk";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
const TOOL_NAME: &str = "gen_ai.tool.name";
const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
const TOOL_TYPE: &str = "gen_ai.tool.type";
const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
const RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";
/// Maximum length in bytes of a text attribute; a longer attribute is replaced by [`OMITTED`].
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Attribute whose value is the name of a text attribute that was too long.
const OMITTED: &str = "tambour.content_omitted";

/// Returns the span name of a tool call.
pub(crate) fn tool_span_name(tool: &ToolCallInfo<'_>) -> String {
    format!("execute_tool {}", tool.name)
}

/// Returns the attributes of a tool call that are known before its result; with its arguments if
/// `with_content`.
pub(crate) fn tool_attributes(tool: &ToolCallInfo<'_>, with_content: bool) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new(OPERATION, "execute_tool"),
        KeyValue::new(TOOL_NAME, tool.name.to_owned()),
        KeyValue::new(TOOL_CALL_ID, tool.call_id.to_owned()),
        // In the convention, clients run functions and agents run extensions.
        KeyValue::new(TOOL_TYPE, if tool.is_client_call { "function" } else { "extension" }),
    ];
    if with_content {
        attributes.push(text_attribute(ARGUMENTS, tool.args));
    }
    attributes
}

/// Returns the attribute of a tool's result.
pub(crate) fn result_attribute(result: &Value) -> KeyValue {
    text_attribute(RESULT, result)
}

/// Returns an attribute with a value as JSON text, or `OMITTED` if that is too long.
pub(crate) fn text_attribute(name: &'static str, value: &Value) -> KeyValue {
    let text = value.to_string();
    if text.len() > MAX_TEXT_BYTES { KeyValue::new(OMITTED, name) } else { KeyValue::new(name, text) }
}
