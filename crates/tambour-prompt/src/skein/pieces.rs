//! Renders the blocks of a prompt to pieces, in order.

use serde_json::{Map, Number, Value};

use tambour::error::Result;
use tambour::yaml;

use super::super::card::normalize::ENTRY_TAG;
use super::super::jinja::Assembly;
use super::super::lore::{ChatLine, DepthSlot, EntryPosition, MessageRole};
use super::super::name::{META_TAGS, TOP_LEVEL_TAGS};
use super::budget_cut::PartKey;
use super::escape::{BoundaryTags, escape_attribute};
use super::expected::STRUCTURE_KEY;
use super::lore::{ActiveLore, LoreTarget};
use super::note::AuthorNote;
use super::{BlockBody, BlockFormat, BlockPriority, Skein, SkeinBlock, SkeinSlot};

/// A rendered part of a prompt.
#[derive(Debug)]
pub(super) struct PromptPiece {
    pub(super) part: PartKey,
    pub(super) priority: BlockPriority,
    /// Never dropped.
    pub(super) is_required: bool,
    /// Role, if the piece is a message; otherwise it belongs to the system message.
    pub(super) role: Option<String>,
    /// Rendered text.
    pub(super) text: String,
    /// Name of the speaker, if the piece is a message of the history.
    pub(super) speaker: Option<String>,
    pub(super) tokens: usize,
    pub(super) is_dropped: bool,
}

/// Renders the blocks of a prompt one after the other.
pub(super) struct SkeinRenderer<'a> {
    pub(super) skein: &'a Skein,
    pub(super) assembly: &'a mut Assembly,
    pub(super) boundaries: &'a BoundaryTags,
    pub(super) active_lore: &'a ActiveLore,
    pub(super) lines: &'a [ChatLine],
    pub(super) note: AuthorNote,
    /// Names of unknown protocols, which are omitted.
    pub(super) unknown_protocols: &'a [String],
    /// Instructions for the protocols.
    pub(super) protocol_instructions: String,
    /// True if the instructions are added even without a slot for them.
    pub(super) adds_instructions: bool,
    pub(super) pieces: Vec<PromptPiece>,
    pub(super) warnings: Vec<String>,
}

