//! Renders the blocks of a prompt to pieces, in order.

use serde_json::{Map, Number, Value};

use tambour::error::Result;
use tambour::yaml;

use super::super::card::normal::ENTRY;
use super::super::jinja::Assembly;
use super::super::lore::{AtDepth, Line, Position, Role};
use super::super::name::{META, TAGS};
use super::cut::What;
use super::escape::{Boundaries, attribute};
use super::expected::KEY;
use super::lore::{Active, Target};
use super::note::Note;
use super::{Block, Body, Format, Priority, Skein, Slot};

/// A rendered part of a prompt.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) what: What,
    pub(super) priority: Priority,
    /// Never dropped.
    pub(super) keep: bool,
    /// Role, if the piece is a message; otherwise it belongs to the system message.
    pub(super) role: Option<String>,
    /// Rendered text.
    pub(super) text: String,
    /// Name of the speaker, if the piece is a message of the history.
    pub(super) line: Option<String>,
    pub(super) tokens: usize,
    pub(super) dropped: bool,
}

/// Renders the blocks of a prompt one after the other.
pub(super) struct Maker<'a> {
    pub(super) skein: &'a Skein,
    pub(super) assembly: &'a mut Assembly,
    pub(super) boundaries: &'a Boundaries,
    pub(super) active: &'a Active,
    pub(super) lines: &'a [Line],
    pub(super) note: Note,
    /// Names of unknown protocols, which are omitted.
    pub(super) unknown: &'a [String],
    /// Instructions for the protocols.
    pub(super) protocols: String,
    /// True if the instructions are added even without a slot for them.
    pub(super) instructions: bool,
    pub(super) pieces: Vec<Piece>,
    pub(super) warnings: Vec<String>,
}

