//! Tables of `docs/spec/*.md`.

use std::path::Path;

use anyhow::Context;

/// Requirement level of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Must,
    Should,
    /// Not required at present.
    Later,
}

impl Level {
    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Must => "must",
            Level::Should => "should",
            Level::Later => "later",
        }
    }
}

/// Row of the specification.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) level: Level,
    pub(super) rule: String,
    /// Finding codes that its *Expected* column requires of the validator.
    pub(super) codes: Vec<String>,
    /// True if it describes output: see [`maps`].
    pub(super) maps: bool,
    /// True if the output is `completed.metadata`.
    pub(super) metadata: bool,
    /// True if it allows something without a finding.
    pub(super) no_finding: bool,
    /// True if it repeats other rows: a minimal check of a validator, which findings on those rows prove.
    pub(super) repeats: bool,
}

/// Reads all rows, in the order of the files.
pub(super) fn read(root: &Path) -> anyhow::Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for path in tambour_fixtures::files(&root.join("docs/spec"), "md").map_err(anyhow::Error::msg)? {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for row in parse(&text) {
            let twice = rows.iter().any(|before| before.id == row.id);
            anyhow::ensure!(!twice, "{}: {} is there twice", path.display(), row.id);
            rows.push(row);
        }
        // M-010 is prose, since its text spans lines.
        if text.contains("\nM-010. ") {
            let rule = "One definition spans lines and is inserted later.".to_owned();
            rows.push(Row {
                id: "M-010".to_owned(),
                level: Level::Must,
                rule,
                codes: Vec::new(),
                maps: false,
                metadata: false,
                no_finding: false,
                repeats: false,
            });
        }
    }
    anyhow::ensure!(rows.len() > 100, "only {} rows in docs/spec", rows.len());
    Ok(rows)
}

fn parse(text: &str) -> Vec<Row> {
    let mut header: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        let cells = cells(line);
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
            let at = header.iter().position(|name| names.contains(&name.as_str()))?;
            cells.get(at).map(String::as_str)
        };
        let rule = cell(&["rule", "meaning"]).unwrap_or_default().to_owned();
        let level = match cell(&["sev", "level"]) {
            _ if line.contains("(later)") => Level::Later,
            Some(level) if level.starts_with("should") => Level::Should,
            _ => Level::Must,
        };
        let expected = cell(&["expected"]).unwrap_or_default();
        rows.push(Row {
            id: first.clone(),
            level,
            codes: codes(expected),
            maps: maps(first, &rule, expected),
            metadata: rule.contains("metadata") || expected.contains("metadata"),
            no_finding: expected.contains("no finding") || expected.contains("V: no "),
            repeats: rule
                .strip_prefix("Check ")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())),
            rule,
        });
    }
    rows
}

/// Returns whether a row describes output, so that a fixture that names it must compare that: its *Expected*
/// column has a mapper part (`M:`) or more than the reports of the validator; or it is an X row, which has no
/// such column, and mentions events, sent or streamed text, or metadata.
fn maps(id: &str, rule: &str, expected: &str) -> bool {
    if id.starts_with("X-") {
        return ["event", "sent", "stream", "_delta", "metadata"].iter().any(|word| rule.contains(word));
    }
    let reported = expected.contains("V:") || expected.contains("finding") || expected.starts_with("fail");
    let nothing = matches!(expected, "" | "–" | "own test" | "fixtures");
    expected.contains("M:") || expected.contains("M (") || !(reported || nothing)
}

/// Splits a table line into cells; `\|` does not end one.
fn cells(line: &str) -> Vec<String> {
    let Some(line) = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
        return Vec::new();
    };
    let line = line.replace("\\|", "\u{1}");
    line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// Returns whether a word is the id of a requirement.
pub(super) fn is_id(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 5
        && b"TJPSXFM".contains(&bytes[0])
        && bytes[1] == b'-'
        && bytes[2..].iter().all(u8::is_ascii_digit)
}

/// Finds the finding codes after `V:`, up to `M:`. A code after `no` must not be reported; `…_duplicate`
/// stands for the previous code with another last word.
fn codes(expected: &str) -> Vec<String> {
    let Some((_, validator)) = expected.split_once("V:") else { return Vec::new() };
    let end = validator.find("M:").or_else(|| validator.find("M (")).unwrap_or(validator.len());
    let validator = &validator[..end];
    let mut codes: Vec<String> = Vec::new();
    let mut parts = validator.split('`');
    while let (Some(before), Some(quoted)) = (parts.next(), parts.next()) {
        let word = quoted.split([':', '[', ' ']).next().unwrap_or_default();
        let code = match (word.strip_prefix('…'), codes.last()) {
            (Some(end), Some(last)) => {
                let stem = last.rsplit_once('_').map_or("", |(stem, _)| stem);
                format!("{stem}{end}")
            }
            _ => word.to_owned(),
        };
        let plain = code.starts_with(|c: char| c.is_ascii_lowercase())
            && code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if plain && !before.trim_end().ends_with(" no") {
            codes.push(code);
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::{Level, codes, maps, parse};

    #[test]
    fn reads_codes_of_the_validator() {
        assert_eq!(codes("V: `a_b` / `c_d`. M: `e_f` warning."), ["a_b", "c_d"]);
        assert_eq!(
            codes("V: `thinking_end_missing` / `…_duplicate`."),
            ["thinking_end_missing", "thinking_end_duplicate"]
        );
        assert_eq!(
            codes("V: no `unexpected_tag`. A comment in `<final>`: `comment_in_final`"),
            ["comment_in_final"]
        );
        assert_eq!(
            codes("V: `unexpected_tag: String`; `tool_unknown[i]`"),
            ["unexpected_tag", "tool_unknown"]
        );
        assert!(codes("V: no finding. M: text").is_empty());
    }

    #[test]
    fn reads_levels() {
        let rows = parse(
            "| Id | Rule | Sev | Expected |\n| --- | --- | --- | --- |\n\
             | T-001 | a \\| b | must (`x` makes it a warning) | V: `c_d` |\n| T-002 | b | should | |\n\
             | T-003 | (later) c | must | |\n\n| R-01 | d | e |\n",
        );
        let found: Vec<(&str, Level)> = rows.iter().map(|row| (row.id.as_str(), row.level)).collect();
        assert_eq!(found, [("T-001", Level::Must), ("T-002", Level::Should), ("T-003", Level::Later)]);
        assert_eq!((rows[0].rule.as_str(), &rows[0].codes[..]), ("a | b", &["c_d".to_owned()][..]));
    }

    #[test]
    fn knows_rows_that_say_what_comes_out() {
        assert!(maps("T-014", "", "M: phase text contains the literal"));
        assert!(maps("J-040", "", "text trimmed"));
        assert!(maps("X-005", "the message becomes `final_delta`s, sent at once", ""));
        for (id, rule, expected) in [
            ("T-031", "", "V: `phase_id_invalid`."),
            ("T-060", "Check 1", "fail"),
            ("T-065", "", "identical findings"),
            ("P-022", "", "fixtures"),
            ("X-006", "One finding format", ""),
        ] {
            assert!(!maps(id, rule, expected), "{id}");
        }
    }
}
