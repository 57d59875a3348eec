//! Exports imported files as V3 JSON, a card or a lorebook. Unknown fields are written back unchanged.

use serde_json::{Map, Value, json};

use super::entry::{CAMEL_NAMES, SNAKE_NAMES};
use super::{ImportedFile, ImportedFileKind};
use crate::lore::LoreEntry;

/// Fields of a V1 card that V3 moves to `data`.
const V1_FIELDS: [&str; 6] = ["name", "description", "personality", "scenario", "first_mes", "mes_example"];

/// Fields of a SillyTavern entry that have the same name in the extensions of a V3 entry.
const SHARED_FIELDS: [&str; 9] =
    ["position", "depth", "role", "probability", "group", "sticky", "cooldown", "delay", "triggers"];

/// Returns the fields of an entry in a foreign layout (neither embedded nor V3) that map to fields of V3. The
/// first of them is the text of the entry.
fn mapped_fields(layout: &str) -> &'static [&'static str] {
    match layout {
        "sillytavern" => {
            &["content", "key", "keysecondary", "comment", "disable", "order", "constant", "selective", "uid"]
        }
        "novelai" => &["text", "displayName", "keys", "enabled", "id"],
        "agnai" => &["entry", "name", "keywords", "weight", "priority", "enabled"],
        // `risu`.
        _ => &["content", "key", "secondkey", "comment", "insertorder", "selective", "id"],
    }
}

impl ImportedFile {
    /// Returns the card or the book as V3 JSON, and a preset unchanged. Other data of the file is kept in
    /// place, or in `extensions` under the name of the program it comes from.
    #[must_use]
    pub fn export(&self) -> Value {
        match (self.kind, &self.source) {
            (ImportedFileKind::Card, Value::Object(source)) => self.export_card(source),
            (ImportedFileKind::Lorebook, Value::Object(source)) => {
                let mut file = Map::new();
                file.insert("spec".into(), "lorebook_v3".into());
                let v3_data =
                    source.get("data").and_then(Value::as_object).filter(|_| self.version == "lorebook_v3");
                file.insert("data".into(), self.export_book(v3_data.unwrap_or(source), &self.version));
                if v3_data.is_some() {
                    add_missing(&mut file, source);
                }
                file.into()
            }
            _ => self.source.clone(),
        }
    }

