//! Character card, read from versions 1 to 3 into the same fields.

use serde::Serialize;
use serde_json::{Map, Value};

use tambour::error::Result;
use tambour::finding::clip;

use super::super::lore::MessageRole;
use super::super::role;
use super::book::{self, BookLayout};
use super::fields::{CardFields, describe_type};

/// A character card. Texts are as in the file, including macros.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CharacterCard {
    /// Name.
    pub name: String,
    /// Name used in prompts, if different.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nickname: String,
    /// Description of the character.
    pub description: String,
    /// Personality of the character.
    pub personality: String,
    /// Scenario.
    pub scenario: String,
    /// First message.
    pub first_mes: String,
    /// Alternative first messages.
    pub alternate_greetings: Vec<String>,
    /// First messages for groups only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_only_greetings: Vec<String>,
    /// Example dialogues, each preceded by `<START>`.
    pub mes_example: String,
    /// Main instruction. Empty means the default one, which `{{original}}` refers to.
    pub system_prompt: String,
    /// Instruction after the history. Empty means that of the preset, if there is one.
    pub post_history_instructions: String,
    /// Text inserted among the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth_prompt: Option<DepthPrompt>,
    /// Notes for people. A prompt prints them only where a template asks for them; lorebook
    /// entries may search them.
    pub creator_notes: String,
    /// Notes in other languages, by language.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub creator_notes_multilingual: Map<String, Value>,
    /// Tags, which prompts do not print. A lorebook entry may be limited to characters with certain tags.
    pub tags: Vec<String>,
    /// Author of the card.
    pub creator: String,
    /// Version of the character.
    pub character_version: String,
    /// Addresses the card comes from; they are never requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<String>,
    /// Creation time, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_date: Option<i64>,
    /// Modification time, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modification_date: Option<i64>,
    /// Pictures and other files that the card refers to; they are never read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assets: Vec<CardAsset>,
    /// Data of other programs, unchanged. Scripts and regular expressions in it never run.
    pub extensions: Map<String, Value>,
}

/// A text inserted among the messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DepthPrompt {
    /// Text.
    pub prompt: String,
    /// Number of messages after the text.
    pub depth: u32,
    /// Role of the message.
    pub role: MessageRole,
}

/// A file that a card refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardAsset {
    /// Type: `icon`, `background`, `emotion`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Location: `embeded://…` (spelt so in the V3 specification), `ccdefault:` or an address.
    pub uri: String,
    /// Name.
    pub name: String,
    /// File extension.
    pub ext: String,
}

/// Fields that identify a V1 card, together with a name.
const CARD_FIELDS: [&str; 5] = ["description", "personality", "scenario", "first_mes", "mes_example"];

/// Detects the version of a card; `None` if the object is not a card.
pub(super) fn detect_version(map: &Map<String, Value>) -> Option<&'static str> {
    let spec = map.get("spec").and_then(Value::as_str).unwrap_or_default();
    match spec {
        "chara_card_v2" => Some("v2"),
        // Unknown specifications are read as version 3.
        _ if spec.starts_with("chara_card") => Some("v3"),
        _ if map.get("data").and_then(Value::as_object).is_some_and(|data| data.contains_key("name")) => {
            Some("v2")
        }
        _ if map.contains_key("name") && CARD_FIELDS.iter().any(|key| map.contains_key(*key)) => Some("v1"),
        _ => None,
    }
}

/// Reads the card from the fields of the file, and its book if it has one.
pub(super) fn read_card(
    root_fields: &CardFields<'_>,
    version: &str,
) -> Result<(CharacterCard, Option<book::BookWithEntries>)> {
    if version != "v1" {
        check_version(root_fields, version)?;
    }
    let data = match (version, root_fields.get("data")) {
        ("v1", _) => None,
        (_, Some(Value::Object(data))) => Some(data),
        (_, Some(other)) => return Err(root_fields.type_error("data", "an object", other)),
        (_, None) if root_fields.get("name").is_some() => {
            root_fields.file.warn("`data` is missing; the fields beside `spec` are read instead");
            None
        }
        (_, None) => {
            return Err(root_fields
                .file
                .refuse("`data` is missing; a card of that version has its fields there"));
        }
    };
    let fields = data.map_or(*root_fields, |data| CardFields::new(root_fields.file, data, "data"));
    if fields.get("name").is_none() {
        return Err(root_fields.file.refuse(&format!("`{}` is missing", fields.full_name("name"))));
    }
    let card = read_character(&fields)?;
    Ok((card, find_book(root_fields, &fields)?))
}

