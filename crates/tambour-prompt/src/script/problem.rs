//! Problems of scripts: findings with the path of a field. Builds the problem for a text that is not valid
//! YAML.

use serde_saphyr::{Error as YamlError, Location};

use super::rules;
use tambour::finding::{Finding, FindingReport, Profile, Severity, clip};
use tambour::span::Place;
use tambour::texts::{Language, bilingual};

/// A fault of a script: a [`Finding`] with the path of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptProblem {
    /// Path of the field, such as `sessions[0].phases[1].steps[0].actions[2].max_rounds`; empty for the
    /// entire script.
    pub path: String,
    /// Rule, place in the YAML text, and message.
    pub report: FindingReport,
}

impl ScriptProblem {
    pub(crate) fn new(path: impl Into<String>, report: FindingReport) -> ScriptProblem {
        ScriptProblem { path: path.into(), report }
    }

    /// Returns true if the script cannot run because of this problem.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.finding().severity == Severity::Error
    }

    /// Converts to a finding. Scripts are always judged strictly, because nothing in them is repaired.
    #[must_use]
    pub fn finding(&self) -> Finding {
        self.report.clone().judge(Profile::Strict)
    }
}

/// Builds the problem for a text that the YAML reader rejects.
pub(super) fn yaml_problem(text: &str, error: &YamlError, language: Language) -> ScriptProblem {
    let error = error.without_snippet();
    let error_text = error.to_string();
    // The problem itself holds the place, so the message need not name it.
    let error_text = error_text.split(" at line ").next().unwrap_or_default();
    let place = error.location().map_or(Place::START, |location| location_place(text, &location));
    let line = text.lines().nth(place.line as usize - 1).unwrap_or_default();
    if let YamlError::Budget { .. } = error {
        // `alias` and `anchor` without their first letters, because the parser may capitalize them.
        let has_anchors = error_text.contains("lias") || error_text.contains("nchor");
        let (rule, message) = match has_anchors {
            true => (rules::YAML_INVALID, anchors_message(language)),
            false if error_text.contains("Documents") => (rules::YAML_INVALID, documents_message(language)),
            false => (
                rules::LIMIT_EXCEEDED,
                bilingual!(
                    language,
                    "脚本超出了限制：{}",
                    "the script exceeds a limit: {}",
                    clip(error_text, 200)
                ),
            ),
        };
        return ScriptProblem::new("", FindingReport::new(rule, place, place.offset, message));
    }
    let message = match error {
        YamlError::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map_or_else(|| line_key(line), |key| clip(key, 80).into_owned());
            bilingual!(
                language,
                "重复的键：`{}` 在同一个映射里写了两次；只留一个，或给其中一个改名",
                "duplicate key: `{}` appears twice in one map; keep one of them, or rename one",
                key
            )
        }
        _ if error_text.contains("lias") || error_text.contains("nchor") => anchors_message(language),
        YamlError::MergeKeyNotAllowed { .. } => bilingual!(
            language,
            "脚本里不能用合并键 `<<`；把字段写出来",
            "merge keys (`<<`) are not allowed in scripts; write the fields out"
        ),
        YamlError::MultipleDocuments { .. } => documents_message(language),
        _ if begins_with_braces(line) => bilingual!(
            language,
            "以 `{{` 开头的值要加引号，例如 `content: \"{{用户名}}，你好\"`",
            "a value that begins with `{{` must be in quotes, such as `content: \"{{name}}, hello\"`",
        ),
        _ if has_tab_indentation(line) => {
            bilingual!(language, "YAML 用空格缩进，不用制表符", "indent YAML with spaces, not tabs")
        }
        _ if has_second_colon(line) => bilingual!(
            language,
            "不是 YAML：含有 `: ` 的文本要加引号",
            "not YAML: a text that contains `: ` must be in quotes"
        ),
        _ => bilingual!(language, "不是 YAML：{}", "not YAML: {}", clip(error_text, 300)),
    };
    ScriptProblem::new("", FindingReport::new(rules::YAML_INVALID, place, place.offset, message))
}

/// Returns the message about anchors and aliases, which are not allowed.
fn anchors_message(language: Language) -> String {
    bilingual!(
        language,
        "脚本里不能用锚点和别名；把值写出来",
        "anchors and aliases are not allowed in scripts; write the value out"
    )
}

/// Returns the message about a second YAML document.
fn documents_message(language: Language) -> String {
    bilingual!(
        language,
        "脚本只有一个文档；这里是另一个的开头",
        "a script must be one YAML document; a second one begins here"
    )
}

/// Returns true if the white space at the start of a line has a tab.
fn has_tab_indentation(line: &str) -> bool {
    line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t')
}

/// Returns the key of a line.
fn line_key(line: &str) -> String {
    let key = line.trim_start().trim_start_matches("- ").split(':').next().unwrap_or_default();
    clip(key.trim(), 80).into_owned()
}

/// Returns the value of a line, after its key.
fn line_value(line: &str) -> &str {
    line.split_once(": ").map_or("", |(_, value)| value.trim())
}

/// Returns true if the value of a line begins with a variable in braces, which YAML reads as a map.
fn begins_with_braces(line: &str) -> bool {
    let content = line_value(line).strip_prefix('{').and_then(|after_brace| after_brace.split_once('}'));
    content.is_some_and(|(name, _)| !name.contains([':', '{', '"', '\'']))
}

/// Returns true if the value of a line has a colon that makes it another map.
fn has_second_colon(line: &str) -> bool {
    let value = line_value(line);
    // A map on one line may have many colons.
    let is_flow_map = line.trim_start().trim_start_matches("- ").starts_with('{');
    !is_flow_map && !value.starts_with(['"', '\'', '{', '[', '|', '>']) && value.contains(": ")
}

/// Converts a location of the YAML parser. A missing offset is computed from line and column.
fn location_place(text: &str, location: &Location) -> Place {
    let (line, column) = (location.line().max(1), location.column().max(1));
    let offset =
        location.span().byte_offset().and_then(|offset| usize::try_from(offset).ok()).unwrap_or_else(|| {
            let mut lines = text.split_inclusive('\n');
            let line_index = usize::try_from(line).unwrap_or(usize::MAX) - 1;
            let line_start: usize = lines.by_ref().take(line_index).map(str::len).sum();
            let char_lengths = lines.next().unwrap_or_default().chars().map(char::len_utf8);
            line_start + char_lengths.take(usize::try_from(column).unwrap_or(usize::MAX) - 1).sum::<usize>()
        });
    let to_u32 = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Place { offset: offset.min(text.len()), line: to_u32(line), column: to_u32(column) }
}
