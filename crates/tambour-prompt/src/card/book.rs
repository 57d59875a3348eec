//! Reads lorebooks in six file layouts.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};

use tambour::error::Result;

use super::super::lore::LoreEntry;
use super::fields::{CardFields, describe_type};
use super::{decorator, entry};

/// Properties of a lorebook besides its entries.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Lorebook {
    /// Name.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// Number of newest messages searched for keys of its entries.
    pub scan_depth: Option<u32>,
    /// Maximum number of tokens of its active entries.
    pub token_budget: Option<u32>,
    /// Lets the text of active entries activate others.
    pub recursive_scanning: Option<bool>,
    /// Data of other programs, unchanged.
    pub extensions: Map<String, Value>,
}

/// File layout of a lorebook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BookLayout {
    /// World info saved by SillyTavern.
    Sillytavern,
    /// `lorebook_v3`: the book is in `data`.
    V3,
    /// Book of a character card, in the card or in a separate file.
    Embedded,
    /// Lorebook of NovelAI.
    Novelai,
    /// Memory book of Agnai.
    Agnai,
    /// Lorebook of RisuAI.
    Risu,
}

impl BookLayout {
    /// Returns the name of the layout, as in `version` of an imported file.
    pub(super) fn name(self) -> &'static str {
        match self {
            BookLayout::Sillytavern => "sillytavern",
            BookLayout::V3 => "lorebook_v3",
            BookLayout::Embedded => "embedded",
            BookLayout::Novelai => "novelai",
            BookLayout::Agnai => "agnai",
            BookLayout::Risu => "risu",
        }
    }
}

/// Detects the layout of a book; `None` if the object is not a book.
pub(super) fn detect_layout(map: &Map<String, Value>) -> Option<BookLayout> {
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    match map.get("entries") {
        // A card is not a book, even with entries.
        _ if text("spec").starts_with("chara_card") => None,
        _ if text("spec").starts_with("lorebook") => Some(BookLayout::V3),
        _ if map.contains_key("lorebookVersion") => Some(BookLayout::Novelai),
        Some(_) if text("kind") == "memory" => Some(BookLayout::Agnai),
        _ if text("type") == "risu" && map.contains_key("data") => Some(BookLayout::Risu),
        Some(Value::Object(_)) => Some(BookLayout::Sillytavern),
        Some(Value::Array(_)) => Some(BookLayout::Embedded),
        _ => None,
    }
}

/// A book and its entries.
pub(super) type BookWithEntries = (Lorebook, Vec<LoreEntry>);

/// Reads a book in a known layout.
pub(super) fn read_book(root_fields: &CardFields<'_>, layout: BookLayout) -> Result<BookWithEntries> {
    let v3_data = match (layout, root_fields.get("data")) {
        (BookLayout::V3, Some(Value::Object(data))) => Some(data),
        (BookLayout::V3, Some(other)) => return Err(root_fields.type_error("data", "an object", other)),
        (BookLayout::V3, None) => {
            return Err(root_fields.file.refuse("`data` is missing; a lorebook has its entries there"));
        }
        _ => None,
    };
    let fields = v3_data.map_or(*root_fields, |data| CardFields::new(root_fields.file, data, "data"));
    let book = Lorebook {
        name: fields.text("name")?,
        description: fields.text("description")?,
        scan_depth: fields.count("scan_depth")?,
        token_budget: fields.count("token_budget")?,
        recursive_scanning: fields.flag("recursive_scanning")?,
        extensions: fields.object("extensions")?.cloned().unwrap_or_default(),
    };
    Ok((book, read_entries(&fields, layout)?))
}

/// Reads the entries of a book, from a list or an object, and makes their ids unique.
fn read_entries(fields: &CardFields<'_>, layout: BookLayout) -> Result<Vec<LoreEntry>> {
    let key = if layout == BookLayout::Risu { "data" } else { "entries" };
    let items: Vec<(String, &Value)> = match fields.get(key) {
        None => return Err(fields.file.refuse(&format!("`{}` is missing", fields.full_name(key)))),
        Some(Value::Array(items)) => {
            items.iter().enumerate().map(|(index, item)| (format!("{key}[{index}]"), item)).collect()
        }
        Some(Value::Object(items)) => {
            items.iter().map(|(name, item)| (format!("{key}.{name}"), item)).collect()
        }
        Some(other) => return Err(fields.type_error(key, "a list or an object of entries", other)),
    };
    if items.len() > fields.file.limits.entries {
        let limit = fields.file.limits.entries;
        return Err(fields
            .file
            .refuse(&format!("the book has {} entries, at most {limit} are read", items.len())));
    }
    let mut ids = HashSet::new();
    let mut entries = Vec::with_capacity(items.len());
    for (index, (name, item)) in items.into_iter().enumerate() {
        let path = fields.full_name(&name);
        let Value::Object(map) = item else {
            return Err(fields
                .file
                .refuse(&format!("`{path}` should be an object, but is {}", describe_type(item))));
        };
        let entry_fields = CardFields::new(fields.file, map, &path);
        let mut entry = match layout {
            BookLayout::Sillytavern => entry::read_sillytavern(&entry_fields)?,
            BookLayout::V3 | BookLayout::Embedded => entry::read_embedded(&entry_fields)?,
            BookLayout::Novelai => entry::read_novelai(&entry_fields)?,
            BookLayout::Agnai => entry::read_agnai(&entry_fields)?,
            BookLayout::Risu => entry::read_risu(&entry_fields)?,
        };
        decorator::apply_decorators(&mut entry, &entry_fields);
        // Timed effects are stored by id, so ids must be unique.
        if entry.id.is_empty() {
            entry.id = index.to_string();
        }
        if ids.contains(&entry.id) {
            entry_fields.file.warn(format!("`{path}` has the id {} of another entry", entry.id));
        }
        // A changed id may be taken as well: `a#2`, `a`, `a`.
        while !ids.insert(entry.id.clone()) {
            entry.id = format!("{}#{index}", entry.id);
        }
        entries.push(entry);
    }
    Ok(entries)
}
