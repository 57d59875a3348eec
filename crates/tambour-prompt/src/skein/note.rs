//! Author's note: `anchor_before` and `anchor_after` of the context, each printed once. If a template names
//! one of these parts, the template prints it. Otherwise the part goes to its slot or, without a slot or with
//! a `note_depth`, among the messages, as in SillyTavern.

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
    /// Text for the slot `note_top`, printed after the world info of that slot.
    pub(super) top_slot_text: String,
    /// Text for the slot `note_bottom`, printed before the world info of that slot.
    pub(super) bottom_slot_text: String,
    /// Text that becomes a separate message among those of the history.
    pub(super) message_text: String,
    /// Number of messages after that message.
    pub(super) depth: usize,
    /// Role of that message.
    pub(super) role: MessageRole,
}

/// Context keys of the note's parts, with their slots.
const NOTE_PARTS: [(&str, EntryPosition); 2] =
    [("anchor_before", EntryPosition::NoteTop), ("anchor_after", EntryPosition::NoteBottom)];

/// Returns true if the note of a context may contain macros.
pub(super) fn has_macros(values: &Map<String, Value>) -> bool {
    let text = |key: &str| values.get(key).and_then(Value::as_str).unwrap_or_default();
    // `<` begins legacy macros, such as `<USER>`.
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

/// Adds the text of the note to the world info before and after it, for templates that print both with one
/// variable. `lore` holds the rendered world info by variable.
pub(super) fn add_note_text(values: &Map<String, Value>, lore: &mut Map<String, Value>) {
    for (key, position) in NOTE_PARTS {
        let text = values.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        if let (Some(text), Some(Value::String(lore_text))) = (text, lore.get_mut(key)) {
            *lore_text = match position {
                EntryPosition::NoteTop => format!("{lore_text}\n\n{text}"),
                _ => format!("{text}\n\n{lore_text}"),
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
            // A note with a depth goes among the messages, even if the prompt has a slot for it.
            let goes_to_slot = depth.is_none() && skein.has_slot(position);
            let target = match position {
                _ if !goes_to_slot => &mut note.message_text,
                EntryPosition::NoteTop => &mut note.top_slot_text,
                _ => &mut note.bottom_slot_text,
            };
            if !target.is_empty() {
                target.push_str("\n\n");
            }
            target.push_str(text);
        }
        note
    }
}

impl Skein {
    /// Returns true if a block that is present names the variable, or if a template among the texts of user,
    /// character and outlets does.
    fn prints_variable(&self, variable: &str, values: &Map<String, Value>, active_lore: &ActiveLore) -> bool {
        /// Returns true if a text at any depth passes the test.
        fn any_text(value: &Value, test: &dyn Fn(&str) -> bool) -> bool {
            match value {
                Value::String(text) => test(text),
                Value::Array(items) => items.iter().any(|item| any_text(item, test)),
                Value::Object(map) => map.values().any(|item| any_text(item, test)),
                _ => false,
            }
        }
        // In macros the name has no underscore: `{{anchorbefore}}`.
        let macro_name = variable.replace('_', "");
        let names_variable = |text: &str| {
            text.contains("{{")
                && (text.contains(variable) || text.to_ascii_lowercase().contains(&macro_name))
        };
        let active_blocks: HashSet<usize> =
            active_lore.activation.active.iter().map(|&entry| active_lore.blocks[entry]).collect();
        let is_present = |index: &usize| self.blocks[*index].lore.is_none() || active_blocks.contains(index);
        let mut present_blocks = (0..self.blocks.len()).filter(is_present).map(|index| &self.blocks[index]);
        let is_in_blocks = present_blocks.any(|block| {
            let is_in_body = match &block.body {
                BlockBody::Text(text) => text.contains(variable),
                BlockBody::Data(value) => any_text(value, &|text| text.contains(variable)),
                BlockBody::Slot(_) => false,
            };
            is_in_body || block.attributes.iter().any(|(_, text)| text.contains(variable))
        });
        let context_values = ["user", "char", "outlets"].into_iter().filter_map(|key| values.get(key));
        is_in_blocks || context_values.into_iter().any(|value| any_text(value, &names_variable))
    }

    /// Returns true if the prompt has a slot for the world info of a position.
    fn has_slot(&self, position: EntryPosition) -> bool {
        self.blocks.iter().any(|block| block.body == BlockBody::Slot(SkeinSlot::Lore(position)))
    }
}