    /// Converts the card of the file `source` to V3.
    fn export_card(&self, source: &Map<String, Value>) -> Value {
        // A card without `data` has its fields next to `spec`.
        let is_flat = self.version != "v1" && !source.get("data").is_some_and(Value::is_object);
        let mut data = match source.get("data") {
            Some(Value::Object(data)) if self.version != "v1" => data.clone(),
            _ if is_flat => {
                let card_fields = source
                    .iter()
                    .filter(|(key, _)| !matches!(key.as_str(), "spec" | "spec_version" | "data"));
                card_fields.map(|(key, value)| (key.clone(), value.clone())).collect()
            }
            _ => V1_FIELDS
                .iter()
                .filter_map(|key| Some(((*key).to_owned(), source.get(*key)?.clone())))
                .collect(),
        };
        // Fills in missing fields, and replaces fields of the wrong type by their converted values.
        let typed_card = serde_json::to_value(&self.card).unwrap_or_default();
        let text_keys = [
            "name",
            "description",
            "personality",
            "scenario",
            "first_mes",
            "mes_example",
            "creator_notes",
            "system_prompt",
            "post_history_instructions",
            "creator",
            "character_version",
        ];
        let list_keys = ["alternate_greetings", "tags", "group_only_greetings"];
        for key in text_keys {
            if !data.get(key).is_some_and(Value::is_string) {
                data.insert(key.into(), typed_card.get(key).cloned().unwrap_or_else(|| "".into()));
            }
        }
        for key in list_keys {
            if !data.get(key).is_some_and(Value::is_array) {
                data.insert(key.into(), typed_card.get(key).cloned().unwrap_or_else(|| json!([])));
            }
        }
        if !data.get("extensions").is_some_and(Value::is_object) {
            data.insert("extensions".into(), json!({}));
        }
        let book = match data.get("character_book") {
            None | Some(Value::Null) => source.get("character_book"),
            book => book,
        };
        if let Some(Value::Object(book)) = book {
            let book = self.export_book(book, "embedded");
            data.insert("character_book".into(), book);
        }
        let stated_version =
            source.get("spec_version").filter(|_| self.version == "v3").filter(|version| version.is_string());
        let mut file = Map::new();
        file.insert("spec".into(), "chara_card_v3".into());
        file.insert("spec_version".into(), stated_version.cloned().unwrap_or_else(|| "3.0".into()));
        file.insert("data".into(), data.into());
        for (key, value) in source {
            // `data` has the field now.
            let is_moved = is_flat || self.version == "v1" && V1_FIELDS.contains(&key.as_str());
            if !is_moved && key != "character_book" {
                file.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        file.into()
    }

    /// Converts the book `source` from `layout` to the V3 layout. Fields of a foreign book (neither embedded
    /// nor V3) that have no V3 equivalent go to `extensions.LAYOUT`.
    fn export_book(&self, source: &Map<String, Value>, layout: &str) -> Value {
        let is_foreign = !matches!(layout, "embedded" | "lorebook_v3");
        let entries_key = if layout == "risu" { "data" } else { "entries" };
        let items: Vec<&Value> = match source.get(entries_key) {
            Some(Value::Array(items)) => items.iter().collect(),
            Some(Value::Object(items)) => items.values().collect(),
            _ => Vec::new(),
        };
        let entries = items.iter().zip(&self.entries).map(|(item, entry)| match item {
            Value::Object(item) if is_foreign => export_foreign_entry(item, entry, layout),
            Value::Object(item) => export_v3_entry(item, entry),
            other => (*other).clone(),
        });
        let entries: Vec<Value> = entries.collect();
        let mut book = Map::new();
        if is_foreign {
            let v3_keys =
                ["name", "description", "scan_depth", "token_budget", "recursive_scanning", "extensions"];
            for key in v3_keys {
                if let Some(value) = source.get(key) {
                    book.insert(key.into(), value.clone());
                }
            }
            let other_fields = source
                .iter()
                .filter(|(name, _)| !v3_keys.contains(&name.as_str()) && *name != entries_key)
                .map(|(name, value)| (name.clone(), value.clone()));
            put_extension(&mut book, layout, other_fields.collect());
        } else {
            book.clone_from(source);
        }
        if !book.get("extensions").is_some_and(Value::is_object) {
            book.insert("extensions".into(), json!({}));
        }
        book.insert("entries".into(), entries.into());
        book.into()
    }
}

/// Completes an entry in the V3 layout with the required fields it lacks; `keys` must also be a list.
fn export_v3_entry(source: &Map<String, Value>, entry: &LoreEntry) -> Value {
    let mut out = source.clone();
    let mandatory_fields = [
        ("keys", json!(entry.keys)),
        ("content", json!(entry.content)),
        ("extensions", json!({})),
        ("enabled", json!(entry.enabled)),
        ("insertion_order", json!(entry.order)),
        ("use_regex", json!(entry.regex)),
    ];
    for (key, value) in mandatory_fields {
        if out.get(key).is_none_or(Value::is_null) || key == "keys" && !out[key].is_array() {
            out.insert(key.into(), value);
        }
    }
    out.into()
}

/// Converts an entry of a foreign layout to the V3 layout; `source` is its JSON, `entry` the same entry as
/// read.
fn export_foreign_entry(source: &Map<String, Value>, entry: &LoreEntry, layout: &str) -> Value {
    let mut extensions = Map::new();
    let mut other_fields = Map::new();
    let (camel, snake) = (CAMEL_NAMES.list(), SNAKE_NAMES.list());
    for (key, value) in source {
        let snake_name = camel.iter().position(|name| name == key).map(|index| snake[index]);
        let shared_name = SHARED_FIELDS.contains(&key.as_str()).then_some(key.as_str());
        match snake_name.or(shared_name).filter(|_| layout == "sillytavern") {
            Some(name) => {
                extensions.insert(name.to_owned(), value.clone());
            }
            None if mapped_fields(layout).contains(&key.as_str()) => {}
            None => {
                other_fields.insert(key.clone(), value.clone());
            }
        }
    }
    if layout == "sillytavern"
        && source.get("characterFilter").is_none_or(Value::is_null)
        && entry.filter != Default::default()
    {
        let filter = &entry.filter;
        let filter = json!({"names": filter.names, "tags": filter.tags, "isExclude": filter.exclude});
        extensions.insert("character_filter".into(), filter);
    }
    if layout == "risu" {
        extensions.insert("probability".into(), json!(entry.probability));
        extensions.insert("useProbability".into(), true.into());
    }
    let content = source.get(mapped_fields(layout)[0]).and_then(Value::as_str);
    let priority = source.get("priority").filter(|_| layout == "agnai").and_then(Value::as_f64);
    let id = match layout {
        "sillytavern" => source.get("uid").cloned(),
        "agnai" => None,
        _ => source.get("id").cloned(),
    };
    let mut out = Map::new();
    let fields = [
        ("keys", json!(entry.keys)),
        ("content", json!(content.unwrap_or_default())),
        // Keeps the place of the field in the order; its value is set below.
        ("extensions", Value::Null),
        ("enabled", json!(entry.enabled)),
        ("insertion_order", json!(entry.order)),
        ("use_regex", json!(entry.regex)),
        ("constant", json!(entry.constant)),
        ("name", json!(entry.title)),
        ("comment", json!(entry.title)),
        ("selective", json!(entry.selective)),
        ("secondary_keys", json!(entry.secondary_keys)),
        ("priority", json!(priority.map_or(0, |priority| priority.round() as i64))),
        ("id", id.filter(|id| id.is_number() || id.is_string()).unwrap_or_else(|| json!(entry.id))),
    ];
    out.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    out.insert("extensions".into(), extensions.into());
    put_extension(&mut out, layout, other_fields);
    out.into()
}

/// Stores fields without a V3 equivalent under `extensions.NAME`.
fn put_extension(out: &mut Map<String, Value>, name: &str, fields: Map<String, Value>) {
    let extensions = out.entry("extensions").or_insert_with(|| json!({}));
    if let (false, Value::Object(extensions)) = (fields.is_empty(), extensions) {
        extensions.insert(name.to_owned(), fields.into());
    }
}

/// Adds the fields of `source` that `out` lacks.
fn add_missing(out: &mut Map<String, Value>, source: &Map<String, Value>) {
    for (key, value) in source {
        out.entry(key.clone()).or_insert_with(|| value.clone());
    }
}
