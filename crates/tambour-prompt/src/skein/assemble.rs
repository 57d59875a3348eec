//! Builds prompts from imported cards, books and presets. Macros become templates (F-030); all other text is
//! literal.

use serde_json::{Map, Value, json};

use super::super::card::normal::{self, normalise};
use super::super::card::{Imported, Item, Preset};
use super::super::lore::{Entry, Position, Role, ScanSettings};
use super::super::macros;
use super::{Block, Body, Skein, Slot};

/// Builds a complete prompt from a card: instruction, world info before, character, world info after,
/// examples, history, final instruction. The fields of the card are in the variable `char`.
#[must_use]
pub fn from_card(imported: &Imported) -> Skein {
    let mut skein = from_book(imported);
    let lore = std::mem::take(&mut skein.blocks);
    skein.metadata.insert("char".into(), person(imported));
    skein.metadata.insert("original".into(), json!({ "main_prompt": ORIGINAL }));
    let text = |text: &str| Body::Text(text.to_owned());
    skein.blocks = vec![
        Block::new("system_instruction", text(&replaced("main_prompt", ORIGINAL))),
        Block::slot(Slot::Lore(Position::BeforeChar)),
        Block::new(
            "character_card",
            Body::Data(json!({
                "name": "{{ char }}",
                "description": "{{ char.description }}",
                "personality": "{{ char.personality }}",
                "scenario": "{{ char.scenario }}",
            })),
        ),
        Block::new("user_persona", text("{{ user.persona }}")),
        Block::slot(Slot::Lore(Position::Personality)),
        Block::slot(Slot::Lore(Position::Scenario)),
        Block::slot(Slot::Lore(Position::AfterChar)),
        Block::slot(Slot::Lore(Position::ExamplesBefore)),
        Block::new("example_dialogues", text("{{ char.examples | format_examples }}")),
        Block::slot(Slot::Lore(Position::ExamplesAfter)),
        Block::slot(Slot::Lore(Position::NoteTop)),
        Block::slot(Slot::Lore(Position::NoteBottom)),
        Block::slot(Slot::History),
        Block { role: Some(Role::System), ..Block::new("block", text("{{ char.jailbreak }}")) },
    ];
    skein.blocks.extend(depth_prompt(imported));
    skein.blocks.extend(lore);
    skein
}

/// Instruction for a card without one of its own; a card with one refers to it as `{{original}}`.
const ORIGINAL: &str =
    "Write the next reply of {{ char }} in a fictional chat between {{ char }} and {{ user }}.";

/// Returns a template that prints a text of the card, or `own` if the card has none.
fn replaced(field: &str, own: &str) -> String {
    // The text is rendered only once, because it may set variables.
    format!(
        "{{% with _own = char.{field} %}}{{% if _own %}}{{{{ _own }}}}{{% else %}}{own}{{% endif %}}{{% endwith %}}"
    )
}

/// Returns the fields of a card under the names that templates use (F-020).
fn person(imported: &Imported) -> Value {
    let Some(card) = &imported.card else { return json!({"name": imported.name}) };
    let name = if card.nickname.trim().is_empty() { &card.name } else { &card.nickname };
    let greetings = std::iter::once(&card.first_mes).chain(&card.alternate_greetings);
    let greetings: Vec<String> = greetings.map(|text| migrate(text)).collect();
    let mut person = Map::new();
    let fields = [
        ("name", json!(name)),
        ("description", migrate(&card.description).into()),
        ("personality", migrate(&card.personality).into()),
        ("scenario", migrate(&card.scenario).into()),
        ("greetings", json!(greetings)),
        ("examples", migrate(&card.mes_example).into()),
        ("examples_raw", migrate(&card.mes_example).into()),
        ("main_prompt", migrate(&card.system_prompt).into()),
        ("jailbreak", migrate(&card.post_history_instructions).into()),
        ("depth_prompt", migrate(card.depth_prompt.as_ref().map_or("", |note| &note.prompt)).into()),
        ("creator_notes", migrate(&card.creator_notes).into()),
        ("version", json!(card.character_version)),
        ("tags", json!(card.tags)),
    ];
    person.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    person.into()
}

/// Returns the depth prompt of a card as world info that is always active.
fn depth_prompt(imported: &Imported) -> Option<Block> {
    let note = imported.card.as_ref()?.depth_prompt.as_ref()?;
    let lore = Entry {
        id: "depth_prompt".to_owned(),
        title: "depth prompt".to_owned(),
        constant: true,
        position: Position::AtDepth,
        depth: note.depth,
        role: note.role,
        ..Entry::default()
    };
    Some(Block { lore: Some(lore), ..Block::new("block", Body::Text("{{ char.depth_prompt }}".to_owned())) })
}

/// Builds a prompt from a book: each entry becomes a block that is present while the entry is active.
#[must_use]
pub fn from_book(imported: &Imported) -> Skein {
    let blocks = imported.entries.iter().map(|entry| {
        let normal = normalise(&entry.title, &entry.content);
        let body = match &normal.body {
            normal::Body::Data(value) => Body::Data(migrated(value)),
            normal::Body::Text(text) => Body::Text(migrate(text)),
        };
        let attributes = normal.attributes.iter().map(|(key, value)| (key.clone(), migrate(value)));
        let lore = Entry { content: String::new(), ..entry.clone() };
        Block { attributes: attributes.collect(), lore: Some(lore), ..Block::new(normal.tag, body) }
    });
    let scan = imported.book.as_ref().map(|book| {
        let usual = ScanSettings::default();
        ScanSettings {
            scan_depth: book.scan_depth.unwrap_or(usual.scan_depth),
            budget: book.token_budget.filter(|budget| *budget > 0).map(|budget| budget as usize),
            recursive: book.recursive_scanning.unwrap_or(usual.recursive),
            ..usual
        }
    });
    Skein {
        blocks: blocks.collect(),
        scan: scan.filter(|scan| *scan != ScanSettings::default()),
        ..Skein::default()
    }
}

