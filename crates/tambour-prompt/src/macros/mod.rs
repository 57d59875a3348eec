//! Macros of SillyTavern and Tavern-Helper, translated to Jinja (F-027, F-030 to F-035).
//!
//! ```
//! use tambour_prompt::macros::migrate;
//!
//! let migrated = migrate("{{char}} rolls {{roll:2d6}} {{#if hp}}and{{else}}or{{/if}} {{foo::bar}}");
//! assert_eq!(
//!     migrated.text,
//!     "{{ char }} rolls {{ roll('2d6') }} {% if st_test('hp') %}and{% else %}or{% endif %} {% raw %}{{foo::bar}}{% endraw %}"
//! );
//! assert_eq!(migrated.warnings[0].name, "foo");
//! // What is migrated stays as it is.
//! assert_eq!(migrate(&migrated.text).text, migrated.text);
//! ```
//!
//! Macros are read as the engine of 2026 reads them: names in any case, blanks inside the braces, `::` between arguments, one `:` or
//! a blank before a single one, arguments within arguments, scoped forms, `\{` and `\}`. Jinja that stands in the text stays. A
//! macro that is not known stays as text, so that it prints as it was written.

mod args;
mod header;
mod markers;
mod node;
mod parse;
mod scoped;
mod table;
mod write;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::jinja::{compiles, syntax_fault};
use tambour::finding::clip;
use tambour::span::Place;

/// Warnings of one text that are kept.
const WARNINGS: usize = 1_000;

/// A text whose macros are Jinja.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Migrated {
    /// The template.
    pub text: String,
    /// What was noticed, in the order of the text.
    pub warnings: Vec<MacroWarning>,
    /// What was done (F-032).
    pub report: Report,
}

/// Something about a macro.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MacroWarning {
    /// `macro_unknown`, `condition_literal`, `time_zone_unknown`, `macro_limit` or `jinja_invalid`.
    pub code: &'static str,
    /// The macro, or the word.
    pub name: String,
    /// Line in the text, from 1.
    pub line: u32,
    /// Column in Unicode scalar values, from 1.
    pub column: u32,
    /// What is wrong, in lower case.
    pub message: String,
}

/// What a migration did (F-032).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Macros that became Jinja.
    pub translated: usize,
    /// Macros that stayed as text.
    pub left: usize,
    /// Translated macros by row of the macro table; `-` for those that it does not list.
    pub rules: BTreeMap<&'static str, usize>,
}

impl Report {
    /// Adds that of another text.
    pub fn add(&mut self, other: &Report) {
        self.translated += other.translated;
        self.left += other.left;
        for (row, count) in &other.rules {
            *self.rules.entry(row).or_default() += count;
        }
    }
}

/// Translates the macros of a text. Every text can be translated; linear in its length, and done a second time it changes nothing
/// (F-031). One with more than 50,000 macros and escapes stays as it was written, and `macro_limit` says so.
#[must_use]
pub fn migrate(source: &str) -> Migrated {
    let parsed = parse::parse(source, true);
    let foreign = parsed.has_jinja();
    let (text, warnings, report) = write::write(source, parsed);
    // Braces that look like Jinja and are none are text.
    let (text, warnings, report) = match foreign.then(|| syntax_fault(&text)).flatten() {
        Some(why) => {
            let (text, mut warnings, report) = write::write(source, parse::parse(source, false));
            warnings.insert(0, no_jinja(source, &why));
            (text, warnings, report)
        }
        None => (text, warnings, report),
    };
    let text = settled(source, text);
    Migrated { text, warnings, report }
}

/// Tells of a text that looks like Jinja and is none, such as one with a block that is not closed.
fn no_jinja(source: &str, why: &str) -> MacroWarning {
    let start = ["{%", "{{"].iter().find_map(|mark| source.find(mark)).unwrap_or_default();
    let place = Place::START.after(&source[..start]);
    let name = clip(source[start..].lines().next().unwrap_or_default(), 60).into_owned();
    let message = format!("what looks like Jinja is none, and all of it stays as text: {}", clip(why, 120));
    MacroWarning { code: "jinja_invalid", name, line: place.line, column: place.column, message }
}

/// A marker whose closing tag stood in something that has gone, such as a comment, is one now.
fn settled(source: &str, mut text: String) -> String {
    if source.contains("</") && text != source {
        for _ in 0..2 {
            let (again, ..) = write::write(&text, parse::parse(&text, true));
            if again == text || !compiles(&again) {
                break;
            }
            text = again;
        }
    }
    text
}

/// As [`migrate`], for a text of another program: nothing in it is Jinja, so that what looks like it prints as it was written.
#[must_use]
pub fn migrate_foreign(source: &str) -> Migrated {
    let (text, warnings, report) = write::write(source, parse::parse(source, false));
    Migrated { text, warnings, report }
}

/// Whether a text may hold macros or Jinja; if not, it is its own migration.
#[must_use]
pub fn may_hold(source: &str) -> bool {
    let bytes = source.as_bytes();
    memchr::memchr3_iter(b'{', b'\\', b'<', bytes).any(|at| match (bytes[at], bytes.get(at + 1)) {
        (b'{', Some(b'{' | b'%' | b'#')) | (b'\\', Some(b'{' | b'}')) => true,
        (b'<', Some(next)) => matches!(next, b'u' | b'U' | b'b' | b'B' | b'c' | b'C' | b'g' | b'G'),
        _ => false,
    })
}
