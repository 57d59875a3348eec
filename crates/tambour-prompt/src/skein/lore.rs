//! World info of a prompt: the active blocks, their places, and the variables that print them.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::super::lore::{
    CharacterText, ChatLine, EntryPosition, LoreActivation, LoreEntry, LoreScan, ScanSettings, TimedEffects,
    activate,
};
use super::{BlockBody, Skein, SkeinSlot};
use tambour::error::{Error, Result};

/// Active world info of a prompt.
pub(super) struct ActiveLore {
    /// Result of the scan; its entries are indexes into `blocks`.
    pub(super) activation: LoreActivation,
    /// For each entry, active or not, the index of its block in the prompt.
    pub(super) blocks: Vec<usize>,
}

/// Returns the messages of a context in the form that a scan reads.
pub(super) fn chat_lines(context: &Map<String, Value>) -> Vec<ChatLine> {
    let messages = context.get("history").and_then(Value::as_array);
    let text =
        |message: &Value, key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let participant_name = |key: &str| person_name(context.get(key));
    messages
        .into_iter()
        .flatten()
        .map(|message| {
            let role = text(message, "role");
            let speaker = text(message, "name");
            let content = message.as_str().map_or_else(|| text(message, "content"), str::to_owned);
            // A message without a speaker has the name of the user or the character.
            let name = match role.as_str() {
                _ if !speaker.is_empty() => speaker,
                "user" => participant_name("user"),
                "assistant" => participant_name("char"),
                _ => speaker,
            };
            ChatLine { role, name, content }
        })
        .collect()
}

/// Returns the name of a person in a context, given as a text or as an object with `name`; empty if there is
/// none.
pub(super) fn person_name(person: Option<&Value>) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    person.and_then(|person| text(person).or_else(|| text(person.get("name")?))).unwrap_or_default()
}

/// Unique ids of entries. Two books may use the same id, but timed effects belong to one entry.
#[derive(Default)]
struct UniqueIds {
    /// Last number tried for each assigned id; 1 for the id itself.
    last_numbers: HashMap<String, usize>,
}

impl UniqueIds {
    /// Returns the id, with a number appended if it was used before. Deterministic for the same books in the
    /// same order.
    fn assign(&mut self, id: &str) -> String {
        let mut unique_id = id.to_owned();
        while self.last_numbers.contains_key(&unique_id) {
            let number = self.last_numbers.entry(id.to_owned()).or_default();
            *number += 1;
            unique_id = format!("{id} #{number}");
        }
        self.last_numbers.insert(unique_id.clone(), 1);
        unique_id
    }
}

impl Skein {
    /// Finds the world info that is active for these messages and texts of user and character. `charge` is
    /// called before bytes are searched, with their number.
    ///
    /// # Errors
    /// `charge` refused bytes: the search takes too long.
    pub(super) fn activate_lore(
        &self,
        context: &Map<String, Value>,
        (lines, sources): (&[ChatLine], &[(CharacterText, String)]),
        timed_effects: &TimedEffects,
        count_tokens: &dyn Fn(&str) -> usize,
        charge: &dyn Fn(u64) -> bool,
    ) -> Result<ActiveLore> {
        let mut blocks = Vec::new();
        let mut entries: Vec<LoreEntry> = Vec::new();
        let mut ids = UniqueIds::default();
        for (index, block) in self.blocks.iter().enumerate() {
            let Some(entry) = &block.lore else { continue };
            let id = match &*entry.id {
                "" => ids.assign(&format!("block {}", index + 1)),
                id => ids.assign(id),
            };
            let content = match &block.body {
                BlockBody::Text(text) => text.clone(),
                BlockBody::Data(value) => tambour::yaml::print(value),
                BlockBody::Slot(_) => String::new(),
            };
            // The names of user and character are inserted because the text may activate other entries.
            let content = if content.contains("{{") { insert_names(&content, context) } else { content };
            let mut entry = LoreEntry { id, content, ..entry.clone() };
            for keys in [
                &mut entry.keys,
                &mut entry.secondary_keys,
                &mut entry.additional_keys,
                &mut entry.exclude_keys,
            ] {
                keys.iter_mut()
                    .filter(|key| key.contains("{{"))
                    .for_each(|key| *key = insert_names(key, context));
            }
            entries.push(entry);
            blocks.push(index);
        }
        let (settings, timed_effects) = (self.scan_settings(context), timed_effects.clone());
        let activation = activate(
            &entries,
            &LoreScan { sources, settings, timed_effects, count_tokens, charge, ..LoreScan::new(lines) },
        );
        if activation.is_truncated {
            let message = "looking for the keys of the world info takes too long";
            return Err(Error::invalid(message).with_code("limit_exceeded"));
        }
        Ok(ActiveLore { activation, blocks })
    }

