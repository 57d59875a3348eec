//! Conversion of a prompt to alternating turns of two sides, for services that require them: the user
//! (including tool results) and the model. Adjacent messages of one side form one turn.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Value, json};
use tambour::event::Failure;

use super::{Content, Message, NativeCall, new_failure};

/// Text of the user's turn that is added if the model speaks first; a blank text could be refused.
const PLACEHOLDER_TEXT: &str = ".";

/// Prompt as turns; the first one is the user's.
pub(super) struct PromptTurns<'a> {
    /// System prompt: all messages of the roles `system` and `developer`, wherever they are.
    pub(super) system: String,
    pub(super) turns: Vec<ChatTurn<'a>>,
}

/// Adjacent messages of one side.
pub(super) struct ChatTurn<'a> {
    /// True for the model, false for the user.
    pub(super) is_model: bool,
    pub(super) parts: Vec<ChatPart<'a>>,
}

/// Part of a turn.
pub(super) enum ChatPart<'a> {
    /// Text that is not blank.
    Text(Cow<'a, str>),
    /// Image.
    Image(ImageSource<'a>),
    /// Part of another type, unchanged.
    Other(&'a Value),
    /// Tool call.
    Call(&'a NativeCall),
    /// Result of a call.
    Result {
        /// Id of the call.
        id: &'a str,
        /// Call, if it is in the prompt.
        call: Option<&'a NativeCall>,
        /// Text of the result.
        text: String,
    },
}

/// Source of an image.
pub(super) enum ImageSource<'a> {
    /// Data in base64, with its media type such as `image/png`.
    Inline { media_type: &'a str, data: &'a str },
    /// URL.
    Remote(&'a str),
}

/// Returns the failure of a request that cannot be converted for its service.
pub(super) fn unsendable_failure(problem: impl Into<String>) -> Failure {
    new_failure("upstream_refused", problem, false)
}

/// Converts the messages of a prompt to turns.
///
/// # Errors
/// The prompt is empty, or a part of a message is invalid.
pub(super) fn build_turns(messages: &[Message]) -> Result<PromptTurns<'_>, Failure> {
    let (mut system, mut turns, mut calls) =
        (String::new(), Vec::<ChatTurn<'_>>::new(), CallIndex::default());
    for message in messages {
        calls.add(message);
        let parts = match message.role.as_str() {
            "system" | "developer" => {
                append_paragraph(&mut system, &message.text());
                continue;
            }
            "tool" => {
                let id = message.tool_call_id.as_deref().unwrap_or_default();
                vec![ChatPart::Result { id, call: calls.call_of(message), text: message.text() }]
            }
            _ => message_parts(message)?,
        };
        let is_model = message.role == "assistant";
        match turns.last_mut() {
            Some(turn) if turn.is_model == is_model => turn.parts.extend(parts),
            _ if parts.is_empty() => {}
            _ => turns.push(ChatTurn { is_model, parts }),
        }
    }
    let text_parts = |text: String| vec![ChatPart::Text(text.into())];
    match turns.first() {
        None if system.is_empty() => return Err(unsendable_failure("the prompt for the model is empty")),
        // Services need a user message, so a lone system prompt becomes one.
        None => turns.push(ChatTurn { is_model: false, parts: text_parts(std::mem::take(&mut system)) }),
        Some(ChatTurn { is_model: true, .. }) => {
            turns.insert(0, ChatTurn { is_model: false, parts: text_parts(PLACEHOLDER_TEXT.to_owned()) });
        }
        Some(_) => {}
    }
    Ok(PromptTurns { system, turns })
}

/// Calls of the messages so far, by id. A repeated id refers to the last call that has it.
#[derive(Default)]
pub(super) struct CallIndex<'a>(HashMap<&'a str, &'a NativeCall>);

impl<'a> CallIndex<'a> {
    /// Returns the call that a message of role `tool` answers.
    pub(super) fn call_of(&self, message: &Message) -> Option<&'a NativeCall> {
        self.0.get(message.tool_call_id.as_deref()?).copied()
    }

    /// Adds the calls of a message.
    pub(super) fn add(&mut self, message: &'a Message) {
        self.0.extend(message.tool_calls.iter().map(|call| (call.id.as_str(), call)));
    }
}

/// Returns the parts of one message that is not a tool result.
pub(super) fn message_parts(message: &Message) -> Result<Vec<ChatPart<'_>>, Failure> {
    let mut parts = Vec::new();
    match &message.content {
        None => {}
        Some(Content::Text(text)) => parts.push(ChatPart::Text(text.into())),
        Some(Content::Parts(content_parts)) => {
            for part in content_parts {
                parts.push(match part["type"].as_str() {
                    Some("text") => ChatPart::Text(part["text"].as_str().unwrap_or_default().into()),
                    Some("image_url") => ChatPart::Image(image_source(part)?),
                    _ => ChatPart::Other(part),
                });
            }
        }
    }
    parts.retain(|part| !matches!(part, ChatPart::Text(text) if text.trim().is_empty()));
    // The name of a user precedes the text, since these services have no field for it.
    if let (Some(name), "user", Some(ChatPart::Text(text))) =
        (&message.name, &*message.role, parts.first_mut())
    {
        *text = format!("{name}: {text}").into();
    }
    parts.extend(message.tool_calls.iter().map(ChatPart::Call));
    Ok(parts)
}

/// Returns the image of a part: `{"image_url": {"url": ...}}`, or the URL itself.
fn image_source(part: &Value) -> Result<ImageSource<'_>, Failure> {
    let image_url = &part["image_url"];
    let url = image_url.as_str().or_else(|| image_url["url"].as_str());
    let url = url.ok_or_else(|| unsendable_failure("a part `image_url` has no `url`"))?;
    let Some(data_url) = url.strip_prefix("data:") else { return Ok(ImageSource::Remote(url)) };
    let (head, data) = data_url.split_once(',').unwrap_or_default();
    let media_type = head.strip_suffix(";base64").filter(|media_type| !media_type.is_empty());
    let media_type = media_type.ok_or_else(|| {
        unsendable_failure("a `data:` URL of an image must be `data:image/TYPE;base64,...`")
    })?;
    // Parameters of the media type are left out.
    Ok(ImageSource::Inline { media_type: media_type.split(';').next().unwrap_or(media_type), data })
}

/// Returns the arguments of a call as an object. Arguments that are not an object are wrapped in one as text,
/// so that the model sees what it wrote.
pub(super) fn arguments(call: &NativeCall) -> Value {
    let arguments_text = call.function.arguments.trim();
    match serde_json::from_str(arguments_text) {
        Ok(object @ Value::Object(_)) => object,
        _ if arguments_text.is_empty() => json!({}),
        _ => json!({ "arguments": arguments_text }),
    }
}

/// Appends a text that is not blank as a separate paragraph.
fn append_paragraph(out: &mut String, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str(text);
}
