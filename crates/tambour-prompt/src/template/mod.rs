//! Templates of two layers (S-020 to S-046): `{name}` is a script variable, `{%name%}` a system variable.
//! Each layer has its own values; those of the script are inserted first.
//!
//! A template is parsed once into texts and variables. Inserted values are never parsed again, so any content
//! of a value is literal text.
//!
//! ```
//! use serde_json::json;
//! use tambour_prompt::template::{Map, LayeredTemplate};
//!
//! let template = LayeredTemplate::parse("{用户名}，现在是{%time%}。{\"level\": 0-100}");
//! let map = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
//! let (script, system) = (map(json!({"用户名": "{%time%}"})), map(json!({"time": "10:00"})));
//! assert_eq!(template.render(&script, &system).text, "{%time%}，现在是10:00。{\"level\": 0-100}");
//! ```
//!
//! A variable is a brace pair around letters of any writing system, digits, `_`, `-` and `.`, with at least
//! one letter or digit (S-040). `\{` is a literal brace and `\\` before a brace a literal backslash; `{{`
//! `}}` on one line is left for Jinja (R-48).

mod check;
mod files;
mod round;
mod scan;

#[doc(hidden)]
pub use check::{VariableReport, VariableSource, VariableUse, check_variables};
#[doc(hidden)]
pub use files::{SHIPPED_TEMPLATES, ShippedTemplate, find_shipped, localized_id};
pub use files::{TEMPLATE_NOT_FOUND, TemplateFiles, template_id};
#[doc(hidden)]
pub use round::{RoundFacts, SYSTEM_NAMES, format_time, script_values, system_values};

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::print;
use tambour::finding::clip;
use tambour::span::Place;
use tambour::texts::Language;

use scan::TemplatePiece;

/// Values by name.
pub type Map = serde_json::Map<String, Value>;

/// Layer of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// `{name}`.
    Script,
    /// `{%name%}`.
    System,
}

/// A parsed template. Clones share it.
#[derive(Clone, Debug)]
pub struct LayeredTemplate {
    source: Arc<str>,
    pieces: Arc<[TemplatePiece]>,
}

/// A problem found while a template was filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FillWarning {
    /// Either `variable_unresolved` (the marker stays in the text, S-038) or `variable_null` (nothing is
    /// inserted, S-041).
    pub code: &'static str,
    /// Layer of the variable.
    pub layer: Layer,
    /// Name of the variable.
    pub name: String,
    /// Line in the template, from 1.
    pub line: u32,
    /// Column in Unicode scalar values, from 1.
    pub column: u32,
    /// Description of the problem, in lower case.
    pub message: String,
}

impl FillWarning {
    /// Returns the message in a language.
    #[must_use]
    pub(crate) fn localized_message(&self, language: Language) -> String {
        let marker = match self.layer {
            Layer::Script => format!("{{{}}}", clip(&self.name, 100)),
            Layer::System => format!("{{%{}%}}", clip(&self.name, 100)),
        };
        match (language, self.code) {
            (Language::En, _) => self.message.clone(),
            (Language::Zh, "variable_null") => format!("`{marker}` 是空值，什么也没有填入"),
            (Language::Zh, _) => format!("`{marker}` 没有值，原样保留"),
        }
    }
}

/// A filled template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilledTemplate {
    /// Filled text.
    pub text: String,
    /// Warnings in the order of the template, one per variable and problem.
    pub warnings: Vec<FillWarning>,
}

/// Template after the script pass, whose system variables have no values yet.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct PartlyFilledTemplate<'t> {
    source: &'t str,
    parts: Vec<PartlyFilledPart<'t>>,
    /// Warnings of the script pass.
    warnings: Vec<FillWarning>,
}

