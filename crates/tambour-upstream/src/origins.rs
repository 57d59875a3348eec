//! Errors of the configuration, and the origins of its values, which the errors name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tambour::error::Location;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Error: the configuration is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// Origins of configuration values.
#[derive(Clone, Default)]
pub struct ValueOrigins {
    /// Path and text of the configuration file.
    file: Option<(PathBuf, Arc<str>)>,
    /// Flags and environment variables, by the dotted path of the field they set.
    sources: BTreeMap<String, String>,
}

impl ValueOrigins {
    /// Creates the origins of the values of a file.
    pub fn from_file(path: &Path, text: &str) -> ValueOrigins {
        ValueOrigins { file: Some((path.to_owned(), text.into())), sources: BTreeMap::new() }
    }

    /// Notes the flag or environment variable that set a field.
    pub fn note_source(&mut self, field: &str, source: &str) {
        self.sources.insert(field.to_owned(), source.to_owned());
    }

    /// Returns the flag or variable that set a field or its nearest parent; otherwise the place in the file;
    /// `None` for defaults and values set by code.
    pub fn origin_of(&self, field: &str) -> Option<String> {
        let mut field_and_parents =
            std::iter::successors(Some(field), |field| field.rsplit_once('.').map(|(parent, _)| parent));
        field_and_parents
            .find_map(|field| self.sources.get(field).cloned())
            .or_else(|| self.place_in_file(field))
    }

    /// Builds an error about a field, with the origin of its value.
    pub fn field_error(&self, field: &str, reason: &str) -> ConfigError {
        match self.origin_of(field) {
            Some(place) => ConfigError(format!("{place}: `{field}` {reason}")),
            None => ConfigError(format!("`{field}` {reason}")),
        }
    }

    /// Returns the place of a field in the file or, if the field is not there, of its nearest parent.
    pub fn place_in_file(&self, field: &str) -> Option<String> {
        let (path, text) = self.file.as_ref()?;
        let table = DeTable::parse(text).ok()?;
        Some(format_place(path, text, field_offset(table.get_ref(), field)?))
    }
}

/// Returns the byte offset of a field, or of the last part of its path that exists; `None` if no part exists.
fn field_offset(table: &DeTable<'_>, field: &str) -> Option<usize> {
    let mut table = Some(table);
    let mut start = None;
    for part in field.split('.') {
        let Some((key, value)) = table.and_then(|table| find_entry(table, part)) else { break };
        start = Some(key.span().start);
        table = value.get_ref().as_table();
    }
    start
}

/// Returns the dotted path of the field whose value contains this byte offset.
pub fn field_at(text: &str, offset: usize) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let mut table = Some(document.get_ref());
    let mut path: Vec<&str> = Vec::new();
    while let Some((key, value)) =
        table.and_then(|table| table.iter().find(|(_, value)| contains_offset(value, offset)))
    {
        path.push(key.get_ref());
        table = value.get_ref().as_table();
    }
    (!path.is_empty()).then(|| path.join("."))
}

/// Returns `true` if a value contains this byte offset. A table is searched value by value, since its values
/// need not be contiguous in the file.
fn contains_offset(value: &Spanned<DeValue<'_>>, offset: usize) -> bool {
    match value.get_ref().as_table() {
        Some(table) => table.values().any(|value| contains_offset(value, offset)),
        None => value.span().contains(&offset),
    }
}

fn find_entry<'t, 'i>(
    table: &'t DeTable<'i>,
    name: &str,
) -> Option<(&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    table.iter().find(|(key, _)| key.get_ref() == name)
}

/// Formats a byte offset in the text of a file as `FILE:LINE:COLUMN`.
pub fn format_place(path: &Path, text: &str, offset: usize) -> String {
    let Location { line, column, .. } = Location::from_offset(text, offset);
    format!("{}:{line}:{column}", path.display())
}
