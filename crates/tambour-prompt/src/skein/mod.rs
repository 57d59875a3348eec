//! Skeins, which are prompts made of blocks: most blocks are an XML element around YAML or prose (F-001 to
//! F-007), others are messages or placeholders. A Skein is rendered as text or as role messages.
//!
//! A Skein can name protocols. Each protocol is an agreed set of elements in the reply, with instructions and
//! an example for the model.
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
mod budget_cut;
#[doc(hidden)]
pub mod escape;
mod expected;
mod file;
mod lore;
mod note;
mod pieces;
mod render;

use serde_json::{Map, Value};

use super::lore::{EntryPosition, LoreEntry, MessageRole, ScanSettings};

pub use assemble::from_import;
#[doc(hidden)]
pub use assemble::{from_book, from_card, from_preset};
pub use budget_cut::{DroppedPart, PartKey};
pub use render::{ActivatedEntry, CountedPart, DroppedEntry, PromptMessage, RenderOptions, RenderedPrompt};

/// A prompt made of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Skein {
    /// Blocks, in order.
    pub blocks: Vec<SkeinBlock>,
    /// Protocols in use, in addition to those that blocks name.
    pub use_protocol: Vec<String>,
    /// Maximum number of tokens of the rendered prompt.
    pub max_context: Option<usize>,
    /// Adjustments to the reply structure that the protocols define (F-200), as JSON.
    pub expected_structure: Option<Value>,
    /// Variables for its templates, if the context lacks them (F-028).
    pub metadata: Map<String, Value>,
    /// Settings for the scan of its world info.
    pub scan: Option<ScanSettings>,
}

/// A block of a prompt: an element, a message or a placeholder.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SkeinBlock {
    /// Tag; `block` for a block that prints no element, only its body.
    pub tag: String,
    /// Role, if the block is a separate message.
    pub role: Option<MessageRole>,
    /// Priority when the prompt is too long.
    pub priority: Option<BlockPriority>,
    /// Declared format of the body.
    pub format: Option<BlockFormat>,
    /// Attributes of the tag; their values are templates.
    pub attributes: Vec<(String, String)>,
    /// Content.
    pub body: BlockBody,
    /// Settings, if the block is an entry of world info: conditions and position, without the text.
    pub lore: Option<LoreEntry>,
}

/// Content of a block.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BlockBody {
    /// Data, printed as YAML. Each text in it is a separate template, so a value cannot add structure.
    Data(Value),
    /// Template of prose.
    Text(String),
    /// Placeholder, filled when the prompt is rendered.
    Slot(SkeinSlot),
}

/// Placeholder that other content fills.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkeinSlot {
    /// Messages of the history.
    History,
    /// Active world info of a position.
    Lore(EntryPosition),
    /// Active world info of an outlet.
    Outlet(String),
    /// Instructions for the protocols, with an example.
    Protocols,
}

/// Priority of a block when the prompt is too long (F-006).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockPriority {
    /// Dropped first.
    Low,
    /// Dropped after low priority.
    #[default]
    Normal,
    /// Dropped last.
    High,
    /// Never dropped.
    Critical,
}

/// Declared format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockFormat {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// Prose.
    Text,
    /// Markdown.
    Markdown,
}

impl BlockPriority {
    /// All levels by name.
    #[doc(hidden)]
    pub const NAMES: [(&'static str, BlockPriority); 4] = [
        ("low", BlockPriority::Low),
        ("normal", BlockPriority::Normal),
        ("high", BlockPriority::High),
        ("critical", BlockPriority::Critical),
    ];

    /// Returns the name of the level.
    fn name(self) -> &'static str {
        BlockPriority::NAMES.iter().find(|(_, level)| *level == self).map_or("", |(name, _)| name)
    }
}