impl<'a> Maker<'a> {
    /// Creates a renderer without messages and protocols.
    pub(super) fn new(
        skein: &'a Skein,
        assembly: &'a mut Assembly,
        boundaries: &'a Boundaries,
        active: &'a Active,
    ) -> Maker<'a> {
        let (lines, unknown, protocols) = (&[][..], &[][..], String::new());
        let (pieces, warnings) = (Vec::new(), Vec::new());
        let (note, instructions) = (Note::default(), false);
        Maker {
            skein,
            assembly,
            boundaries,
            active,
            lines,
            note,
            unknown,
            protocols,
            instructions,
            pieces,
            warnings,
        }
    }

    /// Renders all pieces.
    pub(super) fn run(&mut self) -> Result<()> {
        let mut placed = self.skein.placed(self.active);
        let at_end = self.skein.blocks.len();
        let protocols_at = self
            .skein
            .blocks
            .iter()
            .position(|block| block.role.is_some() || block.body == Body::Slot(Slot::History));
        let slot = self.skein.blocks.iter().any(|block| block.body == Body::Slot(Slot::Protocols));
        let mut history = false;
        for at in 0..=at_end {
            if at == protocols_at.unwrap_or(at_end) {
                self.named_protocols(slot);
            }
            let Some(block) = self.skein.blocks.get(at) else { break };
            match &block.body {
                _ if block.lore.is_some() => {
                    for at in placed.remove(&Target::Here(at)).unwrap_or_default() {
                        self.lore(at)?;
                    }
                }
                Body::Slot(Slot::Lore(position)) => {
                    if *position == Position::NoteBottom {
                        let below = std::mem::take(&mut self.note.below);
                        self.note(block, &below);
                    }
                    for at in placed.remove(&Target::Slot(super::lore::name(*position))).unwrap_or_default() {
                        self.lore(at)?;
                    }
                    if *position == Position::NoteTop {
                        let above = std::mem::take(&mut self.note.above);
                        self.note(block, &above);
                    }
                }
                Body::Slot(Slot::Outlet(name)) => {
                    let entries = self.active.found.slots.outlets.get(name).cloned().unwrap_or_default();
                    for entry in entries {
                        self.lore(self.active.blocks[entry])?;
                    }
                }
                Body::Slot(Slot::Protocols) => {
                    let text = self.protocols.clone();
                    self.push(What::Protocols, block, text);
                }
                Body::Slot(Slot::History) if !history => {
                    history = true;
                    self.history(block)?;
                }
                Body::Slot(Slot::History) => {}
                Body::Text(_) | Body::Data(_) => {
                    let text = self.element(at)?;
                    let what = What::Block { number: at + 1, tag: block.tag.clone() };
                    if !text.is_empty() {
                        self.push(what, block, text);
                    }
                }
            }
        }
        if !history && !self.active.found.slots.depth.is_empty() {
            // Without messages, the entries go to the end.
            for place in self.active.found.slots.depth.clone() {
                place.entries.iter().try_for_each(|&entry| self.lore(self.active.blocks[entry]))?;
            }
        }
        if !history {
            self.note_among();
        }
        for (name, entries) in &self.active.found.slots.outlets {
            let slot = Body::Slot(Slot::Outlet(name.clone()));
            if !self.skein.blocks.iter().any(|block| block.body == slot) && !self.skein.mentions("outlet(") {
                self.warnings.push(format!(
                    "{} active entries are for the outlet `{name}`, which the prompt does not print",
                    entries.len()
                ));
            }
        }
        Ok(())
    }

    /// Renders the variables of world info that templates name.
    pub(super) fn variables(&mut self) -> Result<Map<String, Value>> {
        let mut variables = Map::new();
        for (target, blocks) in self.skein.placed(self.active) {
            if let Target::Variable(name) = target {
                let texts = blocks.iter().map(|&at| self.element(at)).collect::<Result<Vec<_>>>()?;
                let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
                variables.insert(name.to_owned(), texts.join("\n\n").into());
            }
        }
        Ok(variables)
    }

    fn push(&mut self, what: What, block: &Block, text: String) {
        self.pieces.push(Piece {
            keep: block.tag == "use_protocol",
            what,
            priority: block.priority.unwrap_or_default(),
            role: block.role.map(|role| role.name().to_owned()),
            text,
            line: None,
            tokens: 0,
            dropped: false,
        });
    }

    /// Adds the world info of a block.
    fn lore(&mut self, at: usize) -> Result<()> {
        let block = &self.skein.blocks[at];
        let text = self.element(at)?;
        if !text.is_empty() {
            self.push(self.entry(at), block, text);
        }
        Ok(())
    }

    fn entry(&self, at: usize) -> What {
        let block = &self.skein.blocks[at];
        let entry = block.lore.as_ref();
        let title = entry.map(|entry| entry.title.clone()).filter(|title| !title.is_empty());
        What::Lore {
            number: at + 1,
            title: title.unwrap_or_else(|| block.tag.clone()),
            order: entry.map_or(0, |entry| entry.order),
        }
    }

    /// Adds tags and instructions of the protocols that no block names.
    fn named_protocols(&mut self, slot: bool) {
        let own = |name: &&String| {
            !self.skein.blocks.iter().any(|block| {
                block.tag == "use_protocol"
                    && matches!(&block.body, Body::Text(id) if id.trim() == name.trim())
            })
        };
        let tags: Vec<String> = self
            .skein
            .use_protocol
            .iter()
            .filter(own)
            .filter(|name| !self.unknown.iter().any(|unknown| unknown == name.trim()))
            .map(|name| format!("<use_protocol>{}</use_protocol>", attribute(name.trim())))
            .collect();
        let block = Block::new("use_protocol", Body::Text(String::new()));
        if !tags.is_empty() {
            self.push(What::Protocols, &block, tags.join("\n"));
        }
        if self.instructions && !slot {
            let text = self.protocols.clone();
            self.push(What::Protocols, &block, text);
        }
    }

    /// Adds the history, with world info and the author's note among the messages.
    fn history(&mut self, block: &Block) -> Result<()> {
        let newest = self.lines.iter().rposition(|line| line.role == "user");
        let count = self.lines.len();
        let places = self.active.found.slots.depth.clone();
        let here = |place: &AtDepth| {
            let depth = place.depth as usize;
            if place.from_start { depth.min(count) } else { count.saturating_sub(depth) }
        };
        let note = count.saturating_sub(self.note.depth);
        for index in 0..=count {
            if index == note {
                self.note_among();
            }
            for place in places.iter().filter(|place| here(place) == index) {
                for &entry in &place.entries {
                    let at = self.active.blocks[entry];
                    self.lore(at)?;
                    self.said_by(place.role);
                }
            }
            let Some(line) = self.lines.get(index) else { break };
            self.pieces.push(Piece {
                what: What::Message { index, role: line.role.clone() },
                priority: block.priority.unwrap_or_default(),
                keep: newest == Some(index),
                role: Some(if line.role.is_empty() { "user".to_owned() } else { line.role.clone() }),
                text: line.content.clone(),
                line: Some(line.name.clone()),
                tokens: 0,
                dropped: false,
            });
        }
        Ok(())
    }

    /// Adds a part of the author's note, with the properties of `block`.
    fn note(&mut self, block: &Block, text: &str) {
        if !text.is_empty() {
            let text = self.boundaries.escape(text).into_owned();
            self.push(What::Note, block, text);
        }
    }

    /// Adds the author's note as a message of its own.
    fn note_among(&mut self) {
        let text = std::mem::take(&mut self.note.among);
        let role = Some(self.note.role);
        self.note(&Block { role, ..Block::new("block", Body::Text(String::new())) }, &text);
    }

    /// Makes the last piece a message, if it is world info.
    fn said_by(&mut self, role: Role) {
        if let Some(piece) = self.pieces.last_mut().filter(|piece| matches!(piece.what, What::Lore { .. })) {
            piece.role.get_or_insert_with(|| role.name().to_owned());
        }
    }

    /// Renders the element of a block; empty if its text is blank.
    fn element(&mut self, at: usize) -> Result<String> {
        let block = &self.skein.blocks[at];
        let name = format!("block {} (`{}`)", at + 1, block.tag);
        let (body, yaml) = match &block.body {
            Body::Slot(_) => return Ok(String::new()),
            Body::Text(text) if block.tag == "use_protocol" => {
                if self.unknown.iter().any(|name| name == text.trim()) {
                    return Ok(String::new());
                }
                return Ok(format!("<use_protocol>{}</use_protocol>", attribute(text.trim())));
            }
            Body::Text(text) => {
                let text = self.template(&name, text)?;
                let text = text.trim_matches(['\n', '\r']);
                if text.trim().is_empty() {
                    return Ok(String::new());
                }
                (self.boundaries.escape(text).into_owned(), false)
            }
            Body::Data(value) => {
                let mut value = self.data(&name, value)?;
                if let (Value::Object(map), "system_instruction") = (&mut value, &*block.tag) {
                    map.shift_remove(KEY);
                }
                match block.format {
                    Some(Format::Json) => (serde_json::to_string_pretty(&value).unwrap_or_default(), false),
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
            attributes += &format!(" {key}=\"{}\"", attribute(&self.template(&name, value)?));
        }
        if let Some(format) = block.format {
            body = format!("<format type=\"{}\">\n{body}</format>\n", format.name());
        }
        // YAML in tags without a predefined meaning is indented (F-014).
        let entry = block.tag == ENTRY || !TAGS.contains(&&*block.tag) && !META.contains(&&*block.tag);
        if yaml && entry {
            body = yaml::indented(&body, 2);
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
    fn template(&mut self, name: &str, source: &str) -> Result<String> {
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
    fn data(&mut self, name: &str, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::String(source) => {
                let text = self.template(name, source)?;
                match number(source, &text) {
                    Some(number) => number.into(),
                    None => self.boundaries.escape(&text).into_owned().into(),
                }
            }
            Value::Array(items) => items.iter().map(|item| self.data(name, item)).collect::<Result<_>>()?,
            Value::Object(map) => {
                let mut out = Map::new();
                for (key, value) in map {
                    let rendered = self.template(name, key)?;
                    let rendered = self.boundaries.escape(&rendered).into_owned();
                    let key = if out.contains_key(&rendered) { key.clone() } else { rendered };
                    let value = self.data(name, value)?;
                    out.insert(key, value);
                }
                out.into()
            }
            other => other.clone(),
        })
    }
}

/// Returns the value as a number if the source is a single expression: `hp: "{{ state.hp }}"` gives `hp: 7`.
fn number(source: &str, text: &str) -> Option<Number> {
    let inner = source.strip_prefix("{{")?.strip_suffix("}}")?;
    if inner.contains("{{") || inner.contains("}}") {
        return None;
    }
    let whole = text.parse::<i64>().ok().map(Number::from);
    let number = whole.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))?;
    (number.to_string() == text).then_some(number)
}
