//! Reader of the rows in the tables of `docs/spec/*.md`.

use std::path::Path;

use anyhow::Context;

/// Requirement level of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequirementLevel {
    Must,
    Should,
    /// Not required at present.
    Later,
}

impl RequirementLevel {
    pub(super) fn name(self) -> &'static str {
        match self {
            RequirementLevel::Must => "must",
            RequirementLevel::Should => "should",
            RequirementLevel::Later => "later",
        }
    }
}

/// Row of the specification.
#[derive(Clone, Debug)]
pub(super) struct SpecRow {
    pub(super) id: String,
    pub(super) level: RequirementLevel,
    /// Text of the column *Rule* or *Meaning*.
    pub(super) rule: String,
    /// Codes of findings that the *Expected* column requires of the validator.
    pub(super) codes: Vec<String>,
    /// True if the row describes output: see [`describes_output`].
    pub(super) describes_output: bool,
    /// True if the row mentions metadata.
    pub(super) mentions_metadata: bool,
    /// True if the row expects that there is no finding.
    pub(super) forbids_finding: bool,
    /// True if the row repeats others, as a minimal check of a validator; findings on those rows prove it.
    pub(super) is_repetition: bool,
}

/// Reads all rows, in the order of the files.
pub(super) fn read_rows(root: &Path) -> anyhow::Result<Vec<SpecRow>> {
    let mut rows: Vec<SpecRow> = Vec::new();
    for path in tambour_fixtures::list_files(&root.join("docs/spec"), "md").map_err(anyhow::Error::msg)? {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for row in parse_rows(&text) {
            let is_duplicate = rows.iter().any(|other| other.id == row.id);
            anyhow::ensure!(!is_duplicate, "{}: {} occurs twice", path.display(), row.id);
            rows.push(row);
        }
        // M-010 is prose rather than a row, since its text spans lines.
        if text.contains("\nM-010. ") {
            let rule = "One definition spans lines and is inserted later.".to_owned();
            rows.push(SpecRow {
                id: "M-010".to_owned(),
                level: RequirementLevel::Must,
                rule,
                codes: Vec::new(),
                describes_output: false,
                mentions_metadata: false,
                forbids_finding: false,
                is_repetition: false,
            });
        }
    }
    anyhow::ensure!(rows.len() > 100, "only {} rows in docs/spec", rows.len());
    Ok(rows)
}

/// Parses the rows of all tables in a file.
fn parse_rows(text: &str) -> Vec<SpecRow> {
    let mut header: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        let cells = split_cells(line);
        let Some(first) = cells.first() else {
            header.clear();
            continue;
        };
        if first.eq_ignore_ascii_case("id") {
            header = cells.iter().map(|cell| cell.to_lowercase()).collect();
        }
        if !is_id(first) {
            continue;
        }
        let cell = |names: &[&str]| {
            let index = header.iter().position(|name| names.contains(&name.as_str()))?;
            cells.get(index).map(String::as_str)
        };
        let rule = cell(&["rule", "meaning"]).unwrap_or_default().to_owned();
        let level = match cell(&["sev", "level"]) {
            _ if line.contains("(later)") => RequirementLevel::Later,
            Some(level) if level.starts_with("should") => RequirementLevel::Should,
            _ => RequirementLevel::Must,
        };
        let expected = cell(&["expected"]).unwrap_or_default();
        rows.push(SpecRow {
            id: first.clone(),
            level,
            codes: find_codes(expected),
            describes_output: describes_output(first, &rule, expected),
            mentions_metadata: rule.contains("metadata") || expected.contains("metadata"),
            forbids_finding: expected.contains("no finding") || expected.contains("V: no "),
            is_repetition: rule
                .strip_prefix("Check ")
                .is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit())),
            rule,
        });
    }
    rows
}

/// Returns `true` if a row describes output, so that a fixture that names it must compare output. Its
/// *Expected* column then has a part about the mapper (`M:`), which turns replies into events, or more than
/// the findings of the validator (`V:`). An X row has no such column; it describes output if it mentions
/// events, sent or streamed text, or metadata.
fn describes_output(id: &str, rule: &str, expected: &str) -> bool {
    if id.starts_with("X-") {
        return ["event", "sent", "stream", "_delta", "metadata"].iter().any(|word| rule.contains(word));
    }
    let is_about_findings =
        expected.contains("V:") || expected.contains("finding") || expected.starts_with("fail");
    let is_empty = matches!(expected, "" | "–" | "own test" | "fixtures");
    expected.contains("M:") || expected.contains("M (") || !(is_about_findings || is_empty)
}