/// Part of a template after the script pass.
#[derive(Clone, Debug)]
enum PartlyFilledPart<'t> {
    /// Literal text, or the value of a script variable.
    Text(Cow<'t, str>),
    /// System variable whose marker has the range `start..end`.
    System { name: &'t str, start: usize, end: usize },
}

impl LayeredTemplate {
    /// Parses a template. Never fails; takes linear time.
    #[must_use]
    pub fn parse(source: impl Into<Arc<str>>) -> LayeredTemplate {
        let source = source.into();
        let pieces = scan::split_template(&source).into();
        LayeredTemplate { source, pieces }
    }

    /// Returns the source text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the SHA-256 of the source in 64 hexadecimal digits (S-044).
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hex = String::with_capacity(64);
        for byte in Sha256::digest(self.source.as_bytes()) {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    /// Returns the variable names of a layer in order of first use, without duplicates (S-039).
    #[must_use]
    pub fn variables(&self, layer: Layer) -> Vec<&str> {
        let mut seen = HashSet::new();
        self.variable_uses()
            .filter(|(variable_layer, name, _)| *variable_layer == layer && seen.insert(*name))
            .map(|(_, name, _)| name)
            .collect()
    }

    /// Iterates over the uses of variables: layer, name, byte offset of the marker.
    pub(crate) fn variable_uses(&self) -> impl Iterator<Item = (Layer, &str, usize)> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Text { .. } => None,
            TemplatePiece::Variable { layer, name, start, .. } => {
                Some((*layer, &self.source[name.clone()], *start))
            }
        })
    }

    /// Inserts the values of both layers, those of the script first (S-023). Variables without a value stay
    /// as markers, and null inserts nothing; both give a warning.
    #[must_use]
    pub fn render(&self, script: &Map, system: &Map) -> FilledTemplate {
        self.script_pass(script).system_pass(system)
    }

    /// Inserts the values of the script. `{%…%}` is left alone (S-025), also inside these values.
    #[doc(hidden)]
    #[must_use]
    pub fn script_pass<'t>(&'t self, script: &'t Map) -> PartlyFilledTemplate<'t> {
        let mut warnings = FillWarnings::new(&self.source);
        let parts = self.pieces.iter().map(|piece| match piece {
            TemplatePiece::Text { range } => {
                PartlyFilledPart::Text(Cow::Borrowed(&self.source[range.clone()]))
            }
            TemplatePiece::Variable { layer, name, start, end } => {
                let name = &self.source[name.clone()];
                match layer {
                    Layer::System => PartlyFilledPart::System { name, start: *start, end: *end },
                    Layer::Script => {
                        PartlyFilledPart::Text(warnings.resolve(*layer, name, script, *start..*end))
                    }
                }
            }
        });
        let parts = parts.collect();
        PartlyFilledTemplate { source: &self.source, parts, warnings: warnings.list }
    }
}

impl PartlyFilledTemplate<'_> {
    /// Returns the current text, with the markers of system variables.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().map(|part| match part {
            PartlyFilledPart::Text(text) => text,
            PartlyFilledPart::System { start, end, .. } => &self.source[*start..*end],
        });
        texts.collect()
    }

    /// Inserts the values of the system.
    #[must_use]
    pub fn system_pass(self, system: &Map) -> FilledTemplate {
        let mut warnings = FillWarnings::new(self.source);
        let mut text = String::with_capacity(self.source.len());
        for part in &self.parts {
            match part {
                PartlyFilledPart::Text(filled) => text.push_str(filled),
                PartlyFilledPart::System { name, start, end } => {
                    text.push_str(&warnings.resolve(Layer::System, name, system, *start..*end));
                }
            }
        }
        let mut all_warnings = self.warnings;
        all_warnings.append(&mut warnings.list);
        all_warnings.sort_by_key(|warning| (warning.line, warning.column));
        FilledTemplate { text, warnings: all_warnings }
    }
}

/// Warnings of one pass, one per variable. Variables must come in the order of the template.
struct FillWarnings<'t> {
    source: &'t str,
    /// Place of the last warning.
    place: Place,
    list: Vec<FillWarning>,
    warned_names: HashSet<&'t str>,
}

impl<'t> FillWarnings<'t> {
    fn new(source: &'t str) -> FillWarnings<'t> {
        FillWarnings { source, place: Place::START, list: Vec::new(), warned_names: HashSet::new() }
    }

    /// Returns the text inserted for the variable whose marker has the range `marker_range`. Warns if the
    /// variable has no value.
    fn resolve(
        &mut self,
        layer: Layer,
        name: &'t str,
        values: &'t Map,
        marker_range: Range<usize>,
    ) -> Cow<'t, str> {
        let value = values.get(name);
        let marker = &self.source[marker_range.clone()];
        if value.is_none_or(Value::is_null) && self.warned_names.insert(name) {
            self.place.advance(&self.source[self.place.offset..marker_range.start]);
            let (code, problem) = match value {
                None => ("variable_unresolved", "has no value and stays as it is"),
                Some(_) => ("variable_null", "is null, so nothing is put in"),
            };
            self.list.push(FillWarning {
                code,
                layer,
                name: name.to_owned(),
                line: self.place.line,
                column: self.place.column,
                message: format!("`{}` {problem}", clip(marker, 100)),
            });
        }
        value.map_or(Cow::Borrowed(marker), print::print)
    }
}
