//! Page of the book with all rules, as `tambour rules` explains them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tambour::finding::RuleLevel;
use tambour_prompt::catalogue::{self, CatalogueEntry};

/// Writes the page: the rules by the part that owns them, each with a broken and a correct example.
pub(super) fn write_page() -> String {
    let mut owners: Vec<(&str, Vec<CatalogueEntry>)> = Vec::new();
    for entry in catalogue::all() {
        match owners.iter_mut().find(|(owner, _)| *owner == entry.owner) {
            Some((_, entries)) => entries.push(entry),
            None => owners.push((entry.owner, vec![entry])),
        }
    }
    let mut text = String::from(
        "# Rules\n\nEach finding names a rule by its code and a row of the [specification](spec/index.md). This page is generated from the \
        library; `tambour rules CODE` prints the same.\n",
    );
    let mut seen = BTreeMap::new();
    for (owner, entries) in owners {
        writeln!(text, "\n## {owner}").expect("a string takes any text");
        for entry in entries {
            write_rule(&mut text, &entry, &mut seen);
        }
    }
    text
}

/// Writes a rule. `seen` counts the headings with the same code, which several parts may have.
fn write_rule(text: &mut String, entry: &CatalogueEntry, seen: &mut BTreeMap<&str, u32>) {
    let rule = entry.rule;
    let count = seen.entry(rule.code).or_default();
    *count += 1;
    let level = match rule.level {
        RuleLevel::Must => "must",
        RuleLevel::Should => "should",
        _ => "info",
    };
    *text += &format!("\n### `{}`\n\n{}\n\n{level}, {}", rule.code, escape(rule.title), rule.rows.join(", "));
    if !rule.with.is_empty() {
        let settings: Vec<String> = rule.with.iter().map(|setting| inline_code(setting)).collect();
        *text += &format!("; examples read with {}", settings.join(", "));
    }
    *text += &format!("\n\nBroken:\n\n{}\nCorrect:\n\n{}", fence(rule.broken), fence(rule.correct));
}

/// Text in a fence that it cannot close.
fn fence(text: &str) -> String {
    let marks = "`".repeat(longest_run(text).max(2) + 1);
    format!("{marks}text\n{}\n{marks}\n", text.trim_end_matches('\n'))
}

/// Text as code within a line.
pub(super) fn inline_code(text: &str) -> String {
    let marks = "`".repeat(longest_run(text) + 1);
    let edge = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{edge}{}{edge}{marks}", text.replace('\n', " "))
}

/// Length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

/// Text whose markup is shown: code spans stay.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            escaped.push('`');
        }
        escaped +=
            &if index % 2 == 0 { part.replace('<', "&lt;").replace('*', "\\*") } else { part.to_owned() };
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{fence, inline_code, write_page};

    #[test]
    fn the_page_has_every_rule() {
        let page = write_page();
        for entry in tambour_prompt::catalogue::all() {
            assert!(page.contains(&format!("\n### `{}`\n", entry.rule.code)), "{}", entry.rule.code);
        }
    }

    #[test]
    fn examples_cannot_leave_their_fence() {
        assert_eq!(fence("a\n```\nb\n"), "````text\na\n```\nb\n````\n");
        assert_eq!(inline_code("a `b`"), "`` a `b` ``");
    }
}
