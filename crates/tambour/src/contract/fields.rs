//! Checks of the fields of contract events (J-002 to J-014), without changing them. The module `order` checks
//! the order of the events.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::order::{ContractEvent, PhaseId, fault_report};
use super::rules;
use crate::finding::{FindingReport, Rule, clip};
use crate::policy::queries::{MAX_QUERIES, MAX_QUERY_CHARS, USUAL_QUERIES, cite_event_row};
use crate::policy::rules as query_rules;
use crate::privacy::DetectorSet;
use crate::schema::type_name;
use crate::span::{Extent, Place};

/// Checks the contract event `name`; `data` is `None` if it could not be parsed, which is reported
/// separately. Returns `None` if the contract has no event of that name.
pub(super) fn check_event(
    name: &str,
    data: Option<&Map<String, Value>>,
    privacy: &DetectorSet,
    extent: Extent,
    out: &mut Vec<FindingReport>,
) -> Option<ContractEvent> {
    let mut fields = ContractFields { name, data, extent, out };
    Some(match name {
        "serp_summary" => {
            if let Some(text) = fields.check_text("text", rules::SERP_SUMMARY_EMPTY, "J-002") {
                check_summary(text, extent, fields.out);
            }
            ContractEvent::SerpSummary
        }
        "thinking_start" => {
            fields.reject_fields("J-006");
            ContractEvent::ThinkingStart
        }
        "phase_start" => {
            fields.check_text("title", rules::TITLE_EMPTY, "J-009");
            ContractEvent::PhaseStart(fields.check_phase_id())
        }
        "phase_delta" => {
            fields.check_text("text", rules::DELTA_EMPTY, "J-011");
            ContractEvent::PhaseDelta(fields.read_id().unwrap_or(PhaseId::Unreadable))
        }
        "thinking_end" => {
            fields.reject_fields("J-012");
            ContractEvent::ThinkingEnd
        }
        "final_delta" => {
            fields.check_text("text", rules::DELTA_EMPTY, "J-013");
            ContractEvent::FinalDelta
        }
        "serp_queries" => {
            fields.check_queries(privacy);
            ContractEvent::SerpQueries
        }
        "final_end" => {
            fields.reject_fields("J-014");
            ContractEvent::FinalEnd
        }
        _ => return None,
    })
}

/// Fields of one contract event, and the list that takes the reports on them. A `row` in its methods is the
/// row of the specification that a report cites.
struct ContractFields<'a> {
    name: &'a str,
    /// Fields, or `None` if they could not be parsed.
    data: Option<&'a Map<String, Value>>,
    extent: Extent,
    out: &'a mut Vec<FindingReport>,
}

impl<'a> ContractFields<'a> {
    /// Text of `field`: a non-empty string, for titles and summaries also not blank. Reports any other
    /// value and returns `None`; an empty or missing text breaks `empty_rule`.
    fn check_text(&mut self, field: &str, empty_rule: &'static Rule, row: &'static str) -> Option<&'a str> {
        match self.data?.get(field) {
            Some(Value::String(text)) => {
                // The text of a delta may be blank.
                let is_empty =
                    if empty_rule == rules::DELTA_EMPTY { text.is_empty() } else { text.trim().is_empty() };
                if !is_empty {
                    return Some(text);
                }
                let message = format!("{field} of {} is empty", self.name);
                self.out.push(fault_report(empty_rule, self.extent, message).with_row(row));
            }
            None => {
                let message = format!("{} has no {field}", self.name);
                self.out.push(fault_report(empty_rule, self.extent, message).with_row(row));
            }
            Some(other) => {
                let message = format!("{field} of {} is {}, not a string", self.name, type_name(other));
                self.out.push(fault_report(rules::FIELD_TYPE, self.extent, message).with_row(row));
            }
        }
        None
    }

    /// Id of the phase that starts; reports an id that is missing or not a positive integer.
    fn check_phase_id(&mut self) -> PhaseId {
        self.read_id().unwrap_or_else(|| {
            self.out.push(fault_report(
                rules::PHASE_ID_INVALID,
                self.extent,
                "the id of the phase is missing or not a positive integer",
            ));
            PhaseId::Unreadable
        })
    }

    /// Id of the phase; `None` if it is missing or not a positive integer. [`PhaseId::Unreadable`] if the
    /// fields of the event could not be parsed, which is reported already.
    fn read_id(&self) -> Option<PhaseId> {
        let Some(data) = self.data else { return Some(PhaseId::Unreadable) };
        match data.get("id").and_then(Value::as_u64) {
            Some(id) if id > 0 => Some(PhaseId::Known(id)),
            _ => None,
        }
    }

    /// Reports the first field that does not belong to the envelope.
    fn reject_fields(&mut self, row: &'static str) {
        let Some(data) = self.data else { return };
        if let Some(field) = data.keys().find(|key| !matches!(key.as_str(), "message_id" | "request_id")) {
            let message = format!("{} has the field {}", self.name, quote_name(field));
            self.out.push(fault_report(rules::FIELD_UNEXPECTED, self.extent, message).with_row(row));
        }
    }

    /// Checks the array `queries` and the strings in it.
    fn check_queries(&mut self, privacy: &DetectorSet) {
        let Some(data) = self.data else { return };
        let list = data.get("queries");
        let strings: Option<Vec<&str>> =
            list.and_then(Value::as_array).and_then(|list| list.iter().map(Value::as_str).collect());
        match strings {
            Some(strings) => check_queries(&strings, privacy, self.extent.place, self.extent.end, self.out),
            None => {
                let message = match list {
                    None => "serp_queries has no queries".to_owned(),
                    Some(Value::Array(_)) => "a query is not a string".to_owned(),
                    Some(other) => format!("`queries` is {}, not an array of strings", type_name(other)),
                };
                self.out.push(fault_report(rules::FIELD_TYPE, self.extent, message).with_row("J-003"));
            }
        }
    }
}

