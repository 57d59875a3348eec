//! YAML for prompts, lorebooks, scripts and structure files (F-004): read into JSON values or typed values,
//! and written in a single style.
//!
//! The reader follows YAML 1.2: only `true` and `false` are booleans (`no`, `on` and `yes` are text), a
//! number with a leading zero or an underscore is text, keys of a mapping are unique, and `<<` is an ordinary
//! key. [`YamlLimits`] bounds the cost.
//!
//! ```
//! use serde_json::json;
//! use tambour::yaml;
//!
//! let value = yaml::parse("the note", "name: Dark Forest\nsafe: no\ncode: 007\n")?;
//! assert_eq!(value, json!({"name": "Dark Forest", "safe": "no", "code": "007"}));
//! assert_eq!(yaml::print(&json!({"loot": ["Ancient Bark"]})), "loot:\n  - Ancient Bark\n");
//! # Ok::<(), tambour::Error>(())
//! ```

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{Error as Cause, MergeKeyPolicy, MessageFormatter, UserMessageFormatter};

use crate::error::{Error, Location, Result};
use crate::texts::explain_parse_error;

/// Limits for one YAML text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct YamlLimits {
    /// Maximum length of the text in bytes.
    pub bytes: usize,
    /// Maximum nesting depth of lists and mappings.
    pub depth: usize,
    /// Maximum number of nodes: mappings, lists, keys and scalars. Repetition by an alias counts again.
    pub nodes: usize,
    /// Maximum number of aliases (`*name`), and also of anchors (`&name`).
    pub aliases: usize,
}

impl Default for YamlLimits {
    fn default() -> YamlLimits {
        YamlLimits { bytes: 4 << 20, depth: 64, nodes: 100_000, aliases: 100 }
    }
}

/// Parses one YAML document within the default [`YamlLimits`]. An empty document is `null`. `subject` names
/// the text in errors.
///
/// # Errors
/// The text is not YAML, has several documents, a duplicate or non-scalar key, or a number that is not
/// finite, or exceeds a limit. The error has the position if it is known.
pub fn parse(subject: &str, text: &str) -> Result<Value> {
    parse_with(subject, text, &YamlLimits::default())
}

/// Like [`parse`], with other limits.
///
/// # Errors
/// Same as [`parse`].
pub fn parse_with(subject: &str, text: &str, limits: &YamlLimits) -> Result<Value> {
    parse_typed(subject, text, limits)
}

/// Parses one YAML document into a typed value, within the default limits. Errors name the field and its
/// position.
///
/// # Errors
/// Same as [`parse`]; also fails if the document does not have the shape of `T`.
pub fn parse_as<T: DeserializeOwned>(subject: &str, text: &str) -> Result<T> {
    parse_typed(subject, text, &YamlLimits::default())
}

fn parse_typed<T: DeserializeOwned>(subject: &str, text: &str, limits: &YamlLimits) -> Result<T> {
    if text.len() > limits.bytes {
        let (length, limit) = (text.len(), limits.bytes);
        return Err(Error::invalid(format!(
            "{subject} is too long for YAML: {length} bytes, at most {limit}"
        )));
    }
    serde_saphyr::from_str_with_options(text, reader_options(limits))
        .map_err(|cause| yaml_error(subject, text, &cause))
}

/// Returns options for the reader. Nodes that an alias repeats count against the limits, so a small text
/// cannot become a large value.
fn reader_options(limits: &YamlLimits) -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: limits.depth,
            flow_nesting_limit: limits.depth,
            max_nodes: limits.nodes,
            // A list or mapping has two events, its start and its end.
            max_events: limits.nodes.saturating_mul(2),
            max_aliases: limits.aliases,
            max_anchors: limits.aliases,
            max_recorded_anchor_events: limits.nodes,
            max_recorded_anchor_bytes: limits.bytes,
            max_total_scalar_bytes: limits.bytes,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
            // All aliases together repeat at most a tenth of the nodes, and nest at most 8 deep.
            max_total_replayed_events: limits.nodes / 10,
            max_replay_stack_depth: 8,
        },
    }
}

