//! Description of every event and result, from which packages generate their types.
//!
//! All of it comes from the definitions in Rust through their JSON Schemas; only the contract events, which
//! are variants of [`tambour::Event`], are listed here, and a test compares them with what the library writes.

mod schema;

use tambour::Finding;
use tambour::event::{AsideKind, Completed, Extension, Failure};

use crate::records::{
    AppliedUpdate, AwaitAnswer, AwaitUser, Finished, ImportedCard, MigratedText, ModelCall, Outcome,
    RenderedPrompt, Repair, ReplyEffect, ScriptProblem, StateDifference, Turn, Verdict,
};
use schema::TypeReader;

/// A class of plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDefinition {
    /// Name of the class, such as `PhaseStart`.
    pub name: String,
    /// Public name of the event, such as `phase_start`; `None` if the class is not an event.
    pub event: Option<String>,
    /// One sentence.
    pub about: String,
    /// Fields in order.
    pub fields: Vec<FieldDefinition>,
    /// True if further fields of the JSON object belong to the last field, which is a map.
    pub is_open: bool,
}

/// A field of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDefinition {
    /// Name in JSON.
    pub name: String,
    /// One sentence.
    pub about: String,
    /// Kind of its values.
    pub kind: FieldKind,
    /// True if the field may be absent.
    pub may_be_absent: bool,
    /// True if the field may be null.
    pub may_be_null: bool,
}

/// Kind of the values of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// Any JSON value.
    Json,
    /// Text.
    Text,
    /// Whole number.
    Integer,
    /// Number.
    Number,
    /// True or false.
    Flag,
    /// One of these words.
    Words(Vec<String>),
    /// List.
    List(Box<FieldKind>),
    /// Map from text.
    Map(Box<FieldKind>),
    /// Another class, by name.
    Object(String),
}

/// Keywords of languages among the names of fields.
const KEYWORDS: &[&str] = &["yield"];

impl FieldDefinition {
    /// Name of the attribute: that of the field, with `_` behind a keyword.
    #[must_use]
    pub fn attribute(&self) -> String {
        let suffix = if KEYWORDS.contains(&self.name.as_str()) { "_" } else { "" };
        format!("{}{suffix}", self.name)
    }
}

/// Class that an event or a result has under another name than its type in Rust.
const RENAMED: &[(&str, &str)] = &[("PlanOutcome", "Plan"), ("OwnElement", "Element")];

/// Returns all classes: events first, in the order of their groups, then results; a class comes after those
/// that its fields need.
#[must_use]
pub fn type_definitions() -> Vec<TypeDefinition> {
    let mut reader = TypeReader::default();
    contract_events().into_iter().for_each(|definition| reader.add(definition));
    reader.add_event::<Failure>("error");
    reader.add_event::<Completed>("completed");
    let aside_kind = reader.kind::<AsideKind>();
    reader.add(event(
        "draft_delta",
        "A piece of reasoning that is not part of the contract.",
        vec![text("text", "Not empty.")],
    ));
    reader.add(event(
        "aside",
        "A comment, or a thought after the answer began.",
        vec![
            FieldDefinition {
                name: "kind".to_owned(),
                about: "Kind of aside.".to_owned(),
                kind: aside_kind,
                may_be_absent: false,
                may_be_null: false,
            },
            text("text", "Text of the comment or thought."),
        ],
    ));
    reader.add_extensions::<Extension>();
    reader.add_event::<Finding>("finding");
    reader.add_record::<Verdict>();
    reader.add_record::<Repair>();
    reader.add_record::<Outcome>();
    reader.add_record::<AppliedUpdate>();
    reader.add_record::<StateDifference>();
    reader.add_record::<RenderedPrompt>();
    reader.add_record::<ImportedCard>();
    reader.add_record::<MigratedText>();
    reader.add_record::<ScriptProblem>();
    reader.add_record::<ModelCall>();
    reader.add_record::<AwaitUser>();
    reader.add_record::<AwaitAnswer>();
    reader.add_record::<Finished>();
    reader.add_record::<Turn>();
    reader.add_record::<ReplyEffect>();
    reader.into_definitions()
}

/// Events that are variants of [`tambour::Event`] without a type of their own.
fn contract_events() -> Vec<TypeDefinition> {
    let integer = |name: &str, about: &str| FieldDefinition { kind: FieldKind::Integer, ..text(name, about) };
    let list = |name: &str, about: &str| FieldDefinition {
        kind: FieldKind::List(Box::new(FieldKind::Text)),
        ..text(name, about)
    };
    vec![
        event(
            "serp_summary",
            "One or two sentences before the thinking.",
            vec![text("text", "Plain text, not empty.")],
        ),
        event("thinking_start", "The thinking begins.", vec![]),
        event(
            "phase_start",
            "A phase of the thinking begins.",
            vec![integer("id", "1, 2, 3, ..."), text("title", "Not blank.")],
        ),
        event(
            "phase_delta",
            "A piece of the text of a phase.",
            vec![integer("id", "Id of the most recent `phase_start`."), text("text", "Not empty.")],
        ),
        event("thinking_end", "The thinking is complete.", vec![]),
        event("final_delta", "A piece of the Markdown answer.", vec![text("text", "Not empty.")]),
        event(
            "serp_queries",
            "Queries for a search.",
            vec![list("queries", "At most five, unique, nothing sensitive.")],
        ),
        event("final_end", "The answer is complete.", vec![]),
        event(
            "status",
            "State of the reply; only from a server.",
            vec![text("state", "Word for the state, such as `running`.")],
        ),
        event("heartbeat", "Sign of life; only from a server.", vec![text("ts", "RFC 3339 time.")]),
    ]
}

fn event(name: &str, about: &str, fields: Vec<FieldDefinition>) -> TypeDefinition {
    TypeDefinition {
        name: class_name(name),
        event: Some(name.to_owned()),
        about: about.to_owned(),
        fields,
        is_open: false,
    }
}

fn text(name: &str, about: &str) -> FieldDefinition {
    FieldDefinition {
        name: name.to_owned(),
        about: about.to_owned(),
        kind: FieldKind::Text,
        may_be_absent: false,
        may_be_null: false,
    }
}

/// Name of the class of an event: `phase_start` is `PhaseStart`.
fn class_name(event: &str) -> String {
    let capitalize = |word: &str| {
        let mut chars = word.chars();
        chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
    };
    event.split('_').map(capitalize).collect()
}

/// Name of the class of a Rust type.
fn record_name(name: &str) -> String {
    let renamed = RENAMED.iter().find(|(rust_name, _)| *rust_name == name);
    renamed.map_or(name, |(_, class)| class).to_owned()
}
