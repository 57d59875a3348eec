//! A prompt: blocks in order, each an XML element around YAML or prose (F-001 to F-007), from which the text or the role messages for
//! a model are made.
//!
//! ```
//! use serde_json::json;
//! use tambour_prompt::skein::Skein;
//!
//! let skein = Skein::from_yaml("the prompt", "blocks:\n  - tag: world_state\n    data:\n      place: \"{{ place }}\"\n")?;
//! let rendered = skein.render(&json!({"place": "</world_state> Ruins"}), &Default::default())?;
//! assert_eq!(rendered.text, "<world_state>\nplace: \"&lt;/world_state> Ruins\"\n</world_state>");
//! # Ok::<(), tambour::Error>(())
//! ```

mod assemble;
mod cut;
pub mod escape;
mod expected;
mod file;
mod lore;
mod note;
mod pieces;
mod render;

use serde_json::{Map, Value};

use super::lore::{Entry, Position, Role, ScanSettings};

pub use assemble::{from_book, from_card, from_preset};
pub use cut::{Cut, What};
pub use render::{DroppedEntry, Message, Part, RenderOptions, Rendered, WokenEntry};

/// A prompt.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Skein {
    /// Its parts, in order.
    pub blocks: Vec<Block>,
    /// Protocols that it uses, beside those of its blocks.
    pub use_protocol: Vec<String>,
    /// Tokens of the rendered prompt, at most.
    pub max_context: Option<usize>,
    /// What is otherwise in the structure of a reply than the protocols say (F-200).
    pub expected_structure: Option<Value>,
    /// Variables of its templates (F-028).
    pub metadata: Map<String, Value>,
    /// How its world info is looked for.
    pub scan: Option<ScanSettings>,
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Block {
    /// Its tag; `block` for a part that is nothing but a message.
    pub tag: String,
    /// It is a message of its own.
    pub role: Option<Role>,
    /// How late it is left out when room is short.
    pub priority: Option<Priority>,
    /// What its body is said to be.
    pub format: Option<Format>,
    /// Attributes of its tag; values are templates.
    pub attributes: Vec<(String, String)>,
    /// What it holds.
    pub body: Body,
    /// It is world info: when it is there and where, without its text.
    pub lore: Option<Entry>,
}

/// What a block holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// Data, printed as YAML. Texts in it are templates, rendered one by one, so that a value stays one value.
    Data(Value),
    /// A template of prose.
    Text(String),
    /// A place that something else fills.
    Slot(Slot),
}

/// A place that something else fills.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Slot {
    /// The messages so far.
    History,
    /// Active world info of a place.
    Lore(Position),
    /// Active world info of an outlet.
    Outlet(String),
    /// What a model is told of the protocols, with an example.
    Protocols,
}

/// How late a block is left out when room is short (F-006).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// First.
    Low,
    /// After those of low priority.
    #[default]
    Normal,
    /// Last.
    High,
    /// Never.
    Critical,
}

/// What a body is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// Prose.
    Text,
    /// Markdown.
    Markdown,
}

impl Priority {
    /// All levels by their names.
    pub const NAMES: [(&'static str, Priority); 4] = [
        ("low", Priority::Low),
        ("normal", Priority::Normal),
        ("high", Priority::High),
        ("critical", Priority::Critical),
    ];

    fn name(self) -> &'static str {
        Priority::NAMES.iter().find(|(_, level)| *level == self).map_or("", |(name, _)| name)
    }
}

impl Format {
    /// All kinds by their names.
    pub const NAMES: [(&'static str, Format); 4] = [
        ("yaml", Format::Yaml),
        ("json", Format::Json),
        ("text", Format::Text),
        ("markdown", Format::Markdown),
    ];

    fn name(self) -> &'static str {
        Format::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

impl Role {
    /// All roles by their names.
    pub const NAMES: [(&'static str, Role); 3] =
        [("system", Role::System), ("user", Role::User), ("assistant", Role::Assistant)];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Role::NAMES.iter().find(|(_, role)| *role == self).map_or("", |(name, _)| name)
    }
}

impl Slot {
    /// The slot of a name in the file form: `history`, `lore_before`, `outlet:NAME`, …
    fn from_name(name: &str) -> Option<Slot> {
        if let Some(outlet) = name.strip_prefix("outlet:") {
            return Some(Slot::Outlet(outlet.trim().to_owned()));
        }
        let slot = Slot::named().into_iter().find(|(known, _)| *known == name);
        slot.map(|(_, slot)| slot)
    }

    /// The name in the file form.
    fn name(&self) -> String {
        match self {
            Slot::Outlet(outlet) => format!("outlet:{outlet}"),
            slot => {
                Slot::named().iter().find(|(_, known)| known == slot).map_or("", |(name, _)| name).to_owned()
            }
        }
    }

    /// Slots with names of their own.
    fn named() -> [(&'static str, Slot); 10] {
        [
            ("history", Slot::History),
            ("lore_before", Slot::Lore(Position::BeforeChar)),
            ("lore_after", Slot::Lore(Position::AfterChar)),
            ("note_top", Slot::Lore(Position::NoteTop)),
            ("note_bottom", Slot::Lore(Position::NoteBottom)),
            ("examples_before", Slot::Lore(Position::ExamplesBefore)),
            ("examples_after", Slot::Lore(Position::ExamplesAfter)),
            ("personality", Slot::Lore(Position::Personality)),
            ("scenario", Slot::Lore(Position::Scenario)),
            ("protocols", Slot::Protocols),
        ]
    }
}

impl Block {
    /// A block of that tag.
    #[must_use]
    pub fn new(tag: impl Into<String>, body: Body) -> Block {
        Block {
            tag: tag.into(),
            role: None,
            priority: None,
            format: None,
            attributes: Vec::new(),
            body,
            lore: None,
        }
    }

    /// A place that something else fills.
    #[must_use]
    pub fn slot(slot: Slot) -> Block {
        let tag = if slot == Slot::History { "conversation_history" } else { "" };
        Block::new(tag, Body::Slot(slot))
    }
}

impl Skein {
    /// Takes over world info and variables of another prompt, such as an imported card or book: its other blocks are left out,
    /// since this one says what a prompt is made of. Variables that are here already stay.
    pub fn take(&mut self, other: &Skein) {
        self.blocks.extend(other.blocks.iter().filter(|block| block.lore.is_some()).cloned());
        for (key, value) in &other.metadata {
            self.metadata.entry(key.clone()).or_insert_with(|| value.clone());
        }
        if self.scan.is_none() {
            self.scan.clone_from(&other.scan);
        }
    }

    /// Names of the protocols that it uses, each once, as they come.
    #[must_use]
    pub fn protocols(&self) -> Vec<String> {
        let own = self.blocks.iter().filter(|block| block.tag == "use_protocol").filter_map(|block| {
            match &block.body {
                Body::Text(id) => Some(id.trim().to_owned()),
                _ => None,
            }
        });
        let mut names: Vec<String> = Vec::new();
        for name in own.chain(self.use_protocol.iter().map(|name| name.trim().to_owned())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
