//! World info of a prompt: the active blocks, their places, and the variables that print them.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::super::lore::{Activation, Entry, Line, Position, Scan, ScanSettings, Source, Timed, activate};
use super::{Body, Skein, Slot};
use tambour::error::{Error, Result};

/// Active world info of a prompt.
pub(super) struct Active {
    /// Result of the scan; its indexes are those of `blocks`.
    pub(super) found: Activation,
    /// Block index of each entry.
    pub(super) blocks: Vec<usize>,
}

/// Returns the messages of a context in the form that a scan reads.
pub(super) fn lines(context: &Map<String, Value>) -> Vec<Line> {
    let messages = context.get("history").and_then(Value::as_array);
    let text =
        |message: &Value, key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = |key: &str| named(context.get(key));
    messages
        .into_iter()
        .flatten()
        .map(|message| {
            let role = text(message, "role");
            let own = text(message, "name");
            let content = message.as_str().map_or_else(|| text(message, "content"), str::to_owned);
            let name = match role.as_str() {
                _ if !own.is_empty() => own,
                "user" => name("user"),
                "assistant" => name("char"),
                _ => own,
            };
            Line { role, name, content }
        })
        .collect()
}

/// Returns the name of a person in a context, who may be a text or an object.
pub(super) fn named(person: Option<&Value>) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    person.and_then(|person| text(person).or_else(|| text(person.get("name")?))).unwrap_or_default()
}

/// Unique ids of entries. Two books may use the same id, but timed effects belong to one entry.
#[derive(Default)]
struct Ids {
    /// Occurrences of each id.
    known: HashMap<String, usize>,
}

impl Ids {
    /// Returns the id, with a number appended if it was used before. Deterministic for the same books in the
    /// same order.
    fn own(&mut self, id: &str) -> String {
        let mut own = id.to_owned();
        while self.known.contains_key(&own) {
            let number = self.known.entry(id.to_owned()).or_default();
            *number += 1;
            own = format!("{id} #{number}");
        }
        self.known.insert(own.clone(), 1);
        own
    }
}

impl Skein {
    /// Finds the world info that is active for these messages and texts of user and character.
    pub(super) fn active(
        &self,
        context: &Map<String, Value>,
        (lines, sources): (&[Line], &[(Source, String)]),
        timed: &Timed,
        count: &dyn Fn(&str) -> usize,
        read: &dyn Fn(u64) -> bool,
    ) -> Result<Active> {
        let mut blocks = Vec::new();
        let mut entries: Vec<Entry> = Vec::new();
        let mut ids = Ids::default();
        for (at, block) in self.blocks.iter().enumerate() {
            let Some(entry) = &block.lore else { continue };
            let id = match &*entry.id {
                "" => ids.own(&format!("block {}", at + 1)),
                id => ids.own(id),
            };
            let content = match &block.body {
                Body::Text(text) => text.clone(),
                Body::Data(value) => tambour::yaml::print(value),
                Body::Slot(_) => String::new(),
            };
            // Names are inserted because the text may activate other entries.
            let content = if content.contains("{{") { with_names(&content, context) } else { content };
            let mut entry = Entry { id, content, ..entry.clone() };
            for keys in [
                &mut entry.keys,
                &mut entry.secondary_keys,
                &mut entry.additional_keys,
                &mut entry.exclude_keys,
            ] {
                keys.iter_mut()
                    .filter(|key| key.contains("{{"))
                    .for_each(|key| *key = with_names(key, context));
            }
            entries.push(entry);
            blocks.push(at);
        }
        let (settings, timed) = (self.settings(context), timed.clone());
        let found = activate(&entries, &Scan { sources, settings, timed, count, read, ..Scan::new(lines) });
        if found.cut {
            let message = "looking for the keys of the world info takes too long";
            return Err(Error::invalid(message).coded("limit_exceeded"));
        }
        Ok(Active { found, blocks })
    }

