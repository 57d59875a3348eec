//! Messages for a model, each with a role.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Valid roles.
pub(crate) const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// Message of a conversation, as sent to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Text or parts; only an assistant that calls tools may have none.
    #[serde(default)]
    pub content: Option<Content>,
    /// Name of the speaker, where several have the same role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tool calls that an assistant made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<NativeCall>,
    /// Id of the call whose result this is; for role `tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Reasoning of an assistant, for services that require it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
}

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Content {
    /// Text.
    Text(String),
    /// Parts: `{"type": "text", "text": ...}`, images, and others that the upstream accepts, unchanged.
    #[schema(value_type = Vec<Object>)]
    Parts(Vec<Value>),
}

/// Tool call in the form of the chat completions interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NativeCall {
    /// Id of the call.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// Function to call.
    pub function: Function,
    /// Data that the service requires back with the call. Kept only during the run and never stored.
    #[serde(skip)]
    pub extras: Option<CallExtras>,
}

/// Data of a call that only one kind of service has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallExtras {
    /// Blocks of signed reasoning before the call.
    Anthropic(Vec<Value>),
    /// Signature of the reasoning that led to the call, and whether the service chose the id of the call.
    Gemini {
        /// Signature of the reasoning.
        signature: Option<String>,
        /// True if the id of the call is from the service; otherwise the service must not see it.
        has_service_id: bool,
    },
}

/// Function of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Function {
    /// Name of the tool.
    pub name: String,
    /// Arguments, as JSON text.
    #[serde(default)]
    pub arguments: String,
}

/// Returns the default of `NativeCall::kind`.
fn function() -> String {
    "function".to_owned()
}

impl Message {
    /// Creates a message of a role with a text.
    #[must_use]
    pub fn new(role: &str, text: impl Into<String>) -> Message {
        Message { role: role.to_owned(), content: Some(Content::Text(text.into())), ..Message::default() }
    }

    /// Returns the text of the message: all text parts, joined.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        }
    }

    /// Returns a description of the first fault, if any, with the name `content` if that field is missing.
    pub fn find_fault(&self) -> Option<(String, Option<&'static str>)> {
        // An unknown role is reported as such, below.
        if self.content.is_none() && self.tool_calls.is_empty() && ROLES.contains(&self.role.as_str()) {
            return Some((format!("the message of role `{}` has no `content`", self.role), Some("content")));
        }
        self.find_invalid_field().map(|detail| (detail, None))
    }

    /// Returns a description of the first field that is invalid, alone or together with the role.
    fn find_invalid_field(&self) -> Option<String> {
        let Message { role, content, tool_calls, tool_call_id, .. } = self;
        if !ROLES.contains(&role.as_str()) {
            return Some(format!("a role must be {}, not `{role}`", ROLES.join(", ")));
        }
        let has_content = match content {
            None => false,
            Some(Content::Text(_)) => true,
            Some(Content::Parts(parts)) => {
                if let Some(part) = parts.iter().find(|part| !part["type"].is_string()) {
                    return Some(format!("a part of `content` must be an object with a `type`, not {part}"));
                }
                !parts.is_empty()
            }
        };
        if !has_content && tool_calls.is_empty() {
            return Some(format!("the `content` of the message of role `{role}` is empty"));
        }
        if !tool_calls.is_empty() && role != "assistant" {
            return Some(format!("only a message of role `assistant` may have `tool_calls`, not `{role}`"));
        }
        if (role == "tool") != tool_call_id.is_some() {
            return Some(
                "a message of role `tool` must have a `tool_call_id`, and no other may have one".to_owned(),
            );
        }
        None
    }
}
