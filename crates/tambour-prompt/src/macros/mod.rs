//! Translates macros of SillyTavern, and of its extension Tavern-Helper, to Jinja (F-027, F-030 to F-035).
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
//! // A second migration changes nothing.
//! assert_eq!(migrate(&migrated.text).text, migrated.text);
//! ```
//!
//! The syntax is that of SillyTavern's macro engine of 2026: names in any letter case, blanks inside the
//! braces, `::` between arguments, one `:` or a blank before a single argument, nested macros, scoped forms
//! such as `{{if x}}…{{/if}}`, `\{` and `\}`. Jinja in the text is left as it is. An unknown macro prints as
//! it was written.

mod args;
mod header;
mod node;
mod parse;
mod table;
mod tag_pairs;
mod write;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::jinja::{find_syntax_error, is_valid_template};
use tambour::finding::clip;
use tambour::span::Place;

/// Maximum number of warnings kept for one text.
const MAX_WARNINGS: usize = 1_000;

/// A text with its macros translated to Jinja.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MigratedText {
    /// The Jinja template.
    pub text: String,
    /// Warnings, in the order of the text.
    pub warnings: Vec<MacroWarning>,
    /// Counts of translated macros (F-032).
    pub report: MigrationCounts,
}

/// A problem with a macro.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MacroWarning {
    /// One of `macro_unknown`, `condition_literal`, `time_zone_unknown`, `macro_limit` and `jinja_invalid`.
    pub code: &'static str,
    /// Name of the macro, or the word in question.
    pub name: String,
    /// Line in the text, from 1.
    pub line: u32,
    /// Column in Unicode scalar values, from 1.
    pub column: u32,
    /// Description of the problem, in lower case.
    pub message: String,
}

/// Counts of a migration (F-032).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MigrationCounts {
    /// Number of macros translated to Jinja.
    pub translated: usize,
    /// Number of macros left as text.
    pub left: usize,
    /// Number of translated macros by row of the specification's macro table; `-` for macros outside of it.
    pub rules: BTreeMap<&'static str, usize>,
}

impl MigrationCounts {
    /// Adds the counts of another text.
    #[doc(hidden)]
    pub fn add(&mut self, other: &MigrationCounts) {
        self.translated += other.translated;
        self.left += other.left;
        for (row, count) in &other.rules {
            *self.rules.entry(row).or_default() += count;
        }
    }
}

/// Translates the macros of a text. Never fails, runs in linear time, and is idempotent (F-031). A text with
/// more than 50,000 macros and escapes prints as it was written and gets the warning `macro_limit`.
#[must_use]
pub fn migrate(source: &str) -> MigratedText {
    let reads_jinja = true;
    let parsed_text = parse::parse(source, reads_jinja);
    let has_jinja = parsed_text.has_jinja();
    let (text, warnings, report) = write::write(source, parsed_text);
    // Braces that look like Jinja but do not compile are treated as text.
    let (text, warnings, report) = match has_jinja.then(|| find_syntax_error(&text)).flatten() {
        Some(reason) => {
            let reads_jinja = false;
            let (text, mut warnings, report) = write::write(source, parse::parse(source, reads_jinja));
            warnings.insert(0, invalid_jinja_warning(source, &reason));
            (text, warnings, report)
        }
        None => (text, warnings, report),
    };
    let text = migrate_until_stable(source, text);
    MigratedText { text, warnings, report }
}

/// Returns the warning about a text that looks like Jinja but does not compile, such as one with an unclosed
/// block.
fn invalid_jinja_warning(source: &str, reason: &str) -> MacroWarning {
    let start = ["{%", "{{"].iter().find_map(|mark| source.find(mark)).unwrap_or_default();
    let place = Place::START.end_of(&source[..start]);
    let name = clip(source[start..].lines().next().unwrap_or_default(), 60).into_owned();
    let reason = clip(reason, 120);
    let message = format!("the text looks like Jinja but is not valid, so all of it stays as text: {reason}");
    MacroWarning { code: "jinja_invalid", name, line: place.line, column: place.column, message }
}

/// Migrates the migrated `text` again, at most twice. This is for legacy markers such as `<USER>` whose
/// closing tag was inside something that the previous pass removed, such as a comment.
fn migrate_until_stable(source: &str, mut text: String) -> String {
    if source.contains("</") && text != source {
        for _ in 0..2 {
            let reads_jinja = true;
            let (migrated, ..) = write::write(&text, parse::parse(&text, reads_jinja));
            if migrated == text || !is_valid_template(&migrated) {
                break;
            }
            text = migrated;
        }
    }
    text
}

/// Like [`migrate`], for a text of another program: nothing in it is Jinja, so text that looks like Jinja
/// prints as it was written.
#[doc(hidden)]
#[must_use]
pub fn migrate_foreign(source: &str) -> MigratedText {
    let reads_jinja = false;
    let (text, warnings, report) = write::write(source, parse::parse(source, reads_jinja));
    MigratedText { text, warnings, report }
}

/// Returns true if a text may contain macros or Jinja. The migration leaves any other text unchanged.
#[doc(hidden)]
#[must_use]
pub fn may_contain_macros(source: &str) -> bool {
    let bytes = source.as_bytes();
    memchr::memchr3_iter(b'{', b'\\', b'<', bytes).any(|at| match (bytes[at], bytes.get(at + 1)) {
        (b'{', Some(b'{' | b'%' | b'#')) | (b'\\', Some(b'{' | b'}')) => true,
        // A legacy marker such as `<USER>`, `<BOT>`, `<CHAR>` or `<GROUP>`.
        (b'<', Some(next)) => matches!(next, b'u' | b'U' | b'b' | b'B' | b'c' | b'C' | b'g' | b'G'),
        _ => false,
    })
}
