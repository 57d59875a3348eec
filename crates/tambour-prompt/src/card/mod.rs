//! Import of character cards and lorebooks of other programs from JSON, PNG, APNG and CHARX (a zip
//! archive), and export as V3 JSON (`docs/from-sillytavern.md`). PNG, APNG and CHARX need the feature
//! `binary-cards`.
//!
//! Files are data: macros are not run, regular expressions and scripts of a card are kept and never executed,
//! links are not followed. Unknown fields stay in [`ImportedFile::source`] and are written back by
//! [`ImportedFile::export`].
//!
//! ```
//! use tambour_prompt::card::{self, ImportedFileKind};
//!
//! let file = br#"{"name": "Ada", "description": "A smith.", "first_mes": "Hm?"}"#;
//! let imported = card::import_file("ada.json", file, &Default::default())?;
//! assert_eq!((imported.kind, &*imported.version, &*imported.name), (ImportedFileKind::Card, "v1", "Ada"));
//! assert_eq!(imported.export()["spec"], "chara_card_v3");
//! # Ok::<(), tambour::Error>(())
//! ```

mod book;
#[cfg(feature = "binary-cards")]
mod charx;
mod decorator;
mod entry;
mod export;
mod fields;
mod json;
mod model;
#[doc(hidden)]
pub mod normalize;
#[cfg(feature = "binary-cards")]
mod png;
mod preset;

use std::cell::RefCell;

use serde::Serialize;
use serde_json::{Map, Value};

use tambour::error::{Error, Result};
use tambour::finding::clip;
use tambour::limits::ImportLimits;
use tambour::texts::format_count;

use super::lore::{LoreEntry, key_warnings};
use super::macros;
use fields::{CardFields, ImportWarnings};

pub use book::Lorebook;
pub use model::{CardAsset, CharacterCard, DepthPrompt};
pub use preset::{PresetItem, PromptPreset};

/// Kind of an imported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportedFileKind {
    /// Character card.
    Card,
    /// World info entries.
    Lorebook,
    /// Parts of a prompt and their order.
    Preset,
}

/// Content of an imported file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ImportedFile {
    /// Kind of the file.
    pub kind: ImportedFileKind,
    /// Version of a card (`v1`, `v2`, `v3`), or layout of a lorebook (`sillytavern`, `lorebook_v3`,
    /// `embedded`, `novelai`, `agnai`, `risu`) or preset (`sillytavern`).
    pub version: String,
    /// Name of the character or the book, or the file name without its extension.
    pub name: String,
    /// Character; `None` if the file is not a card.
    pub card: Option<CharacterCard>,
    /// Settings of the book, alone or in a card; its entries are in `entries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<Lorebook>,
    /// Entries of the book, including the book of a card.
    pub entries: Vec<LoreEntry>,
    /// Prompt parts of a preset; `None` if the file is not a preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<PromptPreset>,
    /// Problems found, and content that is kept but not used.
    pub warnings: Vec<String>,
    /// Original JSON.
    #[serde(skip)]
    pub source: Value,
    /// Approximate memory of `source`, in bytes.
    #[serde(skip)]
    pub memory: usize,
}

/// Imports a card, a lorebook or a preset; the content decides which. `name` is the file name. Messages show
/// it, and its stem names the import if the content states no name.
///
/// # Errors
/// Fails when the file is of no known kind, exceeds a limit or is broken; the message names the file and the
/// field.
pub fn import_file(name: &str, bytes: &[u8], limits: &ImportLimits) -> Result<ImportedFile> {
    let file = ImportFile { name, limits, warnings: RefCell::default() };
    if bytes.len() > limits.file {
        return Err(file.refuse(&format!("{} bytes, at most {} are read", bytes.len(), limits.file)));
    }
    let json_bytes = if let Some(card_bytes) = extract_binary_card(&file, bytes)? {
        card_bytes
    } else if bytes.starts_with(b"RIFF")
        || bytes.starts_with(b"GIF8")
        || bytes.starts_with(&[0xff, 0xd8, 0xff])
    {
        // WebP, GIF or JPEG.
        return Err(file.refuse("a picture without a card; cards come in PNG, APNG, CHARX and JSON files"));
    } else {
        bytes.to_vec()
    };
    let (source, memory) = json::parse_measured(&file, &json_bytes)?;
    drop(json_bytes);
    let mut imported_file = read_import(&file, source)?;
    imported_file.memory = memory;
    warn_unknown_macros(&file, &imported_file);
    key_warnings(&imported_file.entries, limits.patterns).into_iter().for_each(|warning| file.warn(warning));
    imported_file.entries.iter().for_each(|entry| warn_initial_variables(&file, entry));
    let ImportWarnings { mut list, dropped_count } = file.warnings.into_inner();
    if dropped_count > 0 {
        list.push(format!("{dropped_count} more warnings are not listed"));
    }
    imported_file.warnings = list;
    Ok(imported_file)
}

/// Returns the JSON of the card in a picture or an archive; `None` for other files.
#[cfg(feature = "binary-cards")]
fn extract_binary_card(file: &ImportFile<'_>, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    if bytes.starts_with(png::SIGNATURE) {
        png::extract_card(file, bytes).map(Some)
    } else if charx::is_charx(bytes) {
        charx::extract_card(file, bytes).map(Some)
    } else {
        Ok(None)
    }
}

/// Refuses pictures and archives, which need the feature `binary-cards`.
#[cfg(not(feature = "binary-cards"))]
fn extract_binary_card(file: &ImportFile<'_>, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    if bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"PK") {
        return Err(file.refuse("cards in pictures and archives need the feature `binary-cards`"));
    }
    Ok(None)
}

