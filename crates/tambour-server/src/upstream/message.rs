//! What is said to a model: messages by role.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Roles a message may have.
pub(crate) const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// One message of the conversation, as a model sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Its text, or its parts; only an assistant that calls tools may say nothing.
    #[serde(default)]
    pub content: Option<Content>,
    /// Who says it, where several have the same role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Calls of tools that an assistant made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<NativeCall>,
    /// The call whose result this is, of a `tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Reasoning of an assistant, for services that want it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Content {
    /// Text.
    Text(String),
    /// Parts: `{"type": "text", "text": ...}`, images and what else the upstream takes, as they are.
    #[schema(value_type = Vec<Object>)]
    Parts(Vec<Value>),
}

/// A call of a tool in the form of the chat completions interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NativeCall {
    /// Its id.
    pub id: String,
    /// `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// What is called.
    pub function: Function,
    /// What the service that made the call wants back with it. It is known as long as the message runs.
    #[serde(skip)]
    pub kept: Option<Kept>,
}

/// What belongs to a call beside its name and arguments: only the service that gave it can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The blocks of signed reasoning before the call.
    Anthropic(Vec<Value>),
    /// What stood beside the call: the signature of the reasoning that led to it, and whether the call's id is the service's own.
    Gemini {
        /// Signature of the reasoning.
        signature: Option<String>,
        /// Whether the service gave the call its id.
        named: bool,
    },
}

/// What a call calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Function {
    /// Name of the tool.
    pub name: String,
    /// Arguments, as JSON text.
    #[serde(default)]
    pub arguments: String,
}

fn function() -> String {
    "function".to_owned()
}

impl Message {
    /// Text of a role.
    #[must_use]
    pub fn new(role: &str, text: impl Into<String>) -> Message {
        Message { role: role.to_owned(), content: Some(Content::Text(text.into())), ..Message::default() }
    }

    /// Its text: all of its parts that are some, joined.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        }
    }

    /// What is wrong with it, if anything, with the name of a field that is missing.
    pub(crate) fn fault(&self) -> Option<(String, Option<&'static str>)> {
        if self.content.is_none() && self.tool_calls.is_empty() && ROLES.contains(&self.role.as_str()) {
            return Some((format!("the message of role `{}` has no `content`", self.role), Some("content")));
        }
        self.wrong().map(|detail| (detail, None))
    }

    fn wrong(&self) -> Option<String> {
        let Message { role, content, tool_calls, tool_call_id, .. } = self;
        if !ROLES.contains(&role.as_str()) {
            return Some(format!("a role is {}, not `{role}`", ROLES.join(", ")));
        }
        let said = match content {
            None => false,
            Some(Content::Text(_)) => true,
            Some(Content::Parts(parts)) => {
                if let Some(part) = parts.iter().find(|part| !part["type"].is_string()) {
                    return Some(format!("a part of `content` is an object with a `type`, not {part}"));
                }
                !parts.is_empty()
            }
        };
        if !said && tool_calls.is_empty() {
            return Some(format!("the `content` of the message of role `{role}` is empty"));
        }
        if !tool_calls.is_empty() && role != "assistant" {
            return Some(format!("only an assistant has `tool_calls`, not `{role}`"));
        }
        if (role == "tool") != tool_call_id.is_some() {
            return Some("a message of role `tool`, and no other, has a `tool_call_id`".to_owned());
        }
        None
    }
}
