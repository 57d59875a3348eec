//! Builds prompts from imported cards, books and presets. Macros become templates (F-030); all other text is
//! literal.

use serde_json::{Map, Value, json};

use super::super::card::normalize::{self, normalize_entry};
use super::super::card::{ImportedFile, ImportedFileKind, PresetItem, PromptPreset};
use super::super::lore::{EntryPosition, LoreEntry, MessageRole, ScanSettings};
use super::super::macros;
use super::{BlockBody, Skein, SkeinBlock, SkeinSlot};

/// Builds a prompt from an imported file of any kind.
#[must_use]
pub fn from_import(imported_file: &ImportedFile) -> Skein {
    match imported_file.kind {
        ImportedFileKind::Card => from_card(imported_file),
        ImportedFileKind::Preset => from_preset(imported_file),
        ImportedFileKind::Lorebook => from_book(imported_file),
    }
}

/// Builds a complete prompt from a card: instruction, world info before, character, world info after,
/// examples, history, final instruction. The fields of the card are in the variable `char`.
#[must_use]
pub fn from_card(imported_file: &ImportedFile) -> Skein {
    let mut skein = from_book(imported_file);
    let lore_blocks = std::mem::take(&mut skein.blocks);
    skein.metadata.insert("char".into(), character_fields(imported_file));
    // In a card, `{{original}}` stands for the default text that the text of the card replaces.
    skein.metadata.insert("original".into(), json!({ "main_prompt": DEFAULT_INSTRUCTION }));
    let text_body = |text: &str| BlockBody::Text(text.to_owned());
    skein.blocks = vec![
        SkeinBlock::new("system_instruction", text_body(&card_text_or("main_prompt", DEFAULT_INSTRUCTION))),
        SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::BeforeChar)),
        SkeinBlock::new(
            "character_card",
            BlockBody::Data(json!({
                "name": "{{ char }}",
                "description": "{{ char.description }}",
                "personality": "{{ char.personality }}",
                "scenario": "{{ char.scenario }}",
            })),
        ),
        SkeinBlock::new("user_persona", text_body("{{ user.persona }}")),
        SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::Personality)),
        SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::Scenario)),
        SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::AfterChar)),
        SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::ExamplesBefore)),
        SkeinBlock::new("example_dialogues", text_body("{{ char.examples | format_examples }}")),
        SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::ExamplesAfter)),
        SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::NoteTop)),
        SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::NoteBottom)),
        SkeinBlock::slot(SkeinSlot::History),
        SkeinBlock {
            role: Some(MessageRole::System),
            ..SkeinBlock::new("block", text_body("{{ char.jailbreak }}"))
        },
    ];
    skein.blocks.extend(depth_prompt_block(imported_file));
    skein.blocks.extend(lore_blocks);
    skein
}

/// Default instruction, for a card that has none. In the instruction of a card, `{{original}}` stands for it.
const DEFAULT_INSTRUCTION: &str =
    "Write the next reply of {{ char }} in a fictional chat between {{ char }} and {{ user }}.";

/// Returns a template that prints a text of the card, or `fallback` if the card has none.
fn card_text_or(field: &str, fallback: &str) -> String {
    // The text is rendered only once, because it may set variables.
    format!(
        "{{% with _own = char.{field} %}}{{% if _own %}}{{{{ _own }}}}{{% else %}}{fallback}{{% endif %}}{{% endwith %}}"
    )
}

/// Returns the fields of a card under the names that templates use (F-020).
fn character_fields(imported_file: &ImportedFile) -> Value {
    let Some(card) = &imported_file.card else { return json!({"name": imported_file.name}) };
    let name = if card.nickname.trim().is_empty() { &card.name } else { &card.nickname };
    let greetings = std::iter::once(&card.first_mes).chain(&card.alternate_greetings);
    let greetings: Vec<String> = greetings.map(|text| migrate_text(text)).collect();
    let mut person = Map::new();
    let fields = [
        ("name", json!(name)),
        ("description", migrate_text(&card.description).into()),
        ("personality", migrate_text(&card.personality).into()),
        ("scenario", migrate_text(&card.scenario).into()),
        ("greetings", json!(greetings)),
        ("examples", migrate_text(&card.mes_example).into()),
        ("examples_raw", migrate_text(&card.mes_example).into()),
        ("main_prompt", migrate_text(&card.system_prompt).into()),
        ("jailbreak", migrate_text(&card.post_history_instructions).into()),
        (
            "depth_prompt",
            migrate_text(card.depth_prompt.as_ref().map_or("", |depth_prompt| &depth_prompt.prompt)).into(),
        ),
        ("creator_notes", migrate_text(&card.creator_notes).into()),
        ("version", json!(card.character_version)),
        ("tags", json!(card.tags)),
    ];
    person.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    person.into()
}