/// Builds a prompt from a preset. [`Skein::take`] adds a card and its book.
#[must_use]
pub fn from_preset(imported: &Imported) -> Skein {
    let mut skein = Skein::default();
    let Some(preset) = &imported.preset else { return skein };
    let reply = preset.max_tokens.unwrap_or(0);
    skein.max_context =
        preset.max_context.map(|max| max.saturating_sub(reply) as usize).filter(|max| *max > 0);
    let behind = preset.items.iter().position(|item| item.id == "chatHistory").unwrap_or(usize::MAX);
    for (at, item) in preset.items.iter().enumerate() {
        match place(&item.id, preset) {
            Some(blocks) => skein.blocks.extend(blocks),
            None if item.marker || item.text.trim().is_empty() => {}
            None => skein.blocks.push(part(item, at > behind)),
        }
    }
    // Texts that `{{original}}` refers to in the card.
    let originals =
        preset.items.iter().filter_map(|item| Some((card_field(&item.id)?, migrate(&item.text).into())));
    let originals: Map<String, Value> = originals.map(|(field, text)| (field.to_owned(), text)).collect();
    if !originals.is_empty() {
        skein.metadata.insert("original".into(), originals.into());
    }
    if !preset.new_example.trim().is_empty() {
        skein.metadata.insert("config".into(), json!({ "example_separator": preset.new_example }));
    }
    skein
}

/// Returns the blocks for a placeholder of a preset; `None` if the id is no placeholder.
fn place(id: &str, preset: &Preset) -> Option<Vec<Block>> {
    let text = |tag: &str, text: &str| vec![Block::new(tag, Body::Text(text.to_owned()))];
    Some(match id {
        "chatHistory" => {
            let begin = Block {
                role: Some(Role::System),
                ..Block::new("block", Body::Text(migrate(&preset.new_chat)))
            };
            let begin = (!preset.new_chat.trim().is_empty()).then_some(begin);
            begin.into_iter().chain([Block::slot(Slot::History)]).collect()
        }
        "worldInfoBefore" => vec![Block::slot(Slot::Lore(Position::BeforeChar))],
        "worldInfoAfter" => vec![Block::slot(Slot::Lore(Position::AfterChar))],
        "charDescription" => text("character_card", "{{ char.description }}"),
        "charPersonality" => text("personality", &within(&preset.personality_format, "personality")),
        "scenario" => text("scenario", &within(&preset.scenario_format, "scenario")),
        "personaDescription" => text("user_persona", "{{ user.persona }}"),
        "dialogueExamples" => vec![
            Block::slot(Slot::Lore(Position::ExamplesBefore)),
            Block::new("example_dialogues", Body::Text("{{ char.examples | format_examples }}".to_owned())),
            Block::slot(Slot::Lore(Position::ExamplesAfter)),
        ],
        _ => return None,
    })
}

/// Returns a template for a field of a card within the text that a preset puts around it; empty if the card
/// has none.
fn within(format: &str, field: &str) -> String {
    let own = format!("{{{{ char.{field} }}}}");
    let format = migrate(format.trim());
    if format.is_empty() || format == own {
        return own;
    }
    // The field is rendered only once, because it may set variables.
    let inside = format.replace(&own, "{{ _own }}");
    format!("{{% with _own = char.{field} %}}{{% if _own %}}{inside}{{% endif %}}{{% endwith %}}")
}

/// Returns the field of a card that replaces a part of the preset.
fn card_field(id: &str) -> Option<&'static str> {
    match id {
        "main" => Some("main_prompt"),
        "jailbreak" => Some("jailbreak"),
        _ => None,
    }
}

/// Returns the block for a part with a text of its own.
fn part(item: &Item, behind: bool) -> Block {
    let own = migrate(&item.text);
    let text = match card_field(&item.id) {
        Some(field) => replaced(field, &own),
        None => own,
    };
    let block = Block::new("block", Body::Text(text));
    match item.depth {
        Some(depth) => {
            let lore = Entry {
                id: format!("preset {}", item.id),
                title: item.name.clone(),
                constant: true,
                position: Position::AtDepth,
                depth,
                role: item.role,
                ..Entry::default()
            };
            Block { lore: Some(lore), ..block }
        }
        None if item.id == "main" => Block { tag: "system_instruction".to_owned(), ..block },
        // System texts before the history are part of the system message.
        None if item.role == Role::System && !behind => Block { tag: "instruction".to_owned(), ..block },
        None => Block { role: Some(item.role), ..block },
    }
}

/// Migrates the macros of a text to a template. Existing text that looks like a template stays literal.
fn migrate(text: &str) -> String {
    macros::migrate_foreign(text).text
}

/// Migrates the macros in all texts of a value.
fn migrated(value: &Value) -> Value {
    match value {
        Value::String(text) => migrate(text).into(),
        Value::Array(items) => items.iter().map(migrated).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (migrate(key), migrated(value))).collect(),
        other => other.clone(),
    }
}