/// Checks that a summary is plain text of one or two sentences (J-002).
fn check_summary(text: &str, at: Extent, out: &mut Vec<FindingReport>) {
    if let Some(tag) = find_tag(text) {
        let message = format!("serp_summary holds the tag {}", quote_name(tag));
        out.push(fault_report(rules::SERP_SUMMARY_MARKUP, at, message));
    }
    let sentences = count_sentences(text);
    if sentences > 2 {
        out.push(fault_report(
            rules::SERP_SUMMARY_SENTENCES,
            at,
            format!("serp_summary has {sentences} sentences"),
        ));
    }
}

/// First match of tag syntax: `<`, an optional `/`, an ASCII letter, up to the next `>` without another `<`
/// (T-028).
fn find_tag(text: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(offset) = text[from..].find('<') {
        let start = from + offset;
        let tag_text = &text[start + 1..];
        let name = tag_text.strip_prefix('/').unwrap_or(tag_text);
        let slash_len = tag_text.len() - name.len();
        let end = tag_text.find(['<', '>']);
        if name.starts_with(|c: char| c.is_ascii_alphabetic())
            && let Some(end) = end.filter(|&end| tag_text.as_bytes()[end] == b'>')
            && is_tag_content(name[..end - slash_len].trim_end_matches('/'))
        {
            return Some(&text[start..start + end + 2]);
        }
        from = start + 1 + end?;
    }
    None
}

/// Returns whether `text`, the inside of a tag, is a name with or without attributes, unlike in
/// `<https://a.b>`.
fn is_tag_content(text: &str) -> bool {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    let attributes = text.trim_start_matches(is_name_char);
    (attributes.is_empty() || attributes.starts_with(char::is_whitespace)) && !text.contains("//")
}

/// Lower bound of the number of sentences: an ideographic mark always ends one, a Latin mark only at the end
/// of the text, or before white space and a letter that may begin a sentence.
fn count_sentences(text: &str) -> usize {
    let mut count = 0;
    // True if the current sentence has a letter or digit.
    let mut has_words = false;
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        let is_end = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => match chars.peek() {
                None => true,
                Some(next) if next.is_whitespace() => chars
                    .clone()
                    .find(|c| !c.is_whitespace())
                    .is_some_and(|c| c.is_uppercase() || !c.is_ascii()),
                Some(_) => false,
            },
            _ => false,
        };
        if is_end && has_words {
            count += 1;
            has_words = false;
        } else if c.is_alphanumeric() {
            has_words = true;
        }
    }
    count + usize::from(has_words)
}

/// A name from the stream for a message: quoted and shortened.
pub(super) fn quote_name(text: &str) -> String {
    format!("`{}`", clip(text, 40))
}

/// Reports faults of the queries of an event, which starts at `place` and ends at offset `end`, without
/// changing them (J-004, J-005).
pub fn check_queries(
    queries: &[&str],
    privacy: &DetectorSet,
    place: Place,
    end: usize,
    out: &mut Vec<FindingReport>,
) {
    let mut report = |rule: &'static Rule, message: String| {
        out.push(cite_event_row(FindingReport::new(rule, place, end, message)));
    };
    // Spellings of the queries read so far, by their lower-case form.
    let mut spellings_by_query: HashMap<String, HashSet<&str>> = HashMap::new();
    for (index, query) in queries.iter().enumerate() {
        let number = index + 1;
        let trimmed = query.trim();
        if trimmed.is_empty() {
            report(query_rules::SERP_QUERY_EMPTY, format!("query {number} is blank"));
            continue;
        }
        if let Some(sensitive) = privacy.find_first(query) {
            report(
                query_rules::SERP_QUERY_SENSITIVE,
                format!("query {number} holds sensitive data: {}", sensitive.kind),
            );
        }
        let length = query.chars().count();
        if length > MAX_QUERY_CHARS {
            report(query_rules::SERP_QUERY_TOO_LONG, format!("query {number} has {length} characters"));
        }
        let spellings = spellings_by_query.entry(trimmed.to_lowercase()).or_default();
        let has_other_spelling = !spellings.is_empty();
        if !spellings.insert(trimmed) {
            report(query_rules::SERP_QUERIES_DUPLICATE, format!("query {number} repeats another one"));
        } else if has_other_spelling {
            let message = format!("query {number} differs from another one only by upper and lower case");
            report(query_rules::SERP_QUERIES_CASE, message);
        }
    }
    match queries.len() {
        0 => report(query_rules::SERP_QUERIES_EMPTY, "no queries".to_owned()),
        count if count > MAX_QUERIES => {
            report(query_rules::SERP_QUERIES_TOO_MANY, format!("{count} queries"))
        }
        count if count > USUAL_QUERIES => report(query_rules::SERP_QUERIES_MANY, format!("{count} queries")),
        _ => {}
    }
}