/// Returns the depth prompt of a card as world info that is always active.
fn depth_prompt_block(imported_file: &ImportedFile) -> Option<SkeinBlock> {
    let depth_prompt = imported_file.card.as_ref()?.depth_prompt.as_ref()?;
    let lore = LoreEntry {
        id: "depth_prompt".to_owned(),
        title: "depth prompt".to_owned(),
        constant: true,
        position: EntryPosition::AtDepth,
        depth: depth_prompt.depth,
        role: depth_prompt.role,
        ..LoreEntry::default()
    };
    Some(SkeinBlock {
        lore: Some(lore),
        ..SkeinBlock::new("block", BlockBody::Text("{{ char.depth_prompt }}".to_owned()))
    })
}

/// Builds a prompt from a book: each entry becomes a block that is present while the entry is active.
#[must_use]
pub fn from_book(imported_file: &ImportedFile) -> Skein {
    let blocks = imported_file.entries.iter().map(|entry| {
        let normalized = normalize_entry(&entry.title, &entry.content);
        let body = match &normalized.body {
            normalize::EntryBody::Data(value) => BlockBody::Data(migrate_value(value)),
            normalize::EntryBody::Text(text) => BlockBody::Text(migrate_text(text)),
        };
        let attributes = normalized.attributes.iter().map(|(key, value)| (key.clone(), migrate_text(value)));
        let lore = LoreEntry { content: String::new(), ..entry.clone() };
        SkeinBlock {
            attributes: attributes.collect(),
            lore: Some(lore),
            ..SkeinBlock::new(normalized.tag, body)
        }
    });
    let scan = imported_file.book.as_ref().map(|book| {
        let defaults = ScanSettings::default();
        ScanSettings {
            scan_depth: book.scan_depth.unwrap_or(defaults.scan_depth),
            budget: book.token_budget.filter(|budget| *budget > 0).map(|budget| budget as usize),
            recursive: book.recursive_scanning.unwrap_or(defaults.recursive),
            ..defaults
        }
    });
    Skein {
        blocks: blocks.collect(),
        scan: scan.filter(|scan| *scan != ScanSettings::default()),
        ..Skein::default()
    }
}

/// Builds a prompt from a preset. [`Skein::merge_lore`] adds a card and its book.
#[must_use]
pub fn from_preset(imported_file: &ImportedFile) -> Skein {
    let mut skein = Skein::default();
    let Some(preset) = &imported_file.preset else { return skein };
    // The context of the model also holds the reply.
    let reply_tokens = preset.max_tokens.unwrap_or(0);
    skein.max_context =
        preset.max_context.map(|max| max.saturating_sub(reply_tokens) as usize).filter(|max| *max > 0);
    let history_index = preset.items.iter().position(|item| item.id == "chatHistory").unwrap_or(usize::MAX);
    for (index, item) in preset.items.iter().enumerate() {
        match placeholder_blocks(&item.id, preset) {
            Some(blocks) => skein.blocks.extend(blocks),
            None if item.marker || item.text.trim().is_empty() => {}
            None => skein.blocks.push(item_block(item, index > history_index)),
        }
    }
    // Texts of the preset that a card can replace; `{{original}}` in the card stands for them.
    let originals =
        preset.items.iter().filter_map(|item| Some((card_field(&item.id)?, migrate_text(&item.text).into())));
    let originals: Map<String, Value> = originals.map(|(field, text)| (field.to_owned(), text)).collect();
    if !originals.is_empty() {
        skein.metadata.insert("original".into(), originals.into());
    }
    if !preset.new_example.trim().is_empty() {
        skein.metadata.insert("config".into(), json!({ "example_separator": preset.new_example }));
    }
    skein
}

