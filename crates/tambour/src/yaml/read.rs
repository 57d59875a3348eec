//! Reads YAML text into values.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{Error as Cause, MergeKeyPolicy, MessageFormatter, UserMessageFormatter};

use crate::error::{Error, Location, Result};
use crate::texts::explain_parse_error;

/// Limits for one YAML text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct YamlLimits {
    /// Most bytes of the text.
    pub bytes: usize,
    /// Deepest nesting of lists and mappings.
    pub depth: usize,
    /// Most nodes: mappings, lists, keys and scalars. Repetition by an alias counts again.
    pub nodes: usize,
    /// Most aliases (`*name`), and most anchors.
    pub aliases: usize,
}

impl Default for YamlLimits {
    fn default() -> YamlLimits {
        YamlLimits { bytes: 4 << 20, depth: 64, nodes: 100_000, aliases: 100 }
    }
}

/// Parses one YAML document within the default [`YamlLimits`]. An empty document is `null`. `what` names the
/// text in errors.
///
/// # Errors
/// The text is not YAML, has several documents, a duplicate or non-scalar key, or a number that is not
/// finite, or exceeds a limit. The error has the position.
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

/// Returns options for the reader. An alias is charged for what it repeats, so a small text cannot become a
/// large value.
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
            max_events: limits.nodes.saturating_mul(2),
            max_aliases: limits.aliases,
            max_anchors: limits.aliases,
            max_recorded_anchor_events: limits.nodes,
            max_recorded_anchor_bytes: limits.bytes,
            max_total_scalar_bytes: limits.bytes,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
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
    let found = cause.location().filter(|found| found.line() > 0);
    let place = found.map(|found| locate(text, &found));
    Error::malformed(format!("{subject} is not YAML as expected: {message}"), place)
}

/// Returns the position of a value in its text.
pub fn locate(text: &str, found: &serde_saphyr::Location) -> Location {
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Location::from_char_column(text, at(found.line()), at(found.column()))
}
