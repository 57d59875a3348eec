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
    /// Identity of the part.
    pub(super) part: PartKey,
    /// Priority when the prompt is too long.
    pub(super) priority: BlockPriority,
    /// True if the piece is never dropped, whatever its priority.
    pub(super) is_required: bool,
    /// Role, if the piece is a message; otherwise it belongs to the system message.
    pub(super) role: Option<String>,
    /// Rendered text.
    pub(super) text: String,
    /// Name of the speaker, empty if unknown, if the piece is a message of the history.
    pub(super) speaker: Option<String>,
    /// Tokens of the piece; 0 until they are counted, which happens only if the prompt is too long.
    pub(super) tokens: usize,
    /// True if the piece was dropped because the prompt is too long.
    pub(super) is_dropped: bool,
}

/// Renders the blocks of a prompt one after the other.
pub(super) struct SkeinRenderer<'a> {
    pub(super) skein: &'a Skein,
    /// Renders the templates.
    pub(super) assembly: &'a mut Assembly,
    /// Tags that are escaped in the texts.
    pub(super) boundaries: &'a BoundaryTags,
    pub(super) active_lore: &'a ActiveLore,
    /// Messages of the history, the oldest first.
    pub(super) lines: &'a [ChatLine],
    /// Parts of the author's note that are not printed yet.
    pub(super) note: AuthorNote,
    /// Names of unknown protocols; their tags are omitted.
    pub(super) unknown_protocols: &'a [String],
    /// Instructions for the protocols.
    pub(super) protocol_instructions: String,
    /// True if the instructions are added even if the prompt has no slot for them.
    pub(super) adds_instructions: bool,
    /// Pieces so far, in the order of the prompt.
    pub(super) pieces: Vec<PromptPiece>,
    pub(super) warnings: Vec<String>,
}

impl<'a> SkeinRenderer<'a> {
    /// Creates a renderer without messages, author's note or protocols; the caller sets those fields.
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

