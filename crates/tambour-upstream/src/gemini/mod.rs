//! Requests to services with Gemini's interface.

mod frames;
mod schema;

use std::sync::Arc;

use http::request::Builder;
use serde_json::{Map, Value, json};
use tambour::event::Failure;
use url::Url;

use super::chat_turns::{
    ChatPart, ChatTurn, ImageSource, PromptTurns, arguments, build_turns, unsendable_failure,
};
use super::decode::FrameDecoder;
use super::fields::{
    ExtraFields, ReplyFormat, ToolSelection, functions, object_of, require_model, response_format,
    stop_sequences, tool_selection,
};
use super::kind::{ServiceApi, ServiceRequest, add_secret_header};
use super::{CallExtras, ModelRequest, NativeCall};
use frames::GeminiFrames;

/// Version of the interface if the base URL names none.
const API_VERSION: &str = "v1beta";
/// Value that the service accepts instead of a signature, for calls that none of its models made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Interface of Gemini.
pub(super) struct GeminiApi;

impl ServiceApi for GeminiApi {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn example_url(&self) -> &'static str {
        "https://generativelanguage.googleapis.com"
    }

    fn path(&self) -> &'static str {
        "/v1beta/models/..."
    }

    fn provider(&self) -> &'static str {
        "gcp.gemini"
    }

    fn build_request(
        &self,
        base: &str,
        model: Option<&str>,
        request: &ModelRequest,
    ) -> Result<ServiceRequest, Failure> {
        let model = require_model(model, "gemini")?;
        Ok(ServiceRequest { url: request_url(base, model)?, body: build_body(model, request)? })
    }

    fn add_headers(&self, request: Builder, key: Option<&str>) -> Builder {
        add_secret_header(request.header("accept", "text/event-stream"), "x-goog-api-key", key)
    }

    fn frame_decoder(&self, message_id: &Arc<str>) -> Box<dyn FrameDecoder> {
        Box::new(GeminiFrames::new(message_id))
    }
}

/// Builds the URL of a request: `BASE/VERSION/models/MODEL:streamGenerateContent?alt=sse`. The base URL may
/// end with the version.
fn request_url(base: &str, model: &str) -> Result<String, Failure> {
    let mut url = Url::parse(base)
        .map_err(|error| unsendable_failure(format!("the base URL is not valid: {error}")))?;
    let last_segment = url.path_segments().and_then(|mut segments| segments.next_back());
    let has_version = last_segment.is_some_and(is_version);
    let (folder, name) = match model.split_once('/') {
        Some((folder @ ("models" | "tunedModels"), name)) => (folder, name),
        _ => ("models", model),
    };
    {
        let mut path =
            url.path_segments_mut().map_err(|()| unsendable_failure("the base URL cannot have a path"))?;
        path.pop_if_empty();
        if !has_version {
            path.push(API_VERSION);
        }
        // The name is pushed as one segment, so that a `/` in it is escaped.
        path.push(folder).push(&format!("{name}:streamGenerateContent"));
    }
    url.set_query(Some("alt=sse"));
    Ok(url.into())
}

/// Returns `true` for a version of the interface, such as `v1` or `v1beta`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

/// Builds the body of a request.
fn build_body(model: &str, request: &ModelRequest) -> Result<Value, Failure> {
    let PromptTurns { system, turns } = build_turns(&request.messages)?;
    let needs_signature = requires_signatures(model);
    let contents: Vec<Value> =
        turns.iter().map(|turn| turn_content(turn, needs_signature)).collect::<Result<_, _>>()?;
    let mut fields = ExtraFields::from_request(request);
    let top_k = fields.take("top_k");
    let mut config = object_of([
        ("temperature", request.temperature.map(Value::from)),
        ("topP", request.top_p.map(Value::from)),
        ("topK", top_k),
        ("maxOutputTokens", fields.max_tokens(request)),
        ("stopSequences", stop_sequences(request)),
        ("seed", request.seed.map(Value::from)),
        ("frequencyPenalty", fields.chat_field("frequency_penalty")),
        ("presencePenalty", fields.chat_field("presence_penalty")),
    ]);
    set_format(request, &mut config);
    let declarations: Vec<Value> = functions(request).map(function_declaration).collect();
    let body = object_of([
        ("contents", Some(contents.into())),
        ("systemInstruction", (!system.is_empty()).then(|| json!({"parts": [{"text": system}]}))),
        ("tools", (!declarations.is_empty()).then(|| json!([{"functionDeclarations": declarations}]))),
        (
            "toolConfig",
            tool_selection(request).map(|choice| json!({"functionCallingConfig": calling_config(&choice)})),
        ),
        ("generationConfig", (!config.is_empty()).then(|| Value::Object(config))),
    ]);
    Ok(fields.finish(Value::Object(body)))
}

