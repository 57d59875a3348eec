//! Conversion of request fields of OpenAI's chat completions interface for other kinds of services, which may
//! refuse fields that they do not know.

use serde_json::{Map, Value, json};
use tambour::event::Failure;

use super::ModelRequest;
use super::chat_turns::unsendable_failure;

/// Fields of the chat completions interface that are among the extra fields of a [`ModelRequest`]. Another
/// kind of service uses those for which it has an equivalent; the others are dropped.
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

/// Extra fields of a request, by the interface that they belong to.
pub(super) struct ExtraFields {
    /// Fields of the chat completions interface.
    chat_fields: Map<String, Value>,
    /// Other fields, which are meant for the service itself.
    service_fields: Map<String, Value>,
}

impl ExtraFields {
    /// Splits the extra fields of a request by interface.
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

    /// Removes and returns a field meant for the service, for the caller to put in another place.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.service_fields.remove(name)
    }

    /// Returns the maximum number of tokens of the reply, if the request limits it.
    pub(super) fn max_tokens(&self, request: &ModelRequest) -> Option<Value> {
        request.max_tokens.map(Value::from).or_else(|| self.chat_field("max_completion_tokens"))
    }

    /// Adds the remaining fields meant for the service to the body of a request; existing fields are kept.
    pub(super) fn finish(self, mut body: Value) -> Value {
        if let Value::Object(body) = &mut body {
            merge(body, self.service_fields);
        }
        body
    }
}

/// Adds the fields that are missing in `target`, also in nested objects. Extra fields never override those
/// that the server sets.
pub(super) fn merge(target: &mut Map<String, Value>, fields: Map<String, Value>) {
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

/// Returns the stop sequences as a JSON list, if there are any.
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
    /// The model calls no tool.
    None,
    /// The model must call a tool.
    Any,
    /// The model must call the tool of this name.
    One(&'a str),
}

/// Returns the tool choice of a request, if any; `None` also if the request offers no tools.
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

/// Response format that the service enforces.
pub(super) enum ReplyFormat<'a> {
    /// JSON of any shape.
    Json,
    /// JSON of this schema, and the `strict` flag of the request.
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

/// Returns the model; fails without one, since a service of this kind requires it.
pub(super) fn require_model<'a>(model: Option<&'a str>, kind: &str) -> Result<&'a str, Failure> {
    let missing_model = || {
        let advice = "name one in the request or in `model` of the upstream";
        unsendable_failure(format!("a service of the kind `{kind}` needs the name of a model; {advice}"))
    };
    model.filter(|model| !model.trim().is_empty()).ok_or_else(missing_model)
}
