//! Fields of the chat completions interface for other kinds of services, so that a service does not refuse
//! fields it does not know.

use serde_json::{Map, Value, json};
use tambour::event::Failure;

use super::ModelRequest;
use super::chat_turns::unsendable_failure;

/// Fields that clients of the chat completions interface send. A kind uses those for which it has a name of
/// its own; the others are dropped.
const CHAT_FIELDS: [&str; 24] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "modalities",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options",
    "top_logprobs",
    "user",
    "verbosity",
    "web_search_options",
];

/// Further fields of a request.
pub(super) struct ExtraFields {
    /// Fields of the chat completions interface.
    chat_fields: Map<String, Value>,
    /// Fields of the service itself.
    service_fields: Map<String, Value>,
}

impl ExtraFields {
    pub(super) fn from_request(request: &ModelRequest) -> ExtraFields {
        let (chat_fields, service_fields) = request
            .extra_fields
            .clone()
            .into_iter()
            .partition(|(name, _)| CHAT_FIELDS.contains(&name.as_str()));
        ExtraFields { chat_fields, service_fields }
    }

    /// Returns a field of the chat completions interface.
    pub(super) fn chat_field(&self, name: &str) -> Option<Value> {
        self.chat_fields.get(name).filter(|value| !value.is_null()).cloned()
    }

    /// Removes and returns a field that the service expects in another place.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.service_fields.remove(name)
    }

    /// Returns the limit of the reply's tokens.
    pub(super) fn max_tokens(&self, request: &ModelRequest) -> Option<Value> {
        request.max_tokens.map(Value::from).or_else(|| self.chat_field("max_completion_tokens"))
    }

    /// Adds the service's own fields to a request; existing ones are kept.
    pub(super) fn finish(self, mut body: Value) -> Value {
        if let Value::Object(body) = &mut body {
            merge(body, self.service_fields);
        }
        body
    }
}

/// Adds missing fields, also in nested objects. Extra fields never override the ones we set.
fn merge(target: &mut Map<String, Value>, fields: Map<String, Value>) {
    for (name, value) in fields {
        match (target.get_mut(&name), value) {
            (Some(Value::Object(target)), Value::Object(fields)) => merge(target, fields),
            (Some(_), _) => {}
            (None, value) => {
                target.insert(name, value);
            }
        }
    }
}

/// Builds an object of the fields that have a value.
pub(super) fn object_of<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns the stop texts as a list.
pub(super) fn stop_sequences(request: &ModelRequest) -> Option<Value> {
    match request.stop.clone()? {
        Value::Null => None,
        list @ Value::Array(_) => Some(list),
        sequence => Some(json!([sequence])),
    }
}

/// Returns the offered functions, in the form of the chat completions interface.
pub(super) fn functions(request: &ModelRequest) -> impl Iterator<Item = &Value> {
    request.tools.iter().map(|tool| &tool["function"])
}

/// Tool choice.
pub(super) enum ToolSelection<'a> {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// Any tool.
    Any,
    /// This tool.
    One(&'a str),
}

/// Returns the tool choice of a request, if any.
pub(super) fn tool_selection(request: &ModelRequest) -> Option<ToolSelection<'_>> {
    let choice = request.tool_choice.as_ref().filter(|_| !request.tools.is_empty())?;
    match (choice.as_str(), choice["function"]["name"].as_str()) {
        (Some("none"), _) => Some(ToolSelection::None),
        (Some("required"), _) => Some(ToolSelection::Any),
        (_, Some(name)) => Some(ToolSelection::One(name)),
        (Some("auto"), _) => Some(ToolSelection::Auto),
        _ => None,
    }
}

/// Response format enforced by the service.
pub(super) enum ReplyFormat<'a> {
    /// JSON of any shape.
    Json,
    /// JSON of this schema, with its `strict` flag.
    Schema(&'a Value, bool),
}

/// Returns the response format of a request, if any.
pub(super) fn response_format(request: &ModelRequest) -> Option<ReplyFormat<'_>> {
    let format = request.response_format.as_ref()?;
    let json_schema = &format["json_schema"];
    match format["type"].as_str()? {
        "json_object" => Some(ReplyFormat::Json),
        "json_schema" if json_schema["schema"].is_object() => {
            Some(ReplyFormat::Schema(&json_schema["schema"], json_schema["strict"] == true))
        }
        _ => None,
    }
}

/// Returns the model, which these services require.
pub(super) fn require_model<'a>(model: Option<&'a str>, kind: &str) -> Result<&'a str, Failure> {
    let missing_model = || {
        let advice = "name one in the request or in `model` of the upstream";
        unsendable_failure(format!("a service of the kind `{kind}` needs the name of a model; {advice}"))
    };
    model.filter(|model| !model.trim().is_empty()).ok_or_else(missing_model)
}
