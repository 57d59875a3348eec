//! Roles of context messages, including the names that other programs use for them.

use serde_json::{Map, Value};

use super::lore::Role;
use tambour::error::{Error, Result};
use tambour::finding::clip;

/// Keys of a context that hold lists of messages.
pub(super) const LISTS: [&str; 3] = ["history", "context", "display_context"];

/// Names of roles in other programs.
const NAMES: [(&str, Role); 13] = [
    ("bot", Role::Assistant),
    ("ai", Role::Assistant),
    ("model", Role::Assistant),
    ("gpt", Role::Assistant),
    ("char", Role::Assistant),
    ("character", Role::Assistant),
    ("chatbot", Role::Assistant),
    ("human", Role::User),
    ("person", Role::User),
    ("player", Role::User),
    ("developer", Role::System),
    ("sys", Role::System),
    ("instruction", Role::System),
];

/// Most warnings about foreign role names.
const WARNINGS: usize = 8;

/// Returns the role with this name, in any letter case.
pub(super) fn named(name: &str) -> Option<Role> {
    let all = Role::NAMES.into_iter().chain(NAMES);
    all.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim())).map(|(_, role)| role)
}

/// Checks the roles of the messages of a context. A message without a role is the user's.
///
/// # Errors
/// The first message with an unknown role; the error names its place.
pub fn check(context: &Map<String, Value>) -> Result<()> {
    for key in LISTS {
        let messages = context.get(key).and_then(Value::as_array).into_iter().flatten();
        for (at, message) in messages.enumerate() {
            let written = match message.get("role") {
                None | Some(Value::Null) => continue,
                Some(Value::String(name)) if name.is_empty() || named(name).is_some() => continue,
                Some(Value::String(name)) => format!("`{}`", clip(name, 40)),
                Some(_) => "no text".to_owned(),
            };
            let known = Role::NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            let message = format!("`{key}[{at}].role` of a context is one of {known}; it is {written}");
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

/// Replaces foreign role names in a context by the usual ones and returns a warning for each foreign name.
///
/// # Errors
/// Same as [`check`].
pub(super) fn normalise(context: &mut Map<String, Value>) -> Result<Vec<String>> {
    check(context)?;
    let mut warnings = Vec::new();
    let mut told: Vec<String> = Vec::new();
    for key in LISTS {
        let messages = context.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
        for (at, message) in messages.enumerate() {
            let Some(Value::String(name)) = message.get_mut("role") else { continue };
            let Some(role) = named(name).filter(|role| role.name() != name) else { continue };
            if told.len() < WARNINGS && !told.contains(name) {
                let read = role.name();
                warnings.push(format!("`{key}[{at}].role`: `{}` is read as `{read}`", clip(name, 40)));
                told.push(name.clone());
            }
            role.name().clone_into(name);
        }
    }
    Ok(warnings)
}
