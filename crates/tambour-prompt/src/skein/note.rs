//! Author's note: `anchor_before` and `anchor_after` of the context, each printed once. A template that names
//! one prints it; otherwise it goes to the note's slot or, without a slot, among the messages, as in
//! SillyTavern.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::super::jinja::{Assembly, Outcome};
use super::super::lore::{Position, Role};
use super::super::role;
use super::lore::Active;
use super::{Body, Skein, Slot};
use tambour::error::Result;

/// Default number of messages after a note among the messages.
const DEPTH: usize = 4;

/// Parts of the note, by place.
#[derive(Debug, Default)]
pub(super) struct Note {
    /// Texts for the slots above and below the note.
    pub(super) above: String,
    pub(super) below: String,
    /// Text among the messages, the number of messages after it, and its role.
    pub(super) among: String,
    pub(super) depth: usize,
    pub(super) role: Role,
}

/// Context keys of the note's parts, with their slots.
const PARTS: [(&str, Position); 2] =
    [("anchor_before", Position::NoteTop), ("anchor_after", Position::NoteBottom)];

/// Returns true if the note of a context may contain macros.
pub(super) fn has_macros(values: &Map<String, Value>) -> bool {
    let text = |key: &str| values.get(key).and_then(Value::as_str).unwrap_or_default();
    PARTS.iter().any(|(key, _)| text(key).contains("{{") || text(key).contains('<'))
}

/// Renders the macros in the note, which was written by a user.
///
/// # Errors
/// A text of the note cannot be rendered.
pub(super) fn rendered(values: &mut Map<String, Value>, assembly: &mut Assembly) -> Result<Outcome> {
    for (key, _) in PARTS {
        if let Some(Value::String(text)) = values.get_mut(key) {
            *text = assembly.render_macros(key, text)?;
        }
    }
    Ok(assembly.outcome())
}

/// Adds the text of the note to its world info, for templates that print both with one variable.
pub(super) fn around(values: &Map<String, Value>, lore: &mut Map<String, Value>) {
    for (key, position) in PARTS {
        let text = values.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        if let (Some(text), Some(Value::String(lore))) = (text, lore.get_mut(key)) {
            *lore = match position {
                Position::NoteTop => format!("{lore}\n\n{text}"),
                _ => format!("{text}\n\n{lore}"),
            };
        }
    }
}

impl Note {
    /// Returns the parts of the note that no template of the prompt prints.
    pub(super) fn new(skein: &Skein, values: &Map<String, Value>, active: &Active) -> Note {
        let given = |key: &str| values.get(key).filter(|value| !value.is_null());
        let depth = given("note_depth").and_then(Value::as_u64);
        let mut note = Note {
            depth: depth.map_or(DEPTH, |depth| usize::try_from(depth).unwrap_or(usize::MAX)),
            role: given("note_role").and_then(Value::as_str).and_then(role::named).unwrap_or_default(),
            ..Note::default()
        };
        for (key, position) in PARTS {
            let text = given(key).and_then(Value::as_str).unwrap_or_default().trim_matches(['\n', '\r']);
            if text.trim().is_empty() || skein.prints(key, values, active) {
                continue;
            }
            let slot = depth.is_none() && skein.has_slot(position);
            let part = match position {
                _ if !slot => &mut note.among,
                Position::NoteTop => &mut note.above,
                _ => &mut note.below,
            };
            if !part.is_empty() {
                part.push_str("\n\n");
            }
            part.push_str(text);
        }
        note
    }
}

impl Skein {
    /// Returns true if a present block, or a text of user or character, names a variable.
    fn prints(&self, variable: &str, values: &Map<String, Value>, active: &Active) -> bool {
        fn any(value: &Value, names: &dyn Fn(&str) -> bool) -> bool {
            match value {
                Value::String(text) => names(text),
                Value::Array(items) => items.iter().any(|item| any(item, names)),
                Value::Object(map) => map.values().any(|item| any(item, names)),
                _ => false,
            }
        }
        // Macros omit the underscore.
        let macro_name = variable.replace('_', "");
        let names = |text: &str| {
            text.contains("{{")
                && (text.contains(variable) || text.to_ascii_lowercase().contains(&macro_name))
        };
        let lore: HashSet<usize> = active.found.active.iter().map(|&entry| active.blocks[entry]).collect();
        let there = |at: &usize| self.blocks[*at].lore.is_none() || lore.contains(at);
        let blocks = (0..self.blocks.len()).filter(there).map(|at| &self.blocks[at]).any(|block| {
            let body = match &block.body {
                Body::Text(text) => text.contains(variable),
                Body::Data(value) => any(value, &|text| text.contains(variable)),
                Body::Slot(_) => false,
            };
            body || block.attributes.iter().any(|(_, text)| text.contains(variable))
        });
        let people = ["user", "char", "outlets"].into_iter().filter_map(|key| values.get(key));
        blocks || people.into_iter().any(|person| any(person, &names))
    }

    fn has_slot(&self, position: Position) -> bool {
        self.blocks.iter().any(|block| block.body == Body::Slot(Slot::Lore(position)))
    }
}