    /// Returns the scan settings, completed with character, generation and seed of the context.
    fn scan_settings(&self, context: &Map<String, Value>) -> ScanSettings {
        let mut settings = self.scan.clone().unwrap_or_default();
        let person = context.get("char");
        if settings.character.is_empty() {
            settings.character = person_name(person);
        }
        if settings.tags.is_empty() {
            let tags = person.and_then(|person| person.get("tags")).and_then(Value::as_array);
            settings.tags = tags.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        let generation_kind =
            context.get("last_generation").and_then(|last| last.get("type")).and_then(Value::as_str);
        if let Some(generation_kind) = generation_kind.filter(|kind| !kind.is_empty()) {
            generation_kind.clone_into(&mut settings.trigger);
        }
        match context.get("seed") {
            Some(Value::Number(seed)) => {
                settings.seed = seed.as_u64().unwrap_or_else(|| hash_text(&seed.to_string()))
            }
            Some(Value::String(seed)) => settings.seed = hash_text(seed),
            _ => {}
        }
        settings
    }

    /// Groups the indexes of active blocks by their target. Blocks among messages and in outlets are not
    /// included.
    pub(super) fn group_by_target(&self, active_lore: &ActiveLore) -> BTreeMap<LoreTarget, Vec<usize>> {
        let slots = &active_lore.activation.slots;
        let mut groups: BTreeMap<LoreTarget, Vec<usize>> = BTreeMap::new();
        let lists = [
            (EntryPosition::BeforeChar, &slots.lore_before),
            (EntryPosition::AfterChar, &slots.lore_after),
            (EntryPosition::NoteTop, &slots.note_top),
            (EntryPosition::NoteBottom, &slots.note_bottom),
            (EntryPosition::ExamplesBefore, &slots.examples_before),
            (EntryPosition::ExamplesAfter, &slots.examples_after),
            (EntryPosition::Personality, &slots.personality),
            (EntryPosition::Scenario, &slots.scenario),
        ];
        for (position, entries) in lists {
            for &entry_index in entries {
                let block_index = active_lore.blocks[entry_index];
                groups.entry(self.lore_target(position, block_index)).or_default().push(block_index);
            }
        }
        groups
    }

    /// Returns the target of world info: the slot or variable of its position, else that of the nearest
    /// position, else its own block, whose index is `block_index`.
    fn lore_target(&self, position: EntryPosition, block_index: usize) -> LoreTarget {
        for position in [position, nearest_position(position)] {
            if self.blocks.iter().any(|block| block.body == BlockBody::Slot(SkeinSlot::Lore(position))) {
                return LoreTarget::Slot(lore_variable(position));
            }
            if self.mentions_variable(lore_variable(position)) {
                return LoreTarget::Variable(lore_variable(position));
            }
        }
        LoreTarget::Block(block_index)
    }

    /// Returns true if a block that is not world info contains the name of a variable.
    pub(super) fn mentions_variable(&self, variable: &str) -> bool {
        /// Returns true if a text of the value, at any depth, contains the name.
        fn contains_variable(value: &Value, variable: &str) -> bool {
            match value {
                Value::String(text) => text.contains(variable),
                Value::Array(items) => items.iter().any(|item| contains_variable(item, variable)),
                Value::Object(map) => map.values().any(|item| contains_variable(item, variable)),
                _ => false,
            }
        }
        self.blocks.iter().filter(|block| block.lore.is_none()).any(|block| match &block.body {
            BlockBody::Text(text) => text.contains(variable),
            BlockBody::Data(value) => contains_variable(value, variable),
            BlockBody::Slot(_) => false,
        })
    }
}

/// Target of active world info in the prompt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoreTarget {
    /// Slot of the position with this variable ([`lore_variable`]).
    Slot(&'static str),
    /// Variable that a template prints.
    Variable(&'static str),
    /// Block of the entry itself, by index.
    Block(usize),
}

/// Returns the variable that prints the world info of a position (F-020); empty for a position without one.
/// `anchor_before` and `anchor_after` surround the author's note.
pub(super) fn lore_variable(position: EntryPosition) -> &'static str {
    match position {
        EntryPosition::BeforeChar => "lore_before",
        EntryPosition::AfterChar => "lore_after",
        EntryPosition::NoteTop => "anchor_before",
        EntryPosition::NoteBottom => "anchor_after",
        EntryPosition::ExamplesBefore => "lore_examples_before",
        EntryPosition::ExamplesAfter => "lore_examples_after",
        EntryPosition::Personality => "lore_personality",
        EntryPosition::Scenario => "lore_scenario",
        EntryPosition::AtDepth | EntryPosition::Outlet => "",
    }
}

/// Returns the fallback for a position that a prompt lacks.
fn nearest_position(position: EntryPosition) -> EntryPosition {
    match position {
        EntryPosition::BeforeChar => EntryPosition::BeforeChar,
        _ => EntryPosition::AfterChar,
    }
}

/// Replaces the macros for the names of user and character in a key or entry text. Other macros are left
/// unchanged.
fn insert_names(text: &str, context: &Map<String, Value>) -> String {
    let mut out = String::new();
    let mut remaining = text;
    while let Some((before, remainder)) = remaining.split_once("{{") {
        out += before;
        let name_macro = remainder.split_once("}}").and_then(|(name, remainder)| {
            let name = name.trim().to_ascii_lowercase();
            matches!(name.as_str(), "user" | "char").then(|| (person_name(context.get(&name)), remainder))
        });
        match name_macro {
            Some((name, remainder)) => {
                out += &name;
                remaining = remainder;
            }
            None => {
                out += "{{";
                remaining = remainder;
            }
        }
    }
    out + remaining
}

/// Hashes a text to a seed (FNV-1a).
fn hash_text(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
