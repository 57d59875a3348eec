//! Normalizes texts of world info (F-010 to F-014): structured text becomes an element around YAML, other
//! text is kept as it is. A conversion that would lose a word is discarded with a warning.
//!
//! ```
//! use tambour_prompt::card::normalize::normalize_entry;
//!
//! let normal = normalize_entry("Forest", r#"<forest>{"name": "Dark Forest", "loot": ["Moon Petals"]}</forest>"#);
//! assert_eq!(normal.render(), "<forest>\n  name: Dark Forest\n  loot:\n    - Moon Petals\n</forest>");
//! ```

mod element;
mod markdown;
mod words;

use serde::Serialize;
use serde_json::Value;

use tambour::yaml::{self, YamlLimits};

use super::super::name;
use element::{EntryPart, split_elements};
use words::{ProtectedText, contains_words};

/// Maximum length in bytes of a text that is converted; a longer one is kept as it is.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Enclosing tag of an entry whose content is not a single element.
pub(crate) const ENTRY_TAG: &str = "lorebook_entry";

/// A text in its normal form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NormalizedEntry {
    /// Enclosing tag.
    pub tag: String,
    /// Attributes of the tag.
    pub attributes: Vec<(String, String)>,
    /// Content of the element.
    pub body: EntryBody,
    /// Problems found during the conversion.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Content of an element.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryBody {
    /// Data, printed as YAML.
    Data(Value),
    /// Text, unchanged.
    Text(String),
}

impl NormalizedEntry {
    /// Renders the element: YAML is indented by two spaces (F-014), text is unchanged.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = format!("<{}", self.tag);
        for (key, value) in &self.attributes {
            let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            out += &format!(" {key}=\"{value}\"");
        }
        out.push('>');
        match &self.body {
            EntryBody::Data(value) => {
                out.push('\n');
                out += &yaml::indent_lines(&yaml::print(value), 2);
            }
            EntryBody::Text(text) => out += text,
        }
        out + "</" + &self.tag + ">"
    }
}

/// Normalizes the content of an entry. `title` becomes the `name` attribute unless the content is a single
/// element.
#[must_use]
pub fn normalize_entry(title: &str, content: &str) -> NormalizedEntry {
    let mut warnings = Vec::new();
    let mut parts = if content.len() > MAX_TEXT_BYTES {
        warnings.push(format!("a text of more than {MAX_TEXT_BYTES} bytes stays as it is"));
        vec![EntryPart::Text(content)]
    } else {
        split_elements(content, &mut warnings)
    };
    parts.retain(|part| !matches!(part, EntryPart::Text(text) if text.trim().is_empty()));
    if parts.is_empty() {
        parts.push(EntryPart::Text(content));
    }
    let attributes = match title.trim() {
        "" => Vec::new(),
        title => vec![("name".to_owned(), title.to_owned())],
    };
    let (tag, attributes, body) = match parts.as_slice() {
        // A reserved tag cannot enclose an entry, so it stays text.
        [EntryPart::Element { name, attributes, body, .. }] if !name::is_reserved(name) => {
            (name.to_string(), attributes.clone(), self::convert_body(body, &mut warnings))
        }
        // The content has no element at all.
        [EntryPart::Text(text)] if text.len() == content.len() => {
            (ENTRY_TAG.to_owned(), attributes, self::convert_body(text, &mut warnings))
        }
        parts => {
            let texts: Vec<String> = parts.iter().map(|part| part.normalize(&mut warnings)).collect();
            (ENTRY_TAG.to_owned(), attributes, EntryBody::Text(texts.join("\n")))
        }
    };
    NormalizedEntry { tag, attributes, body, warnings }
}

impl EntryPart<'_> {
    /// Normalizes one of several parts of a text.
    fn normalize(&self, warnings: &mut Vec<String>) -> String {
        match self {
            EntryPart::Text(text) => text.trim_matches(['\n', '\r']).to_owned(),
            EntryPart::Element { name, source, .. } if name::is_reserved(name) => (*source).to_owned(),
            EntryPart::Element { name, attributes, body, .. } => {
                let body = self::convert_body(body, warnings);
                let (tag, attributes) = ((*name).to_owned(), attributes.clone());
                NormalizedEntry { tag, attributes, body, warnings: Vec::new() }.render()
            }
        }
    }
}