/// Warns about unknown macros, which stay in the prompt as text (F-031).
fn warn_unknown_macros(file: &ImportFile<'_>, imported_file: &ImportedFile) {
    // `describe_place` runs only if there is something to report.
    let check = |describe_place: &dyn Fn() -> String, text: &str| {
        if macros::may_contain_macros(text) {
            for warning in macros::migrate_foreign(text).warnings {
                let (line, column) = (warning.line, warning.column);
                let place = describe_place();
                file.warn(format!("{place}, line {line}, column {column}: {}", warning.message));
            }
        }
    };
    if let Some(card) = &imported_file.card {
        let depth_prompt = card.depth_prompt.as_ref().map_or("", |depth_prompt| &depth_prompt.prompt);
        for (field, text) in [
            ("description", card.description.as_str()),
            ("personality", &card.personality),
            ("scenario", &card.scenario),
            ("first_mes", &card.first_mes),
            ("mes_example", &card.mes_example),
            ("system_prompt", &card.system_prompt),
            ("post_history_instructions", &card.post_history_instructions),
            ("depth_prompt", depth_prompt),
        ] {
            check(&|| format!("`{field}`"), text);
        }
        for (index, text) in card.alternate_greetings.iter().enumerate() {
            check(&|| format!("`alternate_greetings[{index}]`"), text);
        }
    }
    for entry in &imported_file.entries {
        check(&|| entry.label(), &entry.content);
    }
    for item in imported_file.preset.iter().flat_map(|preset| &preset.items) {
        check(&|| format!("prompt `{}`", clip(&item.id, 60)), &item.text);
    }
}

/// Warns about an entry that holds initial variables of a chat, marked by `[initvar]` in its title.
/// MagVarUpdate, an extension of SillyTavern, would set them; nothing sets them here.
fn warn_initial_variables(file: &ImportFile<'_>, entry: &LoreEntry) {
    if !entry.title.to_lowercase().contains("[initvar]") {
        return;
    }
    let title = clip(&entry.title, 60);
    match normalize::normalize_entry("", &entry.content).body {
        normalize::EntryBody::Data(Value::Object(map)) => file.warn(format!(
            "entry `{title}` holds initial values of {}, which are kept but not set: put them into the state",
            format_count(map.len(), "variable")
        )),
        _ => file.warn(format!(
            "entry `{title}` should hold initial values of variables, but is neither a YAML mapping nor a JSON object; it stays text"
        )),
    }
}

/// The file being imported: its name, the limits of the import, and the warnings so far.
struct ImportFile<'a> {
    name: &'a str,
    limits: &'a ImportLimits,
    warnings: RefCell<ImportWarnings>,
}

impl ImportFile<'_> {
    /// Returns the error that refuses the file for a reason.
    fn refuse(&self, reason: &str) -> Error {
        Error::malformed(format!("{}: {reason}", self.name), None)
    }

    /// Adds a warning; beyond the limit, only counts it.
    fn warn(&self, message: impl Into<String>) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.list.len() < self.limits.warnings {
            warnings.list.push(message.into());
        } else {
            warnings.dropped_count += 1;
        }
    }

    /// Returns the file name without folders and extension.
    fn stem(&self) -> String {
        let base = self.name.rsplit(['/', '\\']).next().unwrap_or_default();
        base.rsplit_once('.').map_or(base, |(stem, _)| stem).to_owned()
    }
}

/// Reads the JSON of a file as a lorebook, a card or a preset, tried in this order.
fn read_import(file: &ImportFile<'_>, source: Value) -> Result<ImportedFile> {
    let Value::Object(map) = &source else {
        return Err(file.refuse(&format!(
            "a card or lorebook must be a JSON object, but this is {}",
            fields::describe_type(&source)
        )));
    };
    let fields = CardFields::new(file, map, "");
    let mut imported_file = if let Some(layout) = book::detect_layout(map) {
        let (book, entries) = book::read_book(&fields, layout)?;
        ImportedFile {
            book: Some(book),
            entries,
            version: layout.name().to_owned(),
            ..empty_import(ImportedFileKind::Lorebook)
        }
    } else if let Some(version) = model::detect_version(map) {
        let (card, book) = model::read_card(&fields, version)?;
        let (book, entries) = book.map_or((None, Vec::new()), |(book, entries)| (Some(book), entries));
        ImportedFile {
            name: card.name.clone(),
            card: Some(card),
            book,
            entries,
            version: version.into(),
            ..empty_import(ImportedFileKind::Card)
        }
    } else if preset::is_preset(map) {
        let preset = preset::read_preset(&fields)?;
        ImportedFile {
            preset: Some(preset),
            version: "sillytavern".into(),
            ..empty_import(ImportedFileKind::Preset)
        }
    } else {
        return Err(file.refuse(
            "neither a character card (`name` with `description` or `first_mes`, or `spec` and `data`) nor a lorebook (`entries`, \
             `lorebookVersion`, `kind: memory`, `type: risu`) nor a preset (`prompts`)",
        ));
    };
    if imported_file.name.is_empty() {
        let is_lorebook = imported_file.kind == ImportedFileKind::Lorebook;
        let book_name = imported_file.book.as_ref().filter(|_| is_lorebook).map(|book| book.name.clone());
        imported_file.name = book_name.filter(|name| !name.is_empty()).unwrap_or_else(|| file.stem());
    }
    imported_file.source = source;
    Ok(imported_file)
}

/// Returns an imported file of a kind, without content.
fn empty_import(kind: ImportedFileKind) -> ImportedFile {
    ImportedFile {
        kind,
        version: String::new(),
        name: String::new(),
        card: None,
        book: None,
        entries: Vec::new(),
        preset: None,
        warnings: Vec::new(),
        source: Value::Object(Map::new()),
        memory: 0,
    }
}
