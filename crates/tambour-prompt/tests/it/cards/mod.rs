//! Cards, lorebooks and presets of other programs (F-010 to F-014).

mod files;
mod hostile;
mod independent;
mod layouts;
mod normal;
mod odd_files;

use serde_json::{Value, json};
use tambour::limits::ImportLimits;
pub(crate) use tambour_fixtures::imports::{png_chunk, png_file, zip_file};
use tambour_prompt::card::{ImportedFile, import_file};

/// Reads a file with the default limits.
pub(crate) fn read_bytes(bytes: &[u8]) -> Result<ImportedFile, String> {
    import_file("case.json", bytes, &ImportLimits::default()).map_err(|error| {
        let place = error.location().map(|place| format!(" (line {} column {})", place.line, place.column));
        format!("{error}{}", place.unwrap_or_default())
    })
}

/// Reads a JSON value as a file.
pub(crate) fn read_value(value: &Value) -> ImportedFile {
    read_bytes(value.to_string().as_bytes()).expect("a file")
}

/// Builds a V2 card with a name and these fields of `data`.
pub(crate) fn v2_card(fields: &Value) -> Value {
    let mut data = json!({"name": "Mia"});
    for (key, value) in fields.as_object().into_iter().flatten() {
        data[key] = value.clone();
    }
    json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": data})
}