/// Reads the book of a card, from its proper place or, with a warning, from a place where other programs put
/// it. The first book found counts.
fn find_book(root_fields: &CardFields<'_>, fields: &CardFields<'_>) -> Result<Option<book::BookWithEntries>> {
    let path = fields.full_name("extensions");
    let no_extensions = Map::new();
    let extensions = fields.object("extensions")?.unwrap_or(&no_extensions);
    let extensions = CardFields::new(root_fields.file, extensions, &path);
    if let Some(world) = extensions.get("world").and_then(Value::as_str).filter(|world| !world.is_empty())
        && fields.get("character_book").is_none()
    {
        extensions.warn("world", &format!("names the book `{}`, which is in another file", clip(world, 60)));
    }
    let mut book = None;
    for (index, (parent, key)) in [
        (fields, "character_book"),
        (root_fields, "character_book"),
        (&extensions, "character_book"),
        (fields, "lorebook"),
        (&extensions, "lorebook"),
    ]
    .into_iter()
    .enumerate()
    {
        // A card without `data` has its fields at the root, where the first place has been searched already.
        let is_same_parent = index == 1 && std::ptr::eq(root_fields.map, fields.map);
        let Some(value) = parent.get(key).filter(|_| !is_same_parent) else { continue };
        // `character_book` is reserved for a book; the other places may hold anything.
        let must_be_object = index < 2;
        let Some(map) = (if must_be_object { parent.object(key)? } else { value.as_object() }) else {
            continue;
        };
        if !must_be_object && !map.contains_key("entries") {
            continue;
        }
        if book.is_some() {
            parent.warn(key, "is a second book, which is kept and not used");
            continue;
        }
        if index > 0 {
            parent.warn(key, "is a book outside `data.character_book`, and was read");
        }
        let path = parent.full_name(key);
        book = Some(book::read_book(&CardFields::new(root_fields.file, map, &path), BookLayout::Embedded)?);
    }
    Ok(book)
}

/// Warns about a missing or unknown `spec`, and about a `spec_version` newer than the known one.
fn check_version(root_fields: &CardFields<'_>, version: &str) -> Result<()> {
    let spec = root_fields.text("spec")?;
    if spec.is_empty() {
        root_fields.file.warn("`spec` is missing; read as a card of version 2");
    } else if !matches!(spec.as_str(), "chara_card_v2" | "chara_card_v3") {
        root_fields.file.warn(format!("`spec` is `{spec}`, which is not known; read as a card of version 3"));
    }
    let stated_version = root_fields.text("spec_version")?;
    let known_version = if version == "v2" { 2.0 } else { 3.0 };
    if stated_version.trim().parse::<f64>().is_ok_and(|stated_version| stated_version > known_version) {
        root_fields.file.warn(format!(
            "`spec_version` is {stated_version}; fields that are newer than {known_version:.1} are kept and not used"
        ));
    }
    Ok(())
}

