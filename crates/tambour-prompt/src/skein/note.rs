//! Author's note: `anchor_before` and `anchor_after` of the context, each printed once. A template that names
//! one prints it; otherwise it goes to the note's slot or, without a slot, among the messages, as in
//! SillyTavern.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::super::jinja::{Assembly, AssemblyOutcome};
use super::super::lore::{EntryPosition, MessageRole};
use super::super::role;
use super::lore::ActiveLore;
use super::{BlockBody, Skein, SkeinSlot};
use tambour::error::Result;

/// Default number of messages after a note among the messages.
const DEFAULT_DEPTH: usize = 4;

/// Parts of the note, by place.
#[derive(Debug, Default)]
pub(super) struct AuthorNote {
    /// Texts for the slots above and below the note.
    pub(super) above_text: String,
    pub(super) below_text: String,
    /// Text among the messages, the number of messages after it, and its role.
    pub(super) message_text: String,
    pub(super) depth: usize,
    pub(super) role: MessageRole,
}

/// Context keys of the note's parts, with their slots.
const NOTE_PARTS: [(&str, EntryPosition); 2] =
    [("anchor_before", EntryPosition::NoteTop), ("anchor_after", EntryPosition::NoteBottom)];

/// Returns true if the note of a context may contain macros.
pub(super) fn has_macros(values: &Map<String, Value>) -> bool {
    let text = |key: &str| values.get(key).and_then(Value::as_str).unwrap_or_default();
    NOTE_PARTS.iter().any(|(key, _)| text(key).contains("{{") || text(key).contains('<'))
}

/// Renders the macros in the note, which was written by a user.
///
/// # Errors
/// A text of the note cannot be rendered.
pub(super) fn render_macros(
    values: &mut Map<String, Value>,
    assembly: &mut Assembly,
) -> Result<AssemblyOutcome> {
    for (key, _) in NOTE_PARTS {
        if let Some(Value::String(text)) = values.get_mut(key) {
            *text = assembly.render_macros(key, text)?;
        }
    }
    Ok(assembly.outcome())
}

/// Adds the text of the note to its world info, for templates that print both with one variable.
pub(super) fn add_note_text(values: &Map<String, Value>, lore: &mut Map<String, Value>) {
    for (key, position) in NOTE_PARTS {
        let text = values.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        if let (Some(text), Some(Value::String(lore))) = (text, lore.get_mut(key)) {
            *lore = match position {
                EntryPosition::NoteTop => format!("{lore}\n\n{text}"),
                _ => format!("{text}\n\n{lore}"),
            };
        }
    }
}

impl AuthorNote {
    /// Returns the parts of the note that no template of the prompt prints.
    pub(super) fn new(skein: &Skein, values: &Map<String, Value>, active_lore: &ActiveLore) -> AuthorNote {
        let value_of = |key: &str| values.get(key).filter(|value| !value.is_null());
        let depth = value_of("note_depth").and_then(Value::as_u64);
        let mut note = AuthorNote {
            depth: depth.map_or(DEFAULT_DEPTH, |depth| usize::try_from(depth).unwrap_or(usize::MAX)),
            role: value_of("note_role")
                .and_then(Value::as_str)
                .and_then(role::parse_role)
                .unwrap_or_default(),
            ..AuthorNote::default()
        };
        for (key, position) in NOTE_PARTS {
            let text = value_of(key).and_then(Value::as_str).unwrap_or_default().trim_matches(['\n', '\r']);
            if text.trim().is_empty() || skein.prints_variable(key, values, active_lore) {
                continue;
            }
            let slot = depth.is_none() && skein.has_slot(position);
            let part = match position {
                _ if !slot => &mut note.message_text,
                EntryPosition::NoteTop => &mut note.above_text,
                _ => &mut note.below_text,
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
    fn prints_variable(&self, variable: &str, values: &Map<String, Value>, active_lore: &ActiveLore) -> bool {
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
        let lore: HashSet<usize> =
            active_lore.activation.active.iter().map(|&entry| active_lore.blocks[entry]).collect();
        let is_present = |at: &usize| self.blocks[*at].lore.is_none() || lore.contains(at);
        let blocks = (0..self.blocks.len()).filter(is_present).map(|at| &self.blocks[at]).any(|block| {
            let body = match &block.body {
                BlockBody::Text(text) => text.contains(variable),
                BlockBody::Data(value) => any(value, &|text| text.contains(variable)),
                BlockBody::Slot(_) => false,
            };
            body || block.attributes.iter().any(|(_, text)| text.contains(variable))
        });
        let participants = ["user", "char", "outlets"].into_iter().filter_map(|key| values.get(key));
        blocks || participants.into_iter().any(|person| any(person, &names))
    }

    fn has_slot(&self, position: EntryPosition) -> bool {
        self.blocks.iter().any(|block| block.body == BlockBody::Slot(SkeinSlot::Lore(position)))
    }
}
