//! Conversion of a prompt to alternating turns of two sides, for services that require them: the user with
//! tool results, and the model. Adjacent messages of one side form one turn.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Value, json};
use tambour::event::Failure;

use super::{Content, Message, NativeCall, failure};

/// Placeholder of the user's turn where the model speaks first.
const NOTHING: &str = ".";

/// Prompt as turns; the first one is the user's.
pub(super) struct Said<'a> {
    /// System prompt: all messages of the roles `system` and `developer`, wherever they are.
    pub(super) system: String,
    pub(super) turns: Vec<Turn<'a>>,
}

/// Everything that one side says in a row.
pub(super) struct Turn<'a> {
    /// True if the model speaks.
    pub(super) model: bool,
    pub(super) parts: Vec<Part<'a>>,
}

/// Part of a turn.
pub(super) enum Part<'a> {
    /// Text that is not blank.
    Text(Cow<'a, str>),
    /// Image.
    Image(Image<'a>),
    /// Part of another type, unchanged.
    Other(&'a Value),
    /// Tool call.
    Call(&'a NativeCall),
    /// Result of a call.
    Result {
        /// Id of the call.
        id: &'a str,
        /// The call, if it is in the prompt.
        call: Option<&'a NativeCall>,
        text: String,
    },
}

/// Source of an image.
pub(super) enum Image<'a> {
    /// Inline data in base64.
    Here { kind: &'a str, data: &'a str },
    /// URL.
    At(&'a str),
}

/// Returns the failure of a request that cannot be converted for its service.
pub(super) fn unsendable(what: impl Into<String>) -> Failure {
    failure("upstream_refused", what, false)
}

/// Converts messages to turns.
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
        // Services need a user message, so a lone system prompt becomes one.
        None => turns.push(Turn { model: false, parts: text(std::mem::take(&mut system)) }),
        Some(Turn { model: true, .. }) => {
            turns.insert(0, Turn { model: false, parts: text(NOTHING.to_owned()) });
        }
        Some(_) => {}
    }
    Ok(Said { system, turns })
}

/// Calls made before a message, by id. A repeated id refers to the last call.
#[derive(Default)]
pub(super) struct Calls<'a>(HashMap<&'a str, &'a NativeCall>);

impl<'a> Calls<'a> {
    /// Returns the call that a message of role `tool` answers.
    pub(super) fn of(&self, message: &Message) -> Option<&'a NativeCall> {
        self.0.get(message.tool_call_id.as_deref()?).copied()
    }

    /// Adds the calls of a message.
    pub(super) fn pass(&mut self, message: &'a Message) {
        self.0.extend(message.tool_calls.iter().map(|call| (call.id.as_str(), call)));
    }
}

/// Returns the parts of one message.
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
    // Only users are named.
    if let (Some(name), "user", Some(Part::Text(text))) = (&message.name, &*message.role, parts.first_mut()) {
        *text = format!("{name}: {text}").into();
    }
    parts.extend(message.tool_calls.iter().map(Part::Call));
    Ok(parts)
}

/// Returns the image of a part: `{"image_url": {"url": ...}}`, or the URL itself.
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

/// Returns the arguments of a call as an object. Invalid ones are wrapped in one, so that the model sees what
/// it wrote.
pub(super) fn arguments(call: &NativeCall) -> Value {
    let written = call.function.arguments.trim();
    match serde_json::from_str(written) {
        Ok(object @ Value::Object(_)) => object,
        _ if written.is_empty() => json!({}),
        _ => json!({ "arguments": written }),
    }
}

/// Appends a text as a separate paragraph.
fn add(before: &mut String, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    if !before.is_empty() {
        before.push_str("\n\n");
    }
    before.push_str(text);
}