fn yaml_error(subject: &str, text: &str, cause: &Cause) -> Error {
    let bare_cause = cause.without_snippet();
    let message = match bare_cause {
        Cause::DuplicateMappingKey { key: Some(key), .. } => format!("the key `{key}` occurs twice"),
        Cause::Budget { breach, .. } => format!("it exceeds a limit ({breach:?})"),
        other => explain_parse_error(&UserMessageFormatter.format_message(other)),
    };
    // The parser reports line 0 if it does not know the location.
    let known_location = cause.location().filter(|location| location.line() > 0);
    let place = known_location.map(|location| locate(text, &location));
    Error::malformed(format!("{subject} is not YAML as expected: {message}"), place)
}

/// Converts a location of the YAML parser, whose columns count characters.
#[doc(hidden)]
pub fn locate(text: &str, location: &serde_saphyr::Location) -> Location {
    let to_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Location::from_char_column(text, to_usize(location.line()), to_usize(location.column()))
}

/// Prints `value` as YAML: block style; two spaces per level, also for lists under a key; keys in their
/// order; literal blocks for multi-line text; quotes where a YAML 1.1 or 1.2 reader would otherwise read
/// another value. The result ends with a line break and parses back to the same value (F-004).
#[must_use]
pub fn print(value: &Value) -> String {
    let options = serde_saphyr::ser_options! {
        compact_list_indent: false,
        // Disables the breaking of long lines.
        folded_wrap_chars: usize::MAX,
    };
    let marked_value = mark_letters(value);
    let yaml = serde_saphyr::to_string_with_options(marked_value.as_ref().unwrap_or(value), options);
    match yaml {
        Ok(yaml) if marked_value.is_some() => yaml.replace(UNQUOTED_MARK, ""),
        Ok(yaml) => yaml,
        // Fails only for a broken writer or a non-scalar key. JSON is valid YAML as well.
        Err(_) => format!("{value}\n"),
    }
}

/// Private-use character appended to a text so that the writer does not quote it; removed from the output.
const UNQUOTED_MARK: char = '\u{e002}';

/// Marks the texts `y` and `n`, so that the writer does not quote them: they name coordinates, and common
/// readers of both versions take them as text. Returns `None` if `value` has none, or contains the mark
/// itself.
fn mark_letters(value: &Value) -> Option<Value> {
    fn any_text(value: &Value, is_match: &impl Fn(&str) -> bool) -> bool {
        match value {
            Value::String(text) => is_match(text),
            Value::Array(items) => items.iter().any(|item| any_text(item, is_match)),
            Value::Object(map) => map.iter().any(|(key, value)| is_match(key) || any_text(value, is_match)),
            _ => false,
        }
    }
    fn mark_values(value: &Value) -> Value {
        let mark_text =
            |text: &str| if is_letter(text) { format!("{text}{UNQUOTED_MARK}") } else { text.to_owned() };
        match value {
            Value::String(text) => mark_text(text).into(),
            Value::Array(items) => items.iter().map(mark_values).collect(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| (mark_text(key), mark_values(value))).collect()
            }
            other => other.clone(),
        }
    }
    fn is_letter(text: &str) -> bool {
        matches!(text, "y" | "n" | "Y" | "N")
    }
    let needs_marks =
        any_text(value, &is_letter) && !any_text(value, &|text: &str| text.contains(UNQUOTED_MARK));
    needs_marks.then(|| mark_values(value))
}

/// Indents each non-empty line of `text` by `width` spaces. Indented YAML of a mapping or list still has the
/// same value; an indented literal block on its own may have another.
#[must_use]
pub fn indent_lines(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + width * 16);
    for line in text.split_inclusive('\n') {
        if !line.trim_end_matches(['\n', '\r']).is_empty() {
            out.extend(std::iter::repeat_n(' ', width));
        }
        out += line;
    }
    out
}