    /// Renders all pieces, in the order of the prompt.
    pub(super) fn render_pieces(&mut self) -> Result<()> {
        let mut groups = self.skein.group_by_target(self.active_lore);
        let block_count = self.skein.blocks.len();
        // The tags of protocols, and instructions without a slot, go before the first message.
        let protocols_index = self
            .skein
            .blocks
            .iter()
            .position(|block| block.role.is_some() || block.body == BlockBody::Slot(SkeinSlot::History));
        let has_protocols_slot =
            self.skein.blocks.iter().any(|block| block.body == BlockBody::Slot(SkeinSlot::Protocols));
        let mut has_pushed_history = false;
        for index in 0..=block_count {
            if index == protocols_index.unwrap_or(block_count) {
                self.push_protocols(has_protocols_slot);
            }
            let Some(block) = self.skein.blocks.get(index) else { break };
            match &block.body {
                // World info without a slot is printed where its block is.
                _ if block.lore.is_some() => {
                    for lore_index in groups.remove(&LoreTarget::Block(index)).unwrap_or_default() {
                        self.push_lore(lore_index)?;
                    }
                }
                BlockBody::Slot(SkeinSlot::Lore(position)) => {
                    // The author's note is between the world info of `NoteTop` and that of `NoteBottom`.
                    if *position == EntryPosition::NoteBottom {
                        let bottom_slot_text = std::mem::take(&mut self.note.bottom_slot_text);
                        self.push_note(block, &bottom_slot_text);
                    }
                    let target = LoreTarget::Slot(super::lore::lore_variable(*position));
                    for lore_index in groups.remove(&target).unwrap_or_default() {
                        self.push_lore(lore_index)?;
                    }
                    if *position == EntryPosition::NoteTop {
                        let top_slot_text = std::mem::take(&mut self.note.top_slot_text);
                        self.push_note(block, &top_slot_text);
                    }
                }
                BlockBody::Slot(SkeinSlot::Outlet(name)) => {
                    let entries =
                        self.active_lore.activation.slots.outlets.get(name).cloned().unwrap_or_default();
                    for entry_index in entries {
                        self.push_lore(self.active_lore.blocks[entry_index])?;
                    }
                }
                BlockBody::Slot(SkeinSlot::Protocols) => {
                    let text = self.protocol_instructions.clone();
                    self.push_piece(PartKey::Protocols, block, text);
                }
                BlockBody::Slot(SkeinSlot::History) if !has_pushed_history => {
                    has_pushed_history = true;
                    self.push_history(block)?;
                }
                // The history is printed only once.
                BlockBody::Slot(SkeinSlot::History) => {}
                BlockBody::Text(_) | BlockBody::Data(_) => {
                    let text = self.render_element(index)?;
                    let part = PartKey::Block { number: index + 1, tag: block.tag.clone() };
                    if !text.is_empty() {
                        self.push_piece(part, block, text);
                    }
                }
            }
        }
        if !has_pushed_history && !self.active_lore.activation.slots.depth.is_empty() {
            // Without a history, the entries among the messages go to the end, and so does the note below.
            for slot in self.active_lore.activation.slots.depth.clone() {
                for &entry_index in &slot.entries {
                    self.push_lore(self.active_lore.blocks[entry_index])?;
                }
            }
        }
        if !has_pushed_history {
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

    /// Renders the world info that templates print through variables, by variable.
    pub(super) fn render_variables(&mut self) -> Result<Map<String, Value>> {
        let mut variables = Map::new();
        for (target, blocks) in self.skein.group_by_target(self.active_lore) {
            if let LoreTarget::Variable(name) = target {
                let texts =
                    blocks.iter().map(|&index| self.render_element(index)).collect::<Result<Vec<_>>>()?;
                let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
                variables.insert(name.to_owned(), texts.join("\n\n").into());
            }
        }
        Ok(variables)
    }

    /// Adds a piece with the properties of a block.
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

    /// Adds the world info of the block with this index, unless it is blank.
    fn push_lore(&mut self, index: usize) -> Result<()> {
        let block = &self.skein.blocks[index];
        let text = self.render_element(index)?;
        if !text.is_empty() {
            self.push_piece(self.lore_part(index), block, text);
        }
        Ok(())
    }

    /// Returns the identity of a block with world info.
    fn lore_part(&self, index: usize) -> PartKey {
        let block = &self.skein.blocks[index];
        let entry = block.lore.as_ref();
        let title = entry.map(|entry| entry.title.clone()).filter(|title| !title.is_empty());
        PartKey::Lore {
            number: index + 1,
            title: title.unwrap_or_else(|| block.tag.clone()),
            order: entry.map_or(0, |entry| entry.order),
        }
    }

    /// Adds the tags of the protocols that no block names. Also adds the instructions, if `adds_instructions`
    /// is set and they have no slot.
    fn push_protocols(&mut self, has_slot: bool) {
        let has_no_block = |name: &&String| {
            !self.skein.blocks.iter().any(|block| {
                block.tag == "use_protocol"
                    && matches!(&block.body, BlockBody::Text(id) if id.trim() == name.trim())
            })
        };
        let tags: Vec<String> = self
            .skein
            .use_protocol
            .iter()
            .filter(has_no_block)
            .filter(|name| !self.unknown_protocols.iter().any(|unknown| unknown == name.trim()))
            .map(|name| format!("<use_protocol>{}</use_protocol>", escape_attribute(name.trim())))
            .collect();
        let block = SkeinBlock::new("use_protocol", BlockBody::Text(String::new()));
        if !tags.is_empty() {
            self.push_piece(PartKey::Protocols, &block, tags.join("\n"));
        }
        if self.adds_instructions && !has_slot {
            let text = self.protocol_instructions.clone();
            self.push_piece(PartKey::Protocols, &block, text);
        }
    }

    /// Adds the history, with world info and the author's note among the messages.
    fn push_history(&mut self, block: &SkeinBlock) -> Result<()> {
        let newest_user_index = self.lines.iter().rposition(|line| line.role == "user");
        let line_count = self.lines.len();
        let depth_slots = self.active_lore.activation.slots.depth.clone();
        let line_index_of = |slot: &DepthSlot| {
            let depth = slot.depth as usize;
            if slot.from_start { depth.min(line_count) } else { line_count.saturating_sub(depth) }
        };
        let note_index = line_count.saturating_sub(self.note.depth);
        for index in 0..=line_count {
            if index == note_index {
                self.push_note_message();
            }
            for slot in depth_slots.iter().filter(|slot| line_index_of(slot) == index) {
                for &entry_index in &slot.entries {
                    self.push_lore(self.active_lore.blocks[entry_index])?;
                    self.set_role(slot.role);
                }
            }
            let Some(line) = self.lines.get(index) else { break };
            self.pieces.push(PromptPiece {
                part: PartKey::Message { index, role: line.role.clone() },
                priority: block.priority.unwrap_or_default(),
                is_required: newest_user_index == Some(index),
                role: Some(if line.role.is_empty() { "user".to_owned() } else { line.role.clone() }),
                text: line.content.clone(),
                speaker: Some(line.name.clone()),
                tokens: 0,
                is_dropped: false,
            });
        }
        Ok(())
    }

    /// Adds a part of the author's note, with the properties of `block`, unless the text is empty.
    fn push_note(&mut self, block: &SkeinBlock, text: &str) {
        if !text.is_empty() {
            let text = self.boundaries.escape(text).into_owned();
            self.push_piece(PartKey::Note, block, text);
        }
    }

    /// Adds the part of the author's note that is a separate message.
    fn push_note_message(&mut self) {
        let text = std::mem::take(&mut self.note.message_text);
        let role = Some(self.note.role);
        self.push_note(
            &SkeinBlock { role, ..SkeinBlock::new("block", BlockBody::Text(String::new())) },
            &text,
        );
    }

    /// Gives this role to the last piece, which makes it a message, if it is world info without a role.
    fn set_role(&mut self, role: MessageRole) {
        if let Some(piece) = self.pieces.last_mut().filter(|piece| matches!(piece.part, PartKey::Lore { .. }))
        {
            piece.role.get_or_insert_with(|| role.name().to_owned());
        }
    }

    /// Renders the element of the block with this index; empty if its text is blank.
    fn render_element(&mut self, index: usize) -> Result<String> {
        let block = &self.skein.blocks[index];
        let template_name = format!("block {} (`{}`)", index + 1, block.tag);
        let (body, is_yaml) = match &block.body {
            BlockBody::Slot(_) => return Ok(String::new()),
            BlockBody::Text(text) if block.tag == "use_protocol" => {
                if self.unknown_protocols.iter().any(|name| name == text.trim()) {
                    return Ok(String::new());
                }
                return Ok(format!("<use_protocol>{}</use_protocol>", escape_attribute(text.trim())));
            }
            BlockBody::Text(text) => {
                let text = self.render_template(&template_name, text)?;
                let text = text.trim_matches(['\n', '\r']);
                if text.trim().is_empty() {
                    return Ok(String::new());
                }
                (self.boundaries.escape(text).into_owned(), false)
            }
            BlockBody::Data(value) => {
                let mut value = self.render_data(&template_name, value)?;
                // The adjustments to the reply structure are not for the model.
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
            attributes +=
                &format!(" {key}=\"{}\"", escape_attribute(&self.render_template(&template_name, value)?));
        }
        if let Some(format) = block.format {
            body = format!("<format type=\"{}\">\n{body}</format>\n", format.name());
        }
        // YAML in lore entries, and in tags without a predefined meaning, is indented (F-014).
        let is_indented = block.tag == ENTRY_TAG
            || !TOP_LEVEL_TAGS.contains(&&*block.tag) && !META_TAGS.contains(&&*block.tag);
        if is_yaml && is_indented {
            body = yaml::indent_lines(&body, 2);
        }
        let mut out = match &*block.tag {
            // A `block` prints no element, only its body.
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

    /// Renders the templates in the texts and keys of a value, and escapes the tags of block boundaries in
    /// each.
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
                    // If the rendered key is already taken, the key stays as written, so that no value is
                    // lost.
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

/// Returns the rendered text as a number if its source is a single expression and the number prints as the
/// same text: `hp: "{{ state.hp }}"` gives `hp: 7`, but `007` stays text.
fn parse_number(source: &str, text: &str) -> Option<Number> {
    let inner = source.strip_prefix("{{")?.strip_suffix("}}")?;
    if inner.contains("{{") || inner.contains("}}") {
        return None;
    }
    let integer = text.parse::<i64>().ok().map(Number::from);
    let number = integer.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))?;
    (number.to_string() == text).then_some(number)
}