/// Returns the blocks for a placeholder of a preset; `None` if the id is not a placeholder.
fn placeholder_blocks(id: &str, preset: &PromptPreset) -> Option<Vec<SkeinBlock>> {
    let text_block = |tag: &str, text: &str| vec![SkeinBlock::new(tag, BlockBody::Text(text.to_owned()))];
    Some(match id {
        "chatHistory" => {
            let start_block = SkeinBlock {
                role: Some(MessageRole::System),
                ..SkeinBlock::new("block", BlockBody::Text(migrate_text(&preset.new_chat)))
            };
            let start_block = (!preset.new_chat.trim().is_empty()).then_some(start_block);
            start_block.into_iter().chain([SkeinBlock::slot(SkeinSlot::History)]).collect()
        }
        "worldInfoBefore" => vec![SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::BeforeChar))],
        "worldInfoAfter" => vec![SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::AfterChar))],
        "charDescription" => text_block("character_card", "{{ char.description }}"),
        "charPersonality" => {
            text_block("personality", &format_field(&preset.personality_format, "personality"))
        }
        "scenario" => text_block("scenario", &format_field(&preset.scenario_format, "scenario")),
        "personaDescription" => text_block("user_persona", "{{ user.persona }}"),
        "dialogueExamples" => vec![
            SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::ExamplesBefore)),
            SkeinBlock::new(
                "example_dialogues",
                BlockBody::Text("{{ char.examples | format_examples }}".to_owned()),
            ),
            SkeinBlock::slot(SkeinSlot::Lore(EntryPosition::ExamplesAfter)),
        ],
        _ => return None,
    })
}

/// Returns a template for a field of a card within the text that a preset puts around it. It prints nothing
/// if the card lacks the field.
fn format_field(format: &str, field: &str) -> String {
    let field_text = format!("{{{{ char.{field} }}}}");
    let format = migrate_text(format.trim());
    if format.is_empty() || format == field_text {
        return field_text;
    }
    // The field is rendered only once, because it may set variables.
    let body = format.replace(&field_text, "{{ _own }}");
    format!("{{% with _own = char.{field} %}}{{% if _own %}}{body}{{% endif %}}{{% endwith %}}")
}

/// Returns the field of a card that replaces the preset item with this id; `None` if no field does.
fn card_field(id: &str) -> Option<&'static str> {
    match id {
        "main" => Some("main_prompt"),
        "jailbreak" => Some("jailbreak"),
        _ => None,
    }
}

/// Returns the block for a preset item that has a text. `is_after_history` is true for an item after the
/// history.
fn item_block(item: &PresetItem, is_after_history: bool) -> SkeinBlock {
    let item_text = migrate_text(&item.text);
    let text = match card_field(&item.id) {
        Some(field) => card_text_or(field, &item_text),
        None => item_text,
    };
    let block = SkeinBlock::new("block", BlockBody::Text(text));
    match item.depth {
        Some(depth) => {
            let lore = LoreEntry {
                id: format!("preset {}", item.id),
                title: item.name.clone(),
                constant: true,
                position: EntryPosition::AtDepth,
                depth,
                role: item.role,
                ..LoreEntry::default()
            };
            SkeinBlock { lore: Some(lore), ..block }
        }
        None if item.id == "main" => SkeinBlock { tag: "system_instruction".to_owned(), ..block },
        // System texts before the history are part of the system message.
        None if item.role == MessageRole::System && !is_after_history => {
            SkeinBlock { tag: "instruction".to_owned(), ..block }
        }
        None => SkeinBlock { role: Some(item.role), ..block },
    }
}

/// Migrates the macros of a text to a template. Existing text that looks like a template stays literal.
fn migrate_text(text: &str) -> String {
    macros::migrate_foreign(text).text
}

/// Migrates the macros in all texts of a value.
fn migrate_value(value: &Value) -> Value {
    match value {
        Value::String(text) => migrate_text(text).into(),
        Value::Array(items) => items.iter().map(migrate_value).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| (migrate_text(key), migrate_value(value))).collect()
        }
        other => other.clone(),
    }
}
