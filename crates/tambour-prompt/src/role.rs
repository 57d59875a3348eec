//! Roles of the messages in a prompt context, including the names that other programs use for them.

use serde_json::{Map, Value};

use super::lore::MessageRole;
use tambour::error::{Error, Result};
use tambour::finding::clip;

/// Keys of a context that hold lists of messages.
pub(super) const MESSAGE_LISTS: [&str; 3] = ["history", "context", "display_context"];

/// Names of roles in other programs.
const FOREIGN_NAMES: [(&str, MessageRole); 13] = [
    ("bot", MessageRole::Assistant),
    ("ai", MessageRole::Assistant),
    ("model", MessageRole::Assistant),
    ("gpt", MessageRole::Assistant),
    ("char", MessageRole::Assistant),
    ("character", MessageRole::Assistant),
    ("chatbot", MessageRole::Assistant),
    ("human", MessageRole::User),
    ("person", MessageRole::User),
    ("player", MessageRole::User),
    ("developer", MessageRole::System),
    ("sys", MessageRole::System),
    ("instruction", MessageRole::System),
];

/// Maximum number of warnings about replaced role names; further names are replaced without a warning.
const MAX_WARNINGS: usize = 8;

/// Returns the role with this name, in any letter case: our own name, or that of another program.
pub(super) fn parse_role(name: &str) -> Option<MessageRole> {
    let all = MessageRole::NAMES.into_iter().chain(FOREIGN_NAMES);
    all.into_iter().find(|(candidate, _)| candidate.eq_ignore_ascii_case(name.trim())).map(|(_, role)| role)
}

/// Checks the roles of the messages of a context. A message without a role is the user's.
///
/// # Errors
/// A message has an unknown role; the error names the place of the first such message.
pub fn check_roles(context: &Map<String, Value>) -> Result<()> {
    for key in MESSAGE_LISTS {
        let messages = context.get(key).and_then(Value::as_array).into_iter().flatten();
        for (index, message) in messages.enumerate() {
            let actual_role = match message.get("role") {
                None | Some(Value::Null) => continue,
                Some(Value::String(name)) if name.is_empty() || parse_role(name).is_some() => continue,
                Some(Value::String(name)) => format!("`{}`", clip(name, 40)),
                Some(_) => "not a text".to_owned(),
            };
            let role_names = MessageRole::NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            let problem = format!(
                "`{key}[{index}].role` of a context must be one of {role_names}; it is {actual_role}"
            );
            return Err(Error::invalid(problem));
        }
    }
    Ok(())
}

/// Replaces role names of other programs, or in another letter case, by our own. Returns a warning for each
/// replaced name, up to [`MAX_WARNINGS`].
///
/// # Errors
/// A message has an unknown role, as in [`check_roles`].
pub(super) fn normalize_roles(context: &mut Map<String, Value>) -> Result<Vec<String>> {
    check_roles(context)?;
    let mut warnings = Vec::new();
    let mut reported_names: Vec<String> = Vec::new();
    for key in MESSAGE_LISTS {
        let messages = context.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
        for (index, message) in messages.enumerate() {
            let Some(Value::String(name)) = message.get_mut("role") else { continue };
            let Some(role) = parse_role(name).filter(|role| role.name() != name) else { continue };
            if reported_names.len() < MAX_WARNINGS && !reported_names.contains(name) {
                let usual_name = role.name();
                warnings
                    .push(format!("`{key}[{index}].role`: `{}` is read as `{usual_name}`", clip(name, 40)));
                reported_names.push(name.clone());
            }
            role.name().clone_into(name);
        }
    }
    Ok(warnings)
}