/// Splits a table line into cells; `\|` does not end a cell. Empty for another line.
fn split_cells(line: &str) -> Vec<String> {
    let Some(line) = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
        return Vec::new();
    };
    // U+0001 stands for `\|` while the line is split.
    let line = line.replace("\\|", "\u{1}");
    line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// Returns `true` if a word is the id of a row, such as `T-014`.
pub(super) fn is_id(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 5
        && b"TJPSXFM".contains(&bytes[0])
        && bytes[1] == b'-'
        && bytes[2..].iter().all(u8::is_ascii_digit)
}

/// Finds the codes of findings that the validator must report: those after `V:`, up to `M:`. A code after
/// `no` must not be reported and is left out. `…_duplicate` is the previous code with another last word.
fn find_codes(expected: &str) -> Vec<String> {
    let Some((_, validator)) = expected.split_once("V:") else { return Vec::new() };
    let mapper_start = validator.find("M:").or_else(|| validator.find("M (")).unwrap_or(validator.len());
    let validator = &validator[..mapper_start];
    let mut codes: Vec<String> = Vec::new();
    let mut parts = validator.split('`');
    while let (Some(before), Some(code_text)) = (parts.next(), parts.next()) {
        let word = code_text.split([':', '[', ' ']).next().unwrap_or_default();
        let code = match (word.strip_prefix('…'), codes.last()) {
            (Some(ending), Some(last)) => {
                let stem = last.rsplit_once('_').map_or("", |(stem, _)| stem);
                format!("{stem}{ending}")
            }
            _ => word.to_owned(),
        };
        let is_code = code.starts_with(|c: char| c.is_ascii_lowercase())
            && code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if is_code && !before.trim_end().ends_with(" no") {
            codes.push(code);
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::{RequirementLevel, describes_output, find_codes, parse_rows};

    #[test]
    fn codes_are_those_of_the_part_about_the_validator() {
        assert_eq!(find_codes("V: `a_b` / `c_d`. M: `e_f` warning."), ["a_b", "c_d"]);
        assert_eq!(
            find_codes("V: `thinking_end_missing` / `…_duplicate`."),
            ["thinking_end_missing", "thinking_end_duplicate"]
        );
        assert_eq!(
            find_codes("V: no `unexpected_tag`. A comment in `<final>`: `comment_in_final`"),
            ["comment_in_final"]
        );
        assert_eq!(
            find_codes("V: `unexpected_tag: String`; `tool_unknown[i]`"),
            ["unexpected_tag", "tool_unknown"]
        );
        assert!(find_codes("V: no finding. M: text").is_empty());
    }

    #[test]
    fn levels_come_from_their_column_and_from_the_rule() {
        let rows = parse_rows(
            "| Id | Rule | Sev | Expected |\n| --- | --- | --- | --- |\n\
             | T-001 | a \\| b | must (`x` makes it a warning) | V: `c_d` |\n| T-002 | b | should | |\n\
             | T-003 | (later) c | must | |\n\n| R-01 | d | e |\n",
        );
        let found: Vec<(&str, RequirementLevel)> =
            rows.iter().map(|row| (row.id.as_str(), row.level)).collect();
        assert_eq!(
            found,
            [
                ("T-001", RequirementLevel::Must),
                ("T-002", RequirementLevel::Should),
                ("T-003", RequirementLevel::Later)
            ]
        );
        assert_eq!((rows[0].rule.as_str(), &rows[0].codes[..]), ("a | b", &["c_d".to_owned()][..]));
    }

    #[test]
    fn rows_that_describe_output_are_recognised() {
        assert!(describes_output("T-014", "", "M: phase text contains the literal"));
        assert!(describes_output("J-040", "", "text trimmed"));
        assert!(describes_output("X-005", "the message becomes `final_delta`s, sent at once", ""));
        for (id, rule, expected) in [
            ("T-031", "", "V: `phase_id_invalid`."),
            ("T-060", "Check 1", "fail"),
            ("T-065", "", "identical findings"),
            ("P-022", "", "fixtures"),
            ("X-006", "One finding format", ""),
        ] {
            assert!(!describes_output(id, rule, expected), "{id}");
        }
    }
}
