//! Requests to services with Gemini's interface.

mod frames;
mod schema;

use axum::http::request::Builder;
use reqwest::Url;
use serde_json::{Map, Value, json};
use tambour::event::Failure;

use super::fields::{Choice, Fields, Format, choice, format, functions, named, some, stops};
use super::kind::{Request, secret};
use super::turns::{Image, Part, Said, Turn, arguments, turns, unsendable};
use super::{Ask, Kept, NativeCall};
pub(super) use frames::Frames;

/// Version of the interface if the base URL names none.
const VERSION: &str = "v1beta";
/// Value that the service accepts instead of a signature for calls that it did not make itself.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Adds the headers of a request.
pub(super) fn headers(request: Builder, key: Option<&str>) -> Builder {
    secret(request.header("accept", "text/event-stream"), "x-goog-api-key", key)
}

/// Builds a request to a service at `base`, with or without the version.
pub(super) fn request(base: &str, model: Option<&str>, ask: &Ask) -> Result<Request, Failure> {
    let model = named(model, "gemini")?;
    Ok(Request { url: url(base, model)?, body: body(model, ask)? })
}

fn url(base: &str, model: &str) -> Result<String, Failure> {
    let mut url = Url::parse(base).map_err(|error| unsendable(format!("the base URL is none: {error}")))?;
    let versioned = url.path_segments().and_then(|mut all| all.next_back()).is_some_and(is_version);
    let (folder, name) = match model.split_once('/') {
        Some((folder @ ("models" | "tunedModels"), name)) => (folder, name),
        _ => ("models", model),
    };
    {
        let mut path = url.path_segments_mut().map_err(|()| unsendable("the base URL takes no path"))?;
        path.pop_if_empty();
        if !versioned {
            path.push(VERSION);
        }
        // A name is one path segment, whatever it contains.
        path.push(folder).push(&format!("{name}:streamGenerateContent"));
    }
    url.set_query(Some("alt=sse"));
    Ok(url.into())
}

/// Matches `v1`, `v1beta`, `v1alpha` and later versions.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

fn body(model: &str, ask: &Ask) -> Result<Value, Failure> {
    let Said { system, turns } = turns(&ask.messages)?;
    let signed = wants_signatures(model);
    let contents: Vec<Value> = turns.iter().map(|turn| content(turn, signed)).collect::<Result<_, _>>()?;
    let mut fields = Fields::of(ask);
    let top_k = fields.take("top_k");
    let mut config = some([
        ("temperature", ask.temperature.map(Value::from)),
        ("topP", ask.top_p.map(Value::from)),
        ("topK", top_k),
        ("maxOutputTokens", fields.max_tokens(ask)),
        ("stopSequences", stops(ask)),
        ("seed", ask.seed.map(Value::from)),
        ("frequencyPenalty", fields.chat("frequency_penalty")),
        ("presencePenalty", fields.chat("presence_penalty")),
    ]);
    held(ask, &mut config);
    let declared: Vec<Value> = functions(ask).map(declaration).collect();
    let body = some([
        ("contents", Some(contents.into())),
        ("systemInstruction", (!system.is_empty()).then(|| json!({"parts": [{"text": system}]}))),
        ("tools", (!declared.is_empty()).then(|| json!([{"functionDeclarations": declared}]))),
        ("toolConfig", choice(ask).map(|choice| json!({"functionCallingConfig": calling(&choice)}))),
        ("generationConfig", (!config.is_empty()).then(|| Value::Object(config))),
    ]);
    Ok(fields.finish(Value::Object(body)))
}

/// Sets the response format.
fn held(ask: &Ask, config: &mut Map<String, Value>) {
    let Some(format) = format(ask) else { return };
    config.insert("responseMimeType".to_owned(), "application/json".into());
    if let Format::Schema(given, _) = format {
        let name = if schema::is_plain(given) { "responseSchema" } else { "responseJsonSchema" };
        config.insert(name.to_owned(), given.clone());
    }
}

fn declaration(function: &Value) -> Value {
    let given = function.get("parameters").filter(|given| given.is_object());
    // The service does not accept an object schema without properties; a function without parameters it does.
    let given = given.filter(|given| *given != &json!({"type": "object"}) && *given != &json!({}));
    let plain = given.is_some_and(schema::is_plain);
    let name = if plain { "parameters" } else { "parametersJsonSchema" };
    Value::Object(some([
        ("name", Some(function["name"].clone())),
        ("description", function.get("description").cloned()),
        (name, given.cloned()),
    ]))
}

fn calling(choice: &Choice<'_>) -> Value {
    match choice {
        Choice::Auto => json!({"mode": "AUTO"}),
        Choice::None => json!({"mode": "NONE"}),
        Choice::Any => json!({"mode": "ANY"}),
        Choice::One(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    }
}

/// Returns `true` if the model refuses earlier calls without a signature: Gemini 3 and later.
fn wants_signatures(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let number = name.strip_prefix("gemini-").and_then(|rest| rest.split(['.', '-']).next());
    number.and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number >= 3)
}

fn content(Turn { model, parts }: &Turn<'_>, signed: bool) -> Result<Value, Failure> {
    let mut first = true;
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        all.push(match part {
            Part::Text(text) => json!({ "text": text }),
            Part::Image(Image::Here { kind, data }) => {
                json!({"inlineData": {"mimeType": kind, "data": data}})
            }
            Part::Image(Image::At(url)) => json!({"fileData": {"fileUri": url}}),
            Part::Other(part) => {
                let kind = part["type"].as_str().unwrap_or_default();
                let what =
                    format!("a part of the type `{kind}` cannot be sent to a service of the kind `gemini`");
                return Err(unsendable(what));
            }
            Part::Call(call) => called(call, signed && std::mem::take(&mut first)),
            Part::Result { call, text, .. } => {
                let Some(call) = call else {
                    return Err(unsendable(
                        "a message of role `tool` names a call that is not among the messages",
                    ));
                };
                json!({"functionResponse": some([
                    ("id", own_id(call)),
                    ("name", Some(call.function.name.as_str().into())),
                    ("response", Some(response(text))),
                ])})
            }
        });
    }
    Ok(json!({"role": if *model { "model" } else { "user" }, "parts": all}))
}

/// Converts a call that the model made. The first one of a turn has a signature, its own or the placeholder.
fn called(call: &NativeCall, signed: bool) -> Value {
    let signature = match &call.kept {
        Some(Kept::Gemini { signature, .. }) => signature.as_deref(),
        _ => None,
    };
    let signature = signature.or_else(|| signed.then_some(UNSIGNED));
    let function = some([
        ("id", own_id(call)),
        ("name", Some(call.function.name.as_str().into())),
        ("args", Some(arguments(call))),
    ]);
    let part =
        [("functionCall", Some(Value::Object(function))), ("thoughtSignature", signature.map(Value::from))];
    Value::Object(some(part))
}

/// Returns the id of a call if the service assigned it.
fn own_id(call: &NativeCall) -> Option<Value> {
    matches!(call.kept, Some(Kept::Gemini { named: true, .. })).then(|| call.id.as_str().into())
}

/// Converts the result of a call to an object.
fn response(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => object,
        Ok(other) => json!({ "result": other }),
        Err(_) => json!({ "result": text }),
    }
}
