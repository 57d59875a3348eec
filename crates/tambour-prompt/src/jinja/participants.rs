//! Participants of a chat: the user, the character, the members of a group (F-034).

use std::collections::BTreeMap;
use std::sync::Weak;

use minijinja::value::{Serde, Value};
use serde_json::{Map, Value as Json};

use super::context::PromptContext;
use super::scope::PromptScope;
use super::values::{GroupObject, ParticipantObject, missing_value};
use crate::print;

/// Fields of a character that imported texts may read although they are missing.
const CHARACTER_FIELDS: &[&str] = &[
    "name",
    "description",
    "personality",
    "scenario",
    "version",
    "main_prompt",
    "jailbreak",
    "depth_prompt",
    "creator_notes",
    "examples",
    "examples_raw",
    "greetings",
    "avatar_path",
];

/// Fields of a user that imported texts may read although they are missing.
const USER_FIELDS: &[&str] = &["name", "persona", "avatar_path"];

/// Field names of templates, each with the names under which cards have the field.
const FIELD_ALIASES: &[(&str, &[&str])] = &[
    ("version", &["character_version"]),
    ("main_prompt", &["system_prompt"]),
    ("jailbreak", &["post_history_instructions"]),
    ("examples", &["mes_example", "examples_raw"]),
    ("examples_raw", &["mes_example", "examples"]),
];

/// Fields that are plain names or paths, not texts with macros.
const PLAIN_FIELDS: &[&str] =
    &["name", "nickname", "version", "character_version", "avatar_path", "creator", "muted"];

/// Participants of the chat in a context.
pub(super) struct Participants<'c> {
    context: &'c PromptContext,
    scope: &'c Weak<PromptScope>,
}

impl<'c> Participants<'c> {
    pub(super) fn new(context: &'c PromptContext, scope: &'c Weak<PromptScope>) -> Participants<'c> {
        Participants { context, scope }
    }

    /// Returns the user.
    pub(super) fn user(&self) -> Value {
        self.person(self.context.get("user"), USER_FIELDS)
    }

    /// Returns the character that speaks.
    pub(super) fn character(&self) -> Value {
        self.person(self.context.get("char"), CHARACTER_FIELDS)
    }

    /// Returns the names of the group's members.
    fn member_names(&self) -> Vec<String> {
        let group = self.context.get("group").and_then(Json::as_array);
        group.map(|members| members.iter().map(person_name).collect()).unwrap_or_default()
    }

    /// Returns the group, which prints the names of its members, or the character's name outside of groups.
    pub(super) fn group(&self) -> Value {
        let members =
            self.context.get("group").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let members = members.iter().map(|member| self.person(Some(member), CHARACTER_FIELDS)).collect();
        let fallback_name = self.context.get("char").map(person_name).unwrap_or_default();
        Value::from_object(GroupObject { members, fallback_name })
    }

    /// Returns the names of everyone but the speaker: `not_char` of the context if it is set, else the other
    /// members and the user, joined by commas.
    pub(super) fn other_names(&self) -> Value {
        if let Some(names_value) = self.context.get("not_char") {
            return Value::from(Serde(names_value));
        }
        let speaker = self.context.get("char").map(person_name).unwrap_or_default();
        let mut names = self.member_names();
        names.retain(|name| *name != speaker);
        names.extend(self.context.get("user").map(person_name));
        Value::from(names.join(", "))
    }

    /// Returns a person of the context; a missing value if there is none. Imported texts may read
    /// `readable_fields` although they are missing.
    fn person(&self, value: Option<&Json>, readable_fields: &'static [&'static str]) -> Value {
        let Some(value) = value else { return missing_value() };
        let empty = Map::new();
        let fields = value.as_object().unwrap_or(&empty);
        let mut person = ParticipantObject {
            name: person_name(value),
            fields: BTreeMap::new(),
            macro_texts: BTreeMap::new(),
            readable_fields,
            scope: self.scope.clone(),
        };
        for (key, field) in fields {
            add_field(&mut person, key, field);
        }
        for (key, aliases) in FIELD_ALIASES {
            let aliased_field =
                aliases.iter().find_map(|alias| fields.get(*alias)).filter(|_| !fields.contains_key(*key));
            if let Some(field) = aliased_field {
                add_field(&mut person, key, field);
            }
        }
        // In cards `depth_prompt` is an object. Templates read its field `prompt`.
        let depth_prompt =
            fields.get("depth_prompt").or_else(|| fields.get("extensions")?.get("depth_prompt"));
        if let Some(text) = depth_prompt.and_then(|depth_prompt| depth_prompt.get("prompt")) {
            person.fields.remove("depth_prompt");
            add_field(&mut person, "depth_prompt", text);
        }
        add_greetings(&mut person, fields);
        person.fields.insert("name".to_owned(), Value::from(person.name.clone()));
        Value::from_object(person)
    }
}

/// Adds the first and the alternate greetings: as `greeting_0`, `greeting_1` and so on, which macros read,
/// and as the list `greetings`.
fn add_greetings(person: &mut ParticipantObject, fields: &Map<String, Json>) {
    let list = match fields.get("greetings") {
        Some(Json::Array(greetings)) => greetings.clone(),
        _ => {
            let first = fields.get("first_mes").or_else(|| fields.get("first_message")).cloned();
            let alternates = match fields.get("alternate_greetings") {
                Some(Json::Array(alternates)) => alternates.clone(),
                Some(single_greeting @ Json::String(_)) => vec![single_greeting.clone()],
                _ => Vec::new(),
            };
            let has_none = first.is_none() && alternates.is_empty();
            let all: Vec<Json> = std::iter::once(first.unwrap_or_default()).chain(alternates).collect();
            if has_none { Vec::new() } else { all }
        }
    };
    for (at, greeting) in list.iter().enumerate() {
        if let Some(text) = greeting.as_str() {
            person.macro_texts.insert(format!("greeting_{at}"), text.into());
        }
    }
    if !list.is_empty() {
        person.fields.insert("greetings".to_owned(), Value::from(Serde(list)));
    }
}

/// Adds a field: a text that may contain macros, or a value as it is.
fn add_field(person: &mut ParticipantObject, key: &str, field: &Json) {
    match field {
        Json::Null => {}
        Json::String(text) if !PLAIN_FIELDS.contains(&key) => {
            person.macro_texts.insert(key.to_owned(), text.as_str().into());
        }
        field => {
            person.fields.insert(key.to_owned(), Value::from(Serde(field)));
        }
    }
}

/// Returns the name of a person: a text, or the nickname or name of an object.
fn person_name(value: &Json) -> String {
    match value {
        Json::String(name) => name.clone(),
        value => {
            let field = |key: &str| value.get(key).map(print::print).filter(|name| !name.is_empty());
            field("nickname").or_else(|| field("name")).unwrap_or_default().into_owned()
        }
    }
}