impl<'a> SkeinRenderer<'a> {
    /// Creates a renderer without messages and protocols.
    pub(super) fn new(
        skein: &'a Skein,
        assembly: &'a mut Assembly,
        boundaries: &'a BoundaryTags,
        active_lore: &'a ActiveLore,
    ) -> SkeinRenderer<'a> {
        let (lines, unknown_protocols, protocol_instructions) = (&[][..], &[][..], String::new());
        let (pieces, warnings) = (Vec::new(), Vec::new());
        let (note, adds_instructions) = (AuthorNote::default(), false);
        SkeinRenderer {
            skein,
            assembly,
            boundaries,
            active_lore,
            lines,
            note,
            unknown_protocols,
            protocol_instructions,
            adds_instructions,
            pieces,
            warnings,
        }
    }

    /// Renders all pieces.
    pub(super) fn render_pieces(&mut self) -> Result<()> {
        let mut groups = self.skein.group_by_target(self.active_lore);
        let at_end = self.skein.blocks.len();
        let protocols_at = self
            .skein
            .blocks
            .iter()
            .position(|block| block.role.is_some() || block.body == BlockBody::Slot(SkeinSlot::History));
        let slot = self.skein.blocks.iter().any(|block| block.body == BlockBody::Slot(SkeinSlot::Protocols));
        let mut history = false;
        for at in 0..=at_end {
            if at == protocols_at.unwrap_or(at_end) {
                self.push_protocols(slot);
            }
            let Some(block) = self.skein.blocks.get(at) else { break };
            match &block.body {
                _ if block.lore.is_some() => {
                    for at in groups.remove(&LoreTarget::Block(at)).unwrap_or_default() {
                        self.push_lore(at)?;
                    }
                }
                BlockBody::Slot(SkeinSlot::Lore(position)) => {
                    if *position == EntryPosition::NoteBottom {
                        let below_text = std::mem::take(&mut self.note.below_text);
                        self.push_note(block, &below_text);
                    }
                    for at in groups
                        .remove(&LoreTarget::Slot(super::lore::lore_variable(*position)))
                        .unwrap_or_default()
                    {
                        self.push_lore(at)?;
                    }
                    if *position == EntryPosition::NoteTop {
                        let above_text = std::mem::take(&mut self.note.above_text);
                        self.push_note(block, &above_text);
                    }
                }
                BlockBody::Slot(SkeinSlot::Outlet(name)) => {
                    let entries =
                        self.active_lore.activation.slots.outlets.get(name).cloned().unwrap_or_default();
                    for entry in entries {
                        self.push_lore(self.active_lore.blocks[entry])?;
                    }
                }
                BlockBody::Slot(SkeinSlot::Protocols) => {
                    let text = self.protocol_instructions.clone();
                    self.push_piece(PartKey::Protocols, block, text);
                }
                BlockBody::Slot(SkeinSlot::History) if !history => {
                    history = true;
                    self.push_history(block)?;
                }
                BlockBody::Slot(SkeinSlot::History) => {}
                BlockBody::Text(_) | BlockBody::Data(_) => {
                    let text = self.render_element(at)?;
                    let key = PartKey::Block { number: at + 1, tag: block.tag.clone() };
                    if !text.is_empty() {
                        self.push_piece(key, block, text);
                    }
                }
            }
        }
        if !history && !self.active_lore.activation.slots.depth.is_empty() {
            // Without messages, the entries go to the end.
            for place in self.active_lore.activation.slots.depth.clone() {
                place.entries.iter().try_for_each(|&entry| self.push_lore(self.active_lore.blocks[entry]))?;
            }
        }
        if !history {
            self.push_note_message();
        }
        for (name, entries) in &self.active_lore.activation.slots.outlets {
            let slot = BlockBody::Slot(SkeinSlot::Outlet(name.clone()));
            if !self.skein.blocks.iter().any(|block| block.body == slot)
                && !self.skein.mentions_variable("outlet(")
            {
                self.warnings.push(format!(
                    "{} active entries are for the outlet `{name}`, which the prompt does not print",
                    entries.len()
                ));
            }
        }
        Ok(())
    }

    /// Renders the variables of world info that templates name.
    pub(super) fn render_variables(&mut self) -> Result<Map<String, Value>> {
        let mut variables = Map::new();
        for (target, blocks) in self.skein.group_by_target(self.active_lore) {
            if let LoreTarget::Variable(name) = target {
                let texts = blocks.iter().map(|&at| self.render_element(at)).collect::<Result<Vec<_>>>()?;
                let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
                variables.insert(name.to_owned(), texts.join("\n\n").into());
            }
        }
        Ok(variables)
    }

    fn push_piece(&mut self, part: PartKey, block: &SkeinBlock, text: String) {
        self.pieces.push(PromptPiece {
            is_required: block.tag == "use_protocol",
            part,
            priority: block.priority.unwrap_or_default(),
            role: block.role.map(|role| role.name().to_owned()),
            text,
            speaker: None,
            tokens: 0,
            is_dropped: false,
        });
    }

    /// Adds the world info of a block.
    fn push_lore(&mut self, at: usize) -> Result<()> {
        let block = &self.skein.blocks[at];
        let text = self.render_element(at)?;
        if !text.is_empty() {
            self.push_piece(self.lore_part(at), block, text);
        }
        Ok(())
    }

    fn lore_part(&self, at: usize) -> PartKey {
        let block = &self.skein.blocks[at];
        let entry = block.lore.as_ref();
        let title = entry.map(|entry| entry.title.clone()).filter(|title| !title.is_empty());
        PartKey::Lore {
            number: at + 1,
            title: title.unwrap_or_else(|| block.tag.clone()),
            order: entry.map_or(0, |entry| entry.order),
        }
    }

    /// Adds tags and instructions of the protocols that no block names.
    fn push_protocols(&mut self, is_slot: bool) {
        let is_own = |name: &&String| {
            !self.skein.blocks.iter().any(|block| {
                block.tag == "use_protocol"
                    && matches!(&block.body, BlockBody::Text(id) if id.trim() == name.trim())
            })
        };
        let tags: Vec<String> = self
            .skein
            .use_protocol
            .iter()
            .filter(is_own)
            .filter(|name| !self.unknown_protocols.iter().any(|unknown| unknown == name.trim()))
            .map(|name| format!("<use_protocol>{}</use_protocol>", escape_attribute(name.trim())))
            .collect();
        let block = SkeinBlock::new("use_protocol", BlockBody::Text(String::new()));
        if !tags.is_empty() {
            self.push_piece(PartKey::Protocols, &block, tags.join("\n"));
        }
        if self.adds_instructions && !is_slot {
            let text = self.protocol_instructions.clone();
            self.push_piece(PartKey::Protocols, &block, text);
        }
    }

    /// Adds the history, with world info and the author's note among the messages.
    fn push_history(&mut self, block: &SkeinBlock) -> Result<()> {
        let newest = self.lines.iter().rposition(|line| line.role == "user");
        let count = self.lines.len();
        let places = self.active_lore.activation.slots.depth.clone();
        let depth_index = |place: &DepthSlot| {
            let depth = place.depth as usize;
            if place.from_start { depth.min(count) } else { count.saturating_sub(depth) }
        };
        let note = count.saturating_sub(self.note.depth);
        for index in 0..=count {
            if index == note {
                self.push_note_message();
            }
            for place in places.iter().filter(|place| depth_index(place) == index) {
                for &entry in &place.entries {
                    let at = self.active_lore.blocks[entry];
                    self.push_lore(at)?;
                    self.set_role(place.role);
                }
            }
            let Some(line) = self.lines.get(index) else { break };
            self.pieces.push(PromptPiece {
                part: PartKey::Message { index, role: line.role.clone() },
                priority: block.priority.unwrap_or_default(),
                is_required: newest == Some(index),
                role: Some(if line.role.is_empty() { "user".to_owned() } else { line.role.clone() }),
                text: line.content.clone(),
                speaker: Some(line.name.clone()),
                tokens: 0,
                is_dropped: false,
            });
        }
        Ok(())
    }

    /// Adds a part of the author's note, with the properties of `block`.
    fn push_note(&mut self, block: &SkeinBlock, text: &str) {
        if !text.is_empty() {
            let text = self.boundaries.escape(text).into_owned();
            self.push_piece(PartKey::Note, block, text);
        }
    }

    /// Adds the author's note as a message of its own.
    fn push_note_message(&mut self) {
        let text = std::mem::take(&mut self.note.message_text);
        let role = Some(self.note.role);
        self.push_note(
            &SkeinBlock { role, ..SkeinBlock::new("block", BlockBody::Text(String::new())) },
            &text,
        );
    }

    /// Makes the last piece a message, if it is world info.
    fn set_role(&mut self, role: MessageRole) {
        if let Some(piece) = self.pieces.last_mut().filter(|piece| matches!(piece.part, PartKey::Lore { .. }))
        {
            piece.role.get_or_insert_with(|| role.name().to_owned());
        }
    }

    /// Renders the element of a block; empty if its text is blank.
    fn render_element(&mut self, at: usize) -> Result<String> {
        let block = &self.skein.blocks[at];
        let name = format!("block {} (`{}`)", at + 1, block.tag);
        let (body, yaml) = match &block.body {
            BlockBody::Slot(_) => return Ok(String::new()),
            BlockBody::Text(text) if block.tag == "use_protocol" => {
                if self.unknown_protocols.iter().any(|name| name == text.trim()) {
                    return Ok(String::new());
                }
                return Ok(format!("<use_protocol>{}</use_protocol>", escape_attribute(text.trim())));
            }
            BlockBody::Text(text) => {
                let text = self.render_template(&name, text)?;
                let text = text.trim_matches(['\n', '\r']);
                if text.trim().is_empty() {
                    return Ok(String::new());
                }
                (self.boundaries.escape(text).into_owned(), false)
            }
            BlockBody::Data(value) => {
                let mut value = self.render_data(&name, value)?;
                if let (Value::Object(map), "system_instruction") = (&mut value, &*block.tag) {
                    map.shift_remove(STRUCTURE_KEY);
                }
                match block.format {
                    Some(BlockFormat::Json) => {
                        (serde_json::to_string_pretty(&value).unwrap_or_default(), false)
                    }
                    _ => (yaml::print(&value), true),
                }
            }
        };
        let mut body = body;
        if !body.ends_with('\n') {
            body.push('\n');
        }
        let mut attributes = String::new();
        for (key, value) in &block.attributes {
            attributes += &format!(" {key}=\"{}\"", escape_attribute(&self.render_template(&name, value)?));
        }
        if let Some(format) = block.format {
            body = format!("<format type=\"{}\">\n{body}</format>\n", format.name());
        }
        // YAML in tags without a predefined meaning is indented (F-014).
        let entry = block.tag == ENTRY_TAG
            || !TOP_LEVEL_TAGS.contains(&&*block.tag) && !META_TAGS.contains(&&*block.tag);
        if yaml && entry {
            body = yaml::indent_lines(&body, 2);
        }
        let mut out = match &*block.tag {
            "block" => body.trim_end_matches('\n').to_owned(),
            tag => format!("<{tag}{attributes}>\n{body}</{tag}>"),
        };
        if let Some(priority) = block.priority {
            out = format!("<priority level=\"{}\">\n{out}\n</priority>", priority.name());
        }
        Ok(out)
    }

    /// Renders a template; text without template syntax is returned unchanged.
    fn render_template(&mut self, name: &str, source: &str) -> Result<String> {
        if !["{{", "{%", "{#"].iter().any(|mark| source.contains(mark)) {
            return Ok(source.to_owned());
        }
        let mut out = self.assembly.render(name, source)?;
        // The engine drops one line break at the end of a template.
        if source.ends_with('\n') && !out.ends_with('\n') {
            out.push('\n');
        }
        Ok(out)
    }

    /// Renders the templates in the texts of a value and escapes boundaries in each.
    fn render_data(&mut self, name: &str, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::String(source) => {
                let text = self.render_template(name, source)?;
                match parse_number(source, &text) {
                    Some(number) => number.into(),
                    None => self.boundaries.escape(&text).into_owned().into(),
                }
            }
            Value::Array(items) => {
                items.iter().map(|item| self.render_data(name, item)).collect::<Result<_>>()?
            }
            Value::Object(map) => {
                let mut out = Map::new();
                for (key, value) in map {
                    let key_text = self.render_template(name, key)?;
                    let key_text = self.boundaries.escape(&key_text).into_owned();
                    let key = if out.contains_key(&key_text) { key.clone() } else { key_text };
                    let value = self.render_data(name, value)?;
                    out.insert(key, value);
                }
                out.into()
            }
            other => other.clone(),
        })
    }
}

/// Returns the value as a number if the source is a single expression: `hp: "{{ state.hp }}"` gives `hp: 7`.
fn parse_number(source: &str, text: &str) -> Option<Number> {
    let inner = source.strip_prefix("{{")?.strip_suffix("}}")?;
    if inner.contains("{{") || inner.contains("}}") {
        return None;
    }
    let integer = text.parse::<i64>().ok().map(Number::from);
    let number = integer.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))?;
    (number.to_string() == text).then_some(number)
}