/// Detects whether a text is JSON, YAML, Markdown or plain text, and converts it.
fn convert_body(text: &str, warnings: &mut Vec<String>) -> EntryBody {
    let unchanged_body = || EntryBody::Text(text.to_owned());
    let Some(protected_text) = ProtectedText::new(text) else { return unchanged_body() };
    let trimmed = protected_text.text.trim();
    if trimmed.starts_with(['{', '[']) {
        if let Some(value) = parse_json(trimmed) {
            return EntryBody::Data(protected_text.restore(value));
        }
        // In prose, `[` often begins a remark, so a failed parse is worth a warning only if a quoted value
        // follows it.
        let has_quote = trimmed[1..].trim_start().starts_with('"');
        if trimmed.starts_with('{') || has_quote {
            warnings.push("a text that looks like JSON is not valid JSON, and stays as it was".to_owned());
        }
        return unchanged_body();
    }
    if !markdown::is_markdown(trimmed)
        && let Some(value) = parse_yaml(&protected_text.text)
    {
        return EntryBody::Data(protected_text.restore(value));
    }
    match markdown::parse_markdown(trimmed) {
        Some((value, dropped_item_numbers)) if contains_words(&value, &dropped_item_numbers, trimmed) => {
            EntryBody::Data(protected_text.restore(value))
        }
        Some(_) => {
            warnings.push(
                "a text with lists or headings would lose words as YAML, and stays as it was".to_owned(),
            );
            unchanged_body()
        }
        None => unchanged_body(),
    }
}

/// Parses JSON of an object or a list; `None` if it is invalid or has a duplicate key. A macro in the place
/// of a value is put in quotes and so becomes text.
fn parse_json(text: &str) -> Option<Value> {
    let (mut out, mut is_in_string, mut is_escaped, mut key_count) =
        (String::with_capacity(text.len()), false, false, 0);
    for c in text.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_in_string => is_escaped = true,
            '"' => is_in_string = !is_in_string,
            words::MACRO_OPEN if !is_in_string => out.push('"'),
            ':' if !is_in_string => key_count += 1,
            _ => {}
        }
        out.push(c);
        if c == words::MACRO_CLOSE && !is_in_string {
            out.push('"');
        }
    }
    let value: Value = serde_json::from_str(&out).ok()?;
    // A duplicate key would be lost.
    (self::count_keys(&value) == key_count).then_some(value)
}

/// Counts the keys of all objects in a value.
fn count_keys(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len() + map.values().map(count_keys).sum::<usize>(),
        Value::Array(items) => items.iter().map(count_keys).sum(),
        _ => 0,
    }
}

/// Parses YAML that was meant as a mapping or list; prose with a colon is rejected.
fn parse_yaml(text: &str) -> Option<Value> {
    let mut limits = YamlLimits::default();
    // Entries need no aliases and little nesting.
    (limits.aliases, limits.depth) = (0, 32);
    let value = yaml::parse_with("the entry", &remove_indent(text), &limits).ok()?;
    let is_structured = match &value {
        // A single line may be prose with a colon.
        Value::Object(map) if map.len() == 1 && text.trim().lines().count() == 1 => {
            // In prose, the text after a colon is not quoted as a whole.
            let is_quoted =
                text.trim().ends_with(['\'', '"']) && [": '", ": \""].iter().any(|mark| text.contains(mark));
            map.iter()
                .all(|(key, value)| !key.contains(char::is_whitespace) && (is_quoted || !is_sentence(value)))
        }
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    let source = words::remove_comments(text);
    // Words may be written with the escapes of double-quoted YAML strings.
    let is_complete = contains_words(&value, &[], &source)
        || source.contains('\\') && contains_words(&value, &[], &words::decode_escapes_for_words(&source));
    (is_structured && has_plain_keys(&value) && is_complete).then_some(value)
}

/// Returns true if all keys are names rather than beginnings of sentences.
fn has_plain_keys(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().all(|(key, value)| is_key(key) && has_plain_keys(value)),
        Value::Array(items) => items.iter().all(has_plain_keys),
        _ => true,
    }
}

/// Returns true if a text before a colon can be a key: at most four words and 40 characters, without sentence
/// punctuation.
fn is_key(key: &str) -> bool {
    let is_short = key.chars().count() <= 40 && key.split_whitespace().count() <= 4;
    is_short && !key.contains(['.', '!', '?', ';', '"', '。', '！', '？', '；', '，', '“', '”', '「', '」'])
}

/// Returns true if a value is a text that ends like a sentence or has more than 60 characters.
fn is_sentence(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.ends_with(['.', '!', '?', '。', '！', '？']) || text.chars().count() > 60)
}

/// Removes the indentation that all lines share. Trimming the whole text would unindent the first line alone,
/// and YAML would then read the others as nested.
fn remove_indent(text: &str) -> String {
    let text = text.trim_start_matches(['\n', '\r']).trim_end_matches([' ', '\t']);
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let common_indent = text.lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let lines: Vec<&str> = text.lines().map(|line| line.get(common_indent..).unwrap_or_default()).collect();
    // The final line break belongs to a block scalar.
    lines.join("\n") + if text.ends_with('\n') { "\n" } else { "" }
}