    /// Returns the scan settings, completed with character, generation and seed of the context.
    fn settings(&self, context: &Map<String, Value>) -> ScanSettings {
        let mut settings = self.scan.clone().unwrap_or_default();
        let person = context.get("char");
        if settings.character.is_empty() {
            settings.character = named(person);
        }
        if settings.tags.is_empty() {
            let tags = person.and_then(|person| person.get("tags")).and_then(Value::as_array);
            settings.tags = tags.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        let kind = context.get("last_generation").and_then(|last| last.get("type")).and_then(Value::as_str);
        if let Some(kind) = kind.filter(|kind| !kind.is_empty()) {
            kind.clone_into(&mut settings.trigger);
        }
        match context.get("seed") {
            Some(Value::Number(seed)) => {
                settings.seed = seed.as_u64().unwrap_or_else(|| hash(&seed.to_string()))
            }
            Some(Value::String(seed)) => settings.seed = hash(seed),
            _ => {}
        }
        settings
    }

    /// Groups active blocks by their target; blocks without a slot of their own are grouped at the fallback.
    pub(super) fn placed(&self, active: &Active) -> BTreeMap<Target, Vec<usize>> {
        let slots = &active.found.slots;
        let mut placed: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
        let lists = [
            (Position::BeforeChar, &slots.lore_before),
            (Position::AfterChar, &slots.lore_after),
            (Position::NoteTop, &slots.note_top),
            (Position::NoteBottom, &slots.note_bottom),
            (Position::ExamplesBefore, &slots.examples_before),
            (Position::ExamplesAfter, &slots.examples_after),
            (Position::Personality, &slots.personality),
            (Position::Scenario, &slots.scenario),
        ];
        for (position, list) in lists {
            for &entry in list {
                let block = active.blocks[entry];
                placed.entry(self.target(position, block)).or_default().push(block);
            }
        }
        placed
    }

    /// Returns the target of world info: its slot or variable, else that of the nearest position, else the
    /// place of its block.
    fn target(&self, position: Position, block: usize) -> Target {
        for position in [position, nearest(position)] {
            if self.blocks.iter().any(|block| block.body == Body::Slot(Slot::Lore(position))) {
                return Target::Slot(name(position));
            }
            if self.mentions(name(position)) {
                return Target::Variable(name(position));
            }
        }
        Target::Here(block)
    }

    /// Returns true if a template contains the name of a variable.
    pub(super) fn mentions(&self, variable: &str) -> bool {
        fn any(value: &Value, variable: &str) -> bool {
            match value {
                Value::String(text) => text.contains(variable),
                Value::Array(items) => items.iter().any(|item| any(item, variable)),
                Value::Object(map) => map.values().any(|item| any(item, variable)),
                _ => false,
            }
        }
        self.blocks.iter().filter(|block| block.lore.is_none()).any(|block| match &block.body {
            Body::Text(text) => text.contains(variable),
            Body::Data(value) => any(value, variable),
            Body::Slot(_) => false,
        })
    }
}

/// Place of active world info in the prompt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// Slot.
    Slot(&'static str),
    /// Variable that a template prints.
    Variable(&'static str),
    /// Place of its own block.
    Here(usize),
}

/// Returns the variable that prints the world info of a position (F-020). `anchor_before` and `anchor_after`
/// surround the author's note.
pub(super) fn name(position: Position) -> &'static str {
    match position {
        Position::BeforeChar => "lore_before",
        Position::AfterChar => "lore_after",
        Position::NoteTop => "anchor_before",
        Position::NoteBottom => "anchor_after",
        Position::ExamplesBefore => "lore_examples_before",
        Position::ExamplesAfter => "lore_examples_after",
        Position::Personality => "lore_personality",
        Position::Scenario => "lore_scenario",
        Position::AtDepth | Position::Outlet => "",
    }
}

/// Returns the fallback for a position that a prompt lacks.
fn nearest(position: Position) -> Position {
    match position {
        Position::BeforeChar => Position::BeforeChar,
        _ => Position::AfterChar,
    }
}

/// Replaces the macros for the names of user and character in a key or entry text. Other macros are left
/// unchanged.
fn with_names(key: &str, context: &Map<String, Value>) -> String {
    let mut out = String::new();
    let mut rest = key;
    while let Some((before, behind)) = rest.split_once("{{") {
        out += before;
        let found = behind.split_once("}}").and_then(|(name, behind)| {
            let name = name.trim().to_ascii_lowercase();
            matches!(name.as_str(), "user" | "char").then(|| (named(context.get(&name)), behind))
        });
        match found {
            Some((name, behind)) => {
                out += &name;
                rest = behind;
            }
            None => {
                out += "{{";
                rest = behind;
            }
        }
    }
    out + rest
}

/// Hashes a text to a seed.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
