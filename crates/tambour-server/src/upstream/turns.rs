//! What is said to a model as turns of two sides, for services that know no other form: the user's, results of tools among it, and the
//! model's. Messages of one side that follow each other are one turn.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Value, json};
use tambour::event::Failure;

use super::{Content, Message, NativeCall, failure};

/// What stands in the place of a turn of the user where the model is the first to speak.
const NOTHING: &str = ".";

/// What is said, in turns: the user's is the first.
pub(super) struct Said<'a> {
    /// What goes before everything else: all messages of the roles `system` and `developer`, wherever they stand.
    pub(super) system: String,
    pub(super) turns: Vec<Turn<'a>>,
}

/// All that one side says before the other one speaks.
pub(super) struct Turn<'a> {
    /// Whether the model speaks.
    pub(super) model: bool,
    pub(super) parts: Vec<Part<'a>>,
}

/// Something that is said.
pub(super) enum Part<'a> {
    /// Text that is more than blanks.
    Text(Cow<'a, str>),
    /// A picture.
    Image(Image<'a>),
    /// A part of another type, as it is.
    Other(&'a Value),
    /// A call of a tool.
    Call(&'a NativeCall),
    /// What a call came to.
    Result {
        /// Id of the call.
        id: &'a str,
        /// The call, if it is among what was said.
        call: Option<&'a NativeCall>,
        text: String,
    },
}

/// Where a picture is.
pub(super) enum Image<'a> {
    /// Here, in base64.
    Here { kind: &'a str, data: &'a str },
    /// At this address.
    At(&'a str),
}

/// The failure of a request that cannot be put into the words of its service.
pub(super) fn unsendable(what: impl Into<String>) -> Failure {
    failure("upstream_refused", what, false)
}

/// The turns of what is said.
pub(super) fn turns(messages: &[Message]) -> Result<Said<'_>, Failure> {
    let (mut system, mut turns, mut calls) = (String::new(), Vec::<Turn<'_>>::new(), Calls::default());
    for message in messages {
        calls.pass(message);
        let parts = match message.role.as_str() {
            "system" | "developer" => {
                add(&mut system, &message.text());
                continue;
            }
            "tool" => {
                let id = message.tool_call_id.as_deref().unwrap_or_default();
                vec![Part::Result { id, call: calls.of(message), text: message.text() }]
            }
            _ => parts(message)?,
        };
        let model = message.role == "assistant";
        match turns.last_mut() {
            Some(turn) if turn.model == model => turn.parts.extend(parts),
            _ if parts.is_empty() => {}
            _ => turns.push(Turn { model, parts }),
        }
    }
    let text = |text: String| vec![Part::Text(text.into())];
    match turns.first() {
        None if system.is_empty() => return Err(unsendable("nothing is said to the model")),
        // A service that is told nothing by a user says nothing.
        None => turns.push(Turn { model: false, parts: text(std::mem::take(&mut system)) }),
        Some(Turn { model: true, .. }) => {
            turns.insert(0, Turn { model: false, parts: text(NOTHING.to_owned()) });
        }
        Some(_) => {}
    }
    Ok(Said { system, turns })
}

/// The calls that were made up to a message, by their ids. An id may come again, in a later message: the last one counts.
#[derive(Default)]
pub(super) struct Calls<'a>(HashMap<&'a str, &'a NativeCall>);

impl<'a> Calls<'a> {
    /// The call that a message of role `tool` is about.
    pub(super) fn of(&self, message: &Message) -> Option<&'a NativeCall> {
        self.0.get(message.tool_call_id.as_deref()?).copied()
    }

    /// Goes on behind a message.
    pub(super) fn pass(&mut self, message: &'a Message) {
        self.0.extend(message.tool_calls.iter().map(|call| (call.id.as_str(), call)));
    }
}

/// What a user or a model says in one message.
pub(super) fn parts(message: &Message) -> Result<Vec<Part<'_>>, Failure> {
    let mut parts = Vec::new();
    match &message.content {
        None => {}
        Some(Content::Text(text)) => parts.push(Part::Text(text.into())),
        Some(Content::Parts(given)) => {
            for part in given {
                parts.push(match part["type"].as_str() {
                    Some("text") => Part::Text(part["text"].as_str().unwrap_or_default().into()),
                    Some("image_url") => Part::Image(image(part)?),
                    _ => Part::Other(part),
                });
            }
        }
    }
    parts.retain(|part| !matches!(part, Part::Text(text) if text.trim().is_empty()));
    // Only a user is one of several.
    if let (Some(name), "user", Some(Part::Text(text))) = (&message.name, &*message.role, parts.first_mut()) {
        *text = format!("{name}: {text}").into();
    }
    parts.extend(message.tool_calls.iter().map(Part::Call));
    Ok(parts)
}

/// The picture of a part: `{"image_url": {"url": ...}}`, or the address itself.
fn image(part: &Value) -> Result<Image<'_>, Failure> {
    let given = &part["image_url"];
    let url = given.as_str().or_else(|| given["url"].as_str());
    let url = url.ok_or_else(|| unsendable("a part `image_url` has no `url`"))?;
    let Some(here) = url.strip_prefix("data:") else { return Ok(Image::At(url)) };
    let (head, data) = here.split_once(',').unwrap_or_default();
    let kind = head.strip_suffix(";base64").filter(|kind| !kind.is_empty());
    let kind = kind.ok_or_else(|| unsendable("a `data:` URL of an image is `data:image/TYPE;base64,...`"))?;
    Ok(Image::Here { kind: kind.split(';').next().unwrap_or(kind), data })
}

/// The arguments of a call as an object. What is none is kept in one: the model is to see what it wrote.
pub(super) fn arguments(call: &NativeCall) -> Value {
    let written = call.function.arguments.trim();
    match serde_json::from_str(written) {
        Ok(object @ Value::Object(_)) => object,
        _ if written.is_empty() => json!({}),
        _ => json!({ "arguments": written }),
    }
}

/// A text behind another one, in a paragraph of its own.
fn add(before: &mut String, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    if !before.is_empty() {
        before.push_str("\n\n");
    }
    before.push_str(text);
}
