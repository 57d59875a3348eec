//! Findings about single operations: each names the number, name and path of its operation, and has the
//! place of the operation.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::Value;

use super::body::BlockJson;
use crate::finding::{FindingReport, clip};
use crate::limits::Limits;
use crate::repair::json::{self, PathStep};
use crate::span::Place;
use crate::state::Operation;

/// Maximum length in characters of the name and path of an operation in a message.
const MAX_NAME_CHARS: usize = 60;

/// Maximum length in bytes of a key on a path to operations, with its quotes.
const MAX_KEY_BYTES: usize = 64;

/// A finding about the operation at a path in the JSON of a block.
pub(super) struct OperationFinding {
    /// Path from the root of the JSON to the operation.
    pub(super) path: Vec<PathStep>,
    pub(super) report: FindingReport,
}

/// Puts the operation before the message of a finding: its number in the block, from 1, its name and its
/// path.
pub(super) fn name_operation(number: usize, operation: &Operation, report: FindingReport) -> FindingReport {
    let parts = [operation.op(), operation.path()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name = match &*parts.join(" ") {
        "" => String::new(),
        name => format!(" ({})", clip(name, MAX_NAME_CHARS)),
    };
    FindingReport { message: format!("operation {number}{name}: {}", report.message), ..report }
}

/// Moves findings to their operations in `text`, which starts at the place `at` and from which `json` was
/// read. A finding keeps its place if the text found for it does not read as its operation.
pub(super) fn place_findings(
    findings: &mut [OperationFinding],
    text: &str,
    at: Place,
    json: &BlockJson,
    limits: &Limits,
) {
    if findings.is_empty() {
        return;
    }
    let paths: HashSet<&[PathStep]> = findings.iter().map(|finding| finding.path.as_slice()).collect();
    let spans_by_path = find_spans(text, json.span.clone(), &paths);
    let mut spans: Vec<(&mut FindingReport, Range<usize>)> = findings
        .iter_mut()
        .filter_map(|finding| {
            let span = spans_by_path.get(&finding.path)?.clone();
            let value = value_at(&json.value, &finding.path)?;
            reads_as(&text[span.clone()], value, limits).then_some((&mut finding.report, span))
        })
        .collect();
    spans.sort_by_key(|(_, span)| span.start);
    // `place` is the place of the offset `counted_end`.
    let (mut place, mut counted_end) = (at, 0);
    for (report, span) in spans {
        place.advance(&text[counted_end..span.start]);
        counted_end = span.start;
        (report.place, report.end) = (place, at.offset + span.end);
    }
}

/// Finds the spans of the lists and objects at these paths, by brackets and double quotes only, since the
/// text may be broken JSON.
fn find_spans(
    text: &str,
    span: Range<usize>,
    paths: &HashSet<&[PathStep]>,
) -> HashMap<Vec<PathStep>, Range<usize>> {
    let max_depth = paths.iter().map(|path| path.len()).max().unwrap_or_default();
    let bytes = &text.as_bytes()[..span.end];
    // Path to the current value, starts of the open lists and objects, and the result.
    let (mut path, mut starts, mut spans) = (Vec::new(), Vec::new(), HashMap::new());
    let mut at = span.start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at);
                let is_key = bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                if let Some(PathStep::Key(key)) =
                    path.last_mut().filter(|_| is_key && end - at <= MAX_KEY_BYTES)
                {
                    text[at + 1..end - 1].clone_into(key);
                }
                at = end;
                continue;
            }
            b'[' | b'{' => {
                starts.push(at);
                let is_list = bytes[at] == b'[';
                path.push(if is_list { PathStep::Index(0) } else { PathStep::Key(String::new()) });
            }
            b']' | b'}' => {
                path.pop();
                if let Some(start) = starts.pop()
                    && path.len() <= max_depth
                    && paths.contains(path.as_slice())
                {
                    spans.insert(path.clone(), start..at + 1);
                }
            }
            b',' => {
                if let Some(PathStep::Index(index)) = path.last_mut() {
                    *index += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    spans
}

/// Returns the offset after the string whose opening quote is at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the value at a path.
fn value_at<'a>(value: &'a Value, path: &[PathStep]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        PathStep::Key(key) => value.get(key),
        PathStep::Index(index) => value.get(index),
    })
}

/// Returns whether `text`, read without the text around it, gives `value`.
fn reads_as(text: &str, value: &Value, limits: &Limits) -> bool {
    match json::parse_strict(text, limits) {
        Ok(parsed) => parsed == *value,
        Err(_) => json::find(text, limits).value.is_some_and(|found| found == *value),
    }
}