/// Sets the response format in the generation config.
fn set_format(request: &ModelRequest, config: &mut Map<String, Value>) {
    let Some(format) = response_format(request) else { return };
    config.insert("responseMimeType".to_owned(), "application/json".into());
    if let ReplyFormat::Schema(schema, _) = format {
        // `responseSchema` takes only the older form of schemas.
        let name = if schema::fits_old_form(schema) { "responseSchema" } else { "responseJsonSchema" };
        config.insert(name.to_owned(), schema.clone());
    }
}

/// Converts a function of a tool, from the form of OpenAI's chat completions interface.
fn function_declaration(function: &Value) -> Value {
    let parameters = function.get("parameters").filter(|parameters| parameters.is_object());
    // The service refuses a schema of an object without properties, but accepts a function without a schema.
    let parameters = parameters
        .filter(|parameters| *parameters != &json!({"type": "object"}) && *parameters != &json!({}));
    let fits_old_form = parameters.is_some_and(schema::fits_old_form);
    let name = if fits_old_form { "parameters" } else { "parametersJsonSchema" };
    Value::Object(object_of([
        ("name", Some(function["name"].clone())),
        ("description", function.get("description").cloned()),
        (name, parameters.cloned()),
    ]))
}

/// Converts the tool choice.
fn calling_config(choice: &ToolSelection<'_>) -> Value {
    match choice {
        ToolSelection::Auto => json!({"mode": "AUTO"}),
        ToolSelection::None => json!({"mode": "NONE"}),
        ToolSelection::Any => json!({"mode": "ANY"}),
        ToolSelection::One(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    }
}

/// Returns `true` if the model refuses calls in the prompt without a signature: Gemini 3 and later.
fn requires_signatures(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let number = name.strip_prefix("gemini-").and_then(|version| version.split(['.', '-']).next());
    number.and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number >= 3)
}

/// Converts a turn. With `needs_signature`, its first call gets a placeholder if it has no signature.
fn turn_content(
    ChatTurn { is_model, parts }: &ChatTurn<'_>,
    needs_signature: bool,
) -> Result<Value, Failure> {
    let mut is_first_call = true;
    let mut content_parts = Vec::with_capacity(parts.len());
    for part in parts {
        content_parts.push(match part {
            ChatPart::Text(text) => json!({ "text": text }),
            ChatPart::Image(ImageSource::Inline { media_type, data }) => {
                json!({"inlineData": {"mimeType": media_type, "data": data}})
            }
            ChatPart::Image(ImageSource::Remote(url)) => json!({"fileData": {"fileUri": url}}),
            ChatPart::Other(part) => {
                let kind = part["type"].as_str().unwrap_or_default();
                let problem =
                    format!("a part of the type `{kind}` cannot be sent to a service of the kind `gemini`");
                return Err(unsendable_failure(problem));
            }
            ChatPart::Call(call) => {
                let call_needs_signature = needs_signature && std::mem::take(&mut is_first_call);
                call_part(call, call_needs_signature)
            }
            ChatPart::Result { call, text, .. } => {
                let Some(call) = call else {
                    return Err(unsendable_failure(
                        "a message of role `tool` names a call that no message contains",
                    ));
                };
                json!({"functionResponse": object_of([
                    ("id", service_id(call)),
                    ("name", Some(call.function.name.as_str().into())),
                    ("response", Some(response_object(text))),
                ])})
            }
        });
    }
    Ok(json!({"role": if *is_model { "model" } else { "user" }, "parts": content_parts}))
}

/// Converts a call that the model made, with its signature if it has one. With `needs_signature`, a call
/// without one gets the placeholder.
fn call_part(call: &NativeCall, needs_signature: bool) -> Value {
    let signature = match &call.extras {
        Some(CallExtras::Gemini { signature, .. }) => signature.as_deref(),
        _ => None,
    };
    let signature = signature.or_else(|| needs_signature.then_some(NO_SIGNATURE));
    let function = object_of([
        ("id", service_id(call)),
        ("name", Some(call.function.name.as_str().into())),
        ("args", Some(arguments(call))),
    ]);
    let part =
        [("functionCall", Some(Value::Object(function))), ("thoughtSignature", signature.map(Value::from))];
    Value::Object(object_of(part))
}

/// Returns the id of a call if the service assigned it.
fn service_id(call: &NativeCall) -> Option<Value> {
    let has_service_id = matches!(call.extras, Some(CallExtras::Gemini { has_service_id: true, .. }));
    has_service_id.then(|| call.id.as_str().into())
}

/// Converts the result of a call to an object.
fn response_object(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => object,
        Ok(other) => json!({ "result": other }),
        Err(_) => json!({ "result": text }),
    }
}
