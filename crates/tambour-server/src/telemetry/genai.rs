//! Attribute names and values of the OpenTelemetry convention for model and tool calls. The convention is
//! still changing; a new version of it affects this file and
//! `upstream/genai.rs`.

use opentelemetry::KeyValue;
use serde_json::Value;

use super::ToolCallInfo;

/// Conversation or dialogue.
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
/// Failure code.
pub(crate) const ERROR: &str = "error.type";
pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const MODEL: &str = "gen_ai.request.model";
pub(crate) const TEMPERATURE: &str = "gen_ai.request.temperature";
pub(crate) const TOP_P: &str = "gen_ai.request.top_p";
pub(crate) const MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(crate) const SEED: &str = "gen_ai.request.seed";
pub(crate) const STOP: &str = "gen_ai.request.stop_sequences";
pub(crate) const OUTPUT: &str = "gen_ai.output.type";
pub(crate) const REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const FIRST: &str = "gen_ai.response.time_to_first_chunk";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
const TOOL: &str = "gen_ai.tool.name";
const TOOL_CALL: &str = "gen_ai.tool.call.id";
const TOOL_TYPE: &str = "gen_ai.tool.type";
const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
const RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const ADDRESS: &str = "server.address";
pub(crate) const PORT: &str = "server.port";
/// Most bytes of one text attribute; longer ones are omitted and marked.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Name of an omitted attribute.
const OMITTED: &str = "tambour.content_omitted";

/// Returns the span name of a tool call.
pub(crate) fn tool_name(tool: &ToolCallInfo<'_>) -> String {
    format!("execute_tool {}", tool.name)
}

/// Returns the attributes of a tool call that are known before its result.
pub(crate) fn tool_attributes(tool: &ToolCallInfo<'_>, content: bool) -> Vec<KeyValue> {
    let mut all = vec![
        KeyValue::new(OPERATION, "execute_tool"),
        KeyValue::new(TOOL, tool.name.to_owned()),
        KeyValue::new(TOOL_CALL, tool.call_id.to_owned()),
        KeyValue::new(TOOL_TYPE, if tool.is_client_call { "function" } else { "extension" }),
    ];
    if content {
        all.push(text_attribute(ARGUMENTS, tool.args));
    }
    all
}

/// Returns the attribute of a tool's result.
pub(crate) fn result_attribute(result: &Value) -> KeyValue {
    text_attribute(RESULT, result)
}

/// Returns a JSON text attribute.
pub(crate) fn text_attribute(name: &'static str, value: &Value) -> KeyValue {
    let text = value.to_string();
    if text.len() > MAX_TEXT_BYTES { KeyValue::new(OMITTED, name) } else { KeyValue::new(name, text) }
}