/// Reads the fields of the character.
fn read_character(fields: &CardFields<'_>) -> Result<CharacterCard> {
    let extensions = fields.object("extensions")?.cloned().unwrap_or_default();
    let depth_prompt = read_depth_prompt(fields)?;
    warn_scripts(fields, &extensions);
    Ok(CharacterCard {
        name: fields.text("name")?,
        nickname: fields.text("nickname")?,
        description: fields.text("description")?,
        personality: fields.text("personality")?,
        scenario: fields.text("scenario")?,
        first_mes: fields.text("first_mes")?,
        alternate_greetings: fields.texts("alternate_greetings")?,
        group_only_greetings: fields.texts("group_only_greetings")?,
        mes_example: fields.text("mes_example")?,
        system_prompt: fields.text("system_prompt")?,
        post_history_instructions: fields.text("post_history_instructions")?,
        depth_prompt,
        creator_notes: fields.text("creator_notes")?,
        creator_notes_multilingual: fields.object("creator_notes_multilingual")?.cloned().unwrap_or_default(),
        tags: fields.text_list("tags")?,
        creator: fields.text("creator")?,
        character_version: fields.label("character_version")?,
        source: fields.texts("source")?,
        creation_date: fields.integer("creation_date")?,
        modification_date: fields.integer("modification_date")?,
        assets: read_assets(fields)?,
        extensions,
    })
}

/// Reads the text inserted among the messages; `None` if it is absent or empty.
fn read_depth_prompt(fields: &CardFields<'_>) -> Result<Option<DepthPrompt>> {
    let path = fields.full_name("extensions");
    let Some(extensions) = fields.object("extensions")? else { return Ok(None) };
    let extensions = CardFields::new(fields.file, extensions, &path);
    let path = extensions.full_name("depth_prompt");
    let Some(prompt_fields) = extensions.object("depth_prompt")? else { return Ok(None) };
    let prompt_fields = CardFields::new(fields.file, prompt_fields, &path);
    let prompt = prompt_fields.text("prompt")?;
    let role = match prompt_fields.get("role") {
        None => MessageRole::System,
        Some(value) => read_role(value)
            .ok_or_else(|| prompt_fields.type_error("role", "system, user or assistant", value))?,
    };
    // SillyTavern's default.
    let depth = prompt_fields.count("depth")?.unwrap_or(4);
    Ok((!prompt.is_empty()).then_some(DepthPrompt { prompt, depth, role }))
}

/// Returns the role of this name ([`role::parse_role`]), or of this number in SillyTavern.
pub(super) fn read_role(value: &Value) -> Option<MessageRole> {
    match value {
        Value::String(name) => role::parse_role(name),
        Value::Number(number) => match number.as_f64().map(|number| number as i64) {
            Some(0) => Some(MessageRole::System),
            Some(1) => Some(MessageRole::User),
            Some(2) => Some(MessageRole::Assistant),
            _ => None,
        },
        _ => None,
    }
}

/// Warns about scripts of a card, which are kept but never run.
fn warn_scripts(fields: &CardFields<'_>, extensions: &Map<String, Value>) {
    let count_scripts = |value: &Value| match value {
        Value::Array(items) => items.len(),
        Value::Object(map) => map.get("scripts").and_then(Value::as_array).map_or(1, Vec::len),
        Value::Null => 0,
        _ => 1,
    };
    for (key, script_kind) in [
        ("regex_scripts", "regular-expression scripts"),
        ("tavern_helper", "scripts"),
        ("TavernHelper_scripts", "scripts"),
    ] {
        let script_count = extensions.get(key).map_or(0, count_scripts);
        if script_count > 0 {
            fields.warn(
                &format!("extensions.{key}"),
                &format!("has {script_count} {script_kind}, which are kept and not run"),
            );
        }
    }
}

/// Reads the files that the card refers to.
fn read_assets(fields: &CardFields<'_>) -> Result<Vec<CardAsset>> {
    let items = fields.list("assets")?.iter().enumerate();
    items
        .map(|(index, item)| {
            let path = fields.full_name(&format!("assets[{index}]"));
            let Value::Object(map) = item else {
                return Err(fields
                    .file
                    .refuse(&format!("`{path}` should be an object, but is {}", describe_type(item))));
            };
            let asset_fields = CardFields::new(fields.file, map, &path);
            Ok(CardAsset {
                kind: asset_fields.text("type")?,
                uri: asset_fields.text("uri")?,
                name: asset_fields.text("name")?,
                ext: asset_fields.text("ext")?,
            })
        })
        .collect()
}