impl BlockFormat {
    /// All formats by name.
    #[doc(hidden)]
    pub const NAMES: [(&'static str, BlockFormat); 4] = [
        ("yaml", BlockFormat::Yaml),
        ("json", BlockFormat::Json),
        ("text", BlockFormat::Text),
        ("markdown", BlockFormat::Markdown),
    ];

    /// Returns the name of the format.
    fn name(self) -> &'static str {
        BlockFormat::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

impl MessageRole {
    /// All roles by name.
    #[doc(hidden)]
    pub const NAMES: [(&'static str, MessageRole); 3] =
        [("system", MessageRole::System), ("user", MessageRole::User), ("assistant", MessageRole::Assistant)];

    /// Returns the name of the role.
    #[must_use]
    pub fn name(self) -> &'static str {
        MessageRole::NAMES.iter().find(|(_, role)| *role == self).map_or("", |(name, _)| name)
    }
}

impl SkeinSlot {
    /// Returns the slot with this name in files: `history`, `lore_before`, `outlet:NAME`, …
    fn from_name(name: &str) -> Option<SkeinSlot> {
        if let Some(outlet) = name.strip_prefix("outlet:") {
            return Some(SkeinSlot::Outlet(outlet.trim().to_owned()));
        }
        let slot = SkeinSlot::fixed_slots().into_iter().find(|(candidate, _)| *candidate == name);
        slot.map(|(_, slot)| slot)
    }

    /// Returns the name of the slot in files.
    fn name(&self) -> String {
        match self {
            SkeinSlot::Outlet(outlet) => format!("outlet:{outlet}"),
            slot => SkeinSlot::fixed_slots()
                .iter()
                .find(|(_, candidate)| candidate == slot)
                .map_or("", |(name, _)| name)
                .to_owned(),
        }
    }

    /// Returns all slots but outlets, by name.
    fn fixed_slots() -> [(&'static str, SkeinSlot); 10] {
        [
            ("history", SkeinSlot::History),
            ("lore_before", SkeinSlot::Lore(EntryPosition::BeforeChar)),
            ("lore_after", SkeinSlot::Lore(EntryPosition::AfterChar)),
            ("note_top", SkeinSlot::Lore(EntryPosition::NoteTop)),
            ("note_bottom", SkeinSlot::Lore(EntryPosition::NoteBottom)),
            ("examples_before", SkeinSlot::Lore(EntryPosition::ExamplesBefore)),
            ("examples_after", SkeinSlot::Lore(EntryPosition::ExamplesAfter)),
            ("personality", SkeinSlot::Lore(EntryPosition::Personality)),
            ("scenario", SkeinSlot::Lore(EntryPosition::Scenario)),
            ("protocols", SkeinSlot::Protocols),
        ]
    }
}

impl SkeinBlock {
    /// Creates a block with a tag.
    #[must_use]
    pub fn new(tag: impl Into<String>, body: BlockBody) -> SkeinBlock {
        SkeinBlock {
            tag: tag.into(),
            role: None,
            priority: None,
            format: None,
            attributes: Vec::new(),
            body,
            lore: None,
        }
    }

    /// Creates a placeholder.
    #[must_use]
    pub fn slot(slot: SkeinSlot) -> SkeinBlock {
        let tag = if slot == SkeinSlot::History { "conversation_history" } else { "" };
        SkeinBlock::new(tag, BlockBody::Slot(slot))
    }
}

impl Skein {
    /// Adds world info and variables of another prompt, such as an imported card or book. Its other blocks
    /// are ignored, because this prompt defines the structure. Existing variables and scan settings are kept.
    pub fn merge_lore(&mut self, other: &Skein) {
        self.blocks.extend(other.blocks.iter().filter(|block| block.lore.is_some()).cloned());
        for (key, value) in &other.metadata {
            self.metadata.entry(key.clone()).or_insert_with(|| value.clone());
        }
        if self.scan.is_none() {
            self.scan.clone_from(&other.scan);
        }
    }

    /// Returns the names of the protocols in use, without duplicates, in order of first use.
    #[must_use]
    pub fn protocols(&self) -> Vec<String> {
        let block_protocols =
            self.blocks.iter().filter(|block| block.tag == "use_protocol").filter_map(|block| {
                match &block.body {
                    BlockBody::Text(id) => Some(id.trim().to_owned()),
                    _ => None,
                }
            });
        let mut names: Vec<String> = Vec::new();
        for name in block_protocols.chain(self.use_protocol.iter().map(|name| name.trim().to_owned())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
