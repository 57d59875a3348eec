//! Requests to services with Ollama's interface.

mod frames;

use axum::http::request::Builder;
use serde_json::{Value, json};
use tambour::event::Failure;

use super::fields::{Choice, Fields, Format, choice, format, named, some, stops};
use super::kind::{Request, bearer};
use super::turns::{Calls, Image, Part, arguments, parts, unsendable};
use super::{Ask, Message};
pub(super) use frames::Frames;

/// Adds the headers of a request.
pub(super) fn headers(request: Builder, key: Option<&str>) -> Builder {
    bearer(request.header("accept", "application/x-ndjson"), key)
}

/// Builds a request to a service at `base`, with or without `/api`.
pub(super) fn request(base: &str, model: Option<&str>, ask: &Ask) -> Result<Request, Failure> {
    let folder = if base.ends_with("/api") { "" } else { "/api" };
    Ok(Request { url: format!("{base}{folder}/chat"), body: body(model, ask)? })
}

fn body(model: Option<&str>, ask: &Ask) -> Result<Value, Failure> {
    let mut made = Calls::default();
    let mut messages = Vec::with_capacity(ask.messages.len());
    for said in &ask.messages {
        made.pass(said);
        messages.push(message(said, &made)?);
    }
    let mut fields = Fields::of(ask);
    let top_k = fields.take("top_k");
    let options = some([
        ("temperature", ask.temperature.map(Value::from)),
        ("top_p", ask.top_p.map(Value::from)),
        ("top_k", top_k),
        ("num_predict", fields.max_tokens(ask)),
        ("stop", stops(ask)),
        ("seed", ask.seed.map(Value::from)),
        ("frequency_penalty", fields.chat("frequency_penalty")),
        ("presence_penalty", fields.chat("presence_penalty")),
    ]);
    let format = format(ask).map(|format| match format {
        Format::Json => "json".into(),
        Format::Schema(schema, _) => schema.clone(),
    });
    // The service has no tool choice; with "none" no tools are sent.
    let offered = !ask.tools.is_empty() && !matches!(choice(ask), Some(Choice::None));
    let body = some([
        ("model", Some(named(model, "ollama")?.into())),
        ("messages", Some(messages.into())),
        ("stream", Some(true.into())),
        ("format", format),
        ("tools", offered.then(|| ask.tools.clone().into())),
        ("options", (!options.is_empty()).then(|| Value::Object(options))),
    ]);
    Ok(fields.finish(Value::Object(body)))
}

fn message(said: &Message, made: &Calls<'_>) -> Result<Value, Failure> {
    let role = if said.role == "developer" { "system" } else { said.role.as_str() };
    let (mut texts, mut images, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts(said)? {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Image(Image::Here { data, .. }) => images.push(Value::from(data)),
            Part::Image(Image::At(_)) => {
                let what = "a service of the kind `ollama` takes images as `data:` URLs only";
                return Err(unsendable(what));
            }
            Part::Other(part) => {
                let kind = part["type"].as_str().unwrap_or_default();
                let what =
                    format!("a part of the type `{kind}` cannot be sent to a service of the kind `ollama`");
                return Err(unsendable(what));
            }
            Part::Call(call) => {
                calls.push(json!({"function": {"name": call.function.name, "arguments": arguments(call)}}));
            }
            Part::Result { .. } => {}
        }
    }
    Ok(Value::Object(some([
        ("role", Some(role.into())),
        ("content", Some(texts.concat().into())),
        ("thinking", said.reasoning_content.as_deref().map(Value::from)),
        ("images", (!images.is_empty()).then(|| images.into())),
        ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
        ("tool_name", made.of(said).map(|call| call.function.name.as_str().into())),
    ])))
}
