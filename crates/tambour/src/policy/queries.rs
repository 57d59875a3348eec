//! Search queries: their rules (T-044 to T-051, J-004) and the repairs that enforce them. The checker of
//! streams has independent code.
//!
//! Queries are cleaned in this order:
//!
//! 1. *type*: a value that is not a string is dropped;
//! 2. *empty*: blank queries are dropped;
//! 3. *sensitive*: dropped, or generalised and kept if nothing sensitive remains;
//! 4. *length*: a long query is truncated, after step 3, which may lengthen it; if the rest is sensitive
//!    (half of a long number may be a phone number), the query is dropped;
//! 5. *duplicate*: compared after truncation, since that can make two queries equal;
//! 6. *count*: last, so that bad queries do not use up the places of good ones.
//!
//! Queries are trimmed only for comparison; apart from these steps they stay as the model wrote them.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use super::rules;
use crate::finding::{FindingReport, Rule};
use crate::options::SensitivePolicy;
use crate::privacy::DetectorSet;
use crate::schema::type_name;
use crate::span::{Extent, Place};

pub use crate::limits::{MAX_QUERIES, MAX_QUERY_CHARS};

/// Largest usual number of queries (T-049).
pub const USUAL_QUERIES: usize = 3;

/// Origin of queries. It decides which specification the findings cite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuerySource {
    /// The queries block of a ThinkingML reply.
    #[default]
    Block,
    /// A `serp_queries` event.
    Event,
}

/// Settings for cleaning queries before they are sent.
#[derive(Clone, Copy, Debug)]
pub struct QueryCleaner<'a> {
    /// Policy for a sensitive query.
    pub sensitive: SensitivePolicy,
    /// Detectors of sensitive data.
    pub privacy: &'a DetectorSet,
    /// Origin of the queries.
    pub source: QuerySource,
}

impl QueryCleaner<'_> {
    /// Parses `text` strictly as JSON and cleans its queries; `None` if it is not a JSON array (T-044).
    ///
    /// A caller that can repair JSON does so first and uses [`QueryCleaner::clean`].
    #[must_use]
    pub fn clean_json(
        &self,
        text: &str,
        place: Place,
        end: usize,
    ) -> (Option<Vec<String>>, Vec<FindingReport>) {
        match serde_json::from_str(text) {
            Ok(value) => self.clean_text(&value, text, place, end),
            Err(_) => {
                let report =
                    FindingReport::new(rules::SERP_QUERIES_JSON, place, end, "the queries are not JSON");
                (None, vec![report.with_repair("no queries are sent")])
            }
        }
    }

    /// Returns the cleaned queries of a JSON value, with reports on them; `None` if the value is not an
    /// array.
    ///
    /// All reports have the place of the value.
    #[must_use]
    pub fn clean(
        &self,
        value: &Value,
        place: Place,
        end: usize,
    ) -> (Option<Vec<String>>, Vec<FindingReport>) {
        self.clean_at(value, &[], place, end)
    }

    /// Like [`QueryCleaner::clean`], for a value that was parsed from `text` at `place`: a report on one
    /// query has the place of that query.
    pub(super) fn clean_text(
        &self,
        value: &Value,
        text: &str,
        place: Place,
        end: usize,
    ) -> (Option<Vec<String>>, Vec<FindingReport>) {
        let mut item_place = place;
        // Offset in `text` of `item_place`.
        let mut offset = 0;
        let spans: Vec<Extent> = item_spans(text)
            .into_iter()
            .map(|item| {
                item_place.advance(&text[offset..item.start]);
                offset = item.start;
                Extent { place: item_place, end: item_place.offset + item.len() }
            })
            .collect();
        // A repairing reader may have found other items than these spans. A query with escapes differs from
        // its text, so it is not compared.
        let is_in_span = |(value, span): (&Value, &Extent)| {
            let item = &text[span.place.offset - place.offset..span.end - place.offset];
            value.as_str().is_none_or(|value| item.contains(value) || item.contains('\\'))
        };
        let has_places = value
            .as_array()
            .is_some_and(|values| values.len() == spans.len() && values.iter().zip(&spans).all(is_in_span));
        self.clean_at(value, if has_places { &spans } else { &[] }, place, end)
    }

    /// Cleans the queries of a value between `place` and `end`. `spans` has the extent of each query;
    /// it is empty if they are not known.
    fn clean_at(
        &self,
        value: &Value,
        spans: &[Extent],
        place: Place,
        end: usize,
    ) -> (Option<Vec<String>>, Vec<FindingReport>) {
        let mut cleaning = CleaningPass { cleaner: self, spans, place, end, reports: Vec::new() };
        let Value::Array(values) = value else {
            let message = format!("the queries are {}, not an array", type_name(value));
            cleaning.push_repair_report(None, rules::SERP_QUERIES_NOT_ARRAY, message, "no queries are sent");
            return (None, cleaning.reports);
        };
        let queries = cleaning.clean_values(values);
        (Some(queries), cleaning.reports)
    }
}

/// Cleaning of one list of queries.
struct CleaningPass<'a> {
    cleaner: &'a QueryCleaner<'a>,
    /// Extent of each query; empty if they are not known.
    spans: &'a [Extent],
    /// Place of the list.
    place: Place,
    /// Offset after the list.
    end: usize,
    reports: Vec<FindingReport>,
}

impl CleaningPass<'_> {
    /// Applies the steps listed at the head of this file to the values; returns the queries to send.
    fn clean_values(&mut self, values: &[Value]) -> Vec<String> {
        let mut clean_queries: Vec<String> = Vec::new();
        // Position in `values`, from 1, of each clean query.
        let mut clean_numbers = Vec::new();
        let mut trimmed_queries = HashSet::new();
        let mut lowercase_queries = HashSet::new();
        for (index, value) in values.iter().enumerate() {
            let number = index + 1;
            let Value::String(query) = value else {
                let message = format!("query {number} is {}, not a string", type_name(value));
                self.push_repair_report(Some(number), rules::SERP_QUERY_NOT_STRING, message, "query dropped");
                continue;
            };
            if query.trim().is_empty() {
                self.push_repair_report(
                    Some(number),
                    rules::SERP_QUERY_EMPTY,
                    format!("query {number} is blank"),
                    "query dropped",
                );
                continue;
            }
            let Some(query) = self.remove_sensitive(number, query) else { continue };
            let Some(query) = self.shorten(number, query) else { continue };
            let trimmed_query = query.trim().to_owned();
            let lowercase = trimmed_query.to_lowercase();
            if !trimmed_queries.insert(trimmed_query) {
                let message = format!("query {number} repeats another one");
                self.push_repair_report(
                    Some(number),
                    rules::SERP_QUERIES_DUPLICATE,
                    message,
                    "query dropped",
                );
                continue;
            }
            if !lowercase_queries.insert(lowercase) && clean_queries.len() < MAX_QUERIES {
                let message = format!("query {number} differs from another one only by upper and lower case");
                self.push_unrepaired_report(Some(number), rules::SERP_QUERIES_CASE, message);
            }
            clean_queries.push(query);
            clean_numbers.push(number);
        }
        if values.len() > MAX_QUERIES {
            let message = format!("{} queries, at most {MAX_QUERIES} are allowed", values.len());
            let repair = if clean_queries.len() > MAX_QUERIES {
                "the first 5 kept"
            } else {
                "the others were dropped already"
            };
            self.push_repair_report(None, rules::SERP_QUERIES_TOO_MANY, message, repair);
            // The report covers the surplus queries.
            if let (Some(&surplus_number), Some(report)) =
                (clean_numbers.get(MAX_QUERIES), self.reports.last_mut())
                && let (Some(first), Some(last)) = (self.spans.get(surplus_number - 1), self.spans.last())
            {
                (report.place, report.end) = (first.place, last.end);
            }
        } else if clean_queries.len() > USUAL_QUERIES {
            self.push_unrepaired_report(
                None,
                rules::SERP_QUERIES_MANY,
                format!("{} queries, one to three are usual", clean_queries.len()),
            );
        }
        clean_queries.truncate(MAX_QUERIES);
        if values.is_empty() {
            self.push_unrepaired_report(None, rules::SERP_QUERIES_EMPTY, "no queries");
        }
        clean_queries
    }

    /// Replaces sensitive data in a query by its kind, if the policy allows it; `None` if the query is
    /// dropped (T-048).
    fn remove_sensitive(&mut self, number: usize, query: &str) -> Option<String> {
        let privacy = self.cleaner.privacy;
        let Some(found) = privacy.find_first(query) else { return Some(query.to_owned()) };
        let message = format!("query {number} holds sensitive data: {}", found.kind);
        if self.cleaner.sensitive == SensitivePolicy::Generalise {
            let general_query = privacy.generalise(query);
            if privacy.find_first(&general_query).is_none() {
                self.push_repair_report(
                    Some(number),
                    rules::SERP_QUERY_SENSITIVE,
                    message,
                    "data replaced by its kind",
                );
                return Some(general_query);
            }
        }
        self.push_repair_report(Some(number), rules::SERP_QUERY_SENSITIVE, message, "query dropped");
        None
    }

    /// Truncates the query to [`MAX_QUERY_CHARS`] characters; `None` if it is dropped (T-047).
    fn shorten(&mut self, number: usize, query: String) -> Option<String> {
        let length = query.chars().count();
        if length <= MAX_QUERY_CHARS {
            return Some(query);
        }
        let short_query = truncate_query(query.trim()).to_owned();
        let message =
            format!("query {number} has {length} characters, at most {MAX_QUERY_CHARS} are allowed");
        if short_query.is_empty() {
            self.push_repair_report(Some(number), rules::SERP_QUERY_TOO_LONG, message, "query dropped");
            return None;
        }
        self.push_repair_report(Some(number), rules::SERP_QUERY_TOO_LONG, message, "query cut");
        if let Some(found) = self.cleaner.privacy.find_first(&short_query) {
            let message = format!("the rest of query {number} looks like sensitive data: {}", found.kind);
            self.push_repair_report(Some(number), rules::SERP_QUERY_SENSITIVE, message, "query dropped");
            return None;
        }
        Some(short_query)
    }

    /// Like [`Self::push_unrepaired_report`], with the repair that was made.
    fn push_repair_report(
        &mut self,
        number: Option<usize>,
        rule: &'static Rule,
        message: impl Into<String>,
        repair: &str,
    ) {
        self.push_unrepaired_report(number, rule, message);
        let report = self.reports.pop().expect("a report was just added");
        self.reports.push(report.with_repair(repair));
    }

    /// Reports on the query `number`, counted from 1; `None` reports on the whole list.
    fn push_unrepaired_report(
        &mut self,
        number: Option<usize>,
        rule: &'static Rule,
        message: impl Into<String>,
    ) {
        let span = number.and_then(|number| self.spans.get(number - 1)).copied();
        let Extent { place, end } = span.unwrap_or(Extent { place: self.place, end: self.end });
        let report = FindingReport::new(rule, place, end, message);
        self.reports.push(match self.cleaner.source {
            QuerySource::Block => report,
            QuerySource::Event => cite_event_row(report),
        });
    }
}

/// Makes a report cite the row of its rule in the JSONSeq specification (`J-…`), if there is one.
pub(crate) fn cite_event_row(report: FindingReport) -> FindingReport {
    match report.rule.rows.iter().find(|row| row.starts_with("J-")) {
        Some(row) => report.with_row(row),
        None => report,
    }
}

/// Returns the longest prefix of `query` of at most [`MAX_QUERY_CHARS`] scalar values, in whole graphemes and
/// without trailing white space. It is empty if the first grapheme alone is too long.
fn truncate_query(query: &str) -> &str {
    let mut char_count = 0;
    let mut end = 0;
    for (start, grapheme) in query.grapheme_indices(true) {
        char_count += grapheme.chars().count();
        if char_count > MAX_QUERY_CHARS {
            break;
        }
        end = start + grapheme.len();
    }
    query[..end].trim_end()
}

/// Returns the byte range of each item of the first array in `text`. In invalid JSON the items may differ
/// from those that a repairing reader finds.
fn item_spans(text: &str) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let Some(start) = text.find('[') else { return items };
    let mut item: Option<Range<usize>> = None;
    // Depth of brackets inside the array, and the character that ends the current string.
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (offset, c) in text[start + 1..].char_indices() {
        let at = start + 1 + offset;
        let end = at + c.len_utf8();
        if quote.is_some() {
            if is_escaped {
                is_escaped = false;
            } else if c == '\\' {
                is_escaped = true;
            } else if quote == Some(c) {
                quote = None;
            }
        } else {
            match c {
                ',' if depth == 0 => {
                    items.extend(item.take());
                    continue;
                }
                ']' if depth == 0 => break,
                '"' => quote = Some('"'),
                // Not JSON, but models often write it instead.
                '\'' if item.is_none() => quote = Some('\''),
                '“' if item.is_none() => quote = Some('”'),
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ if c.is_whitespace() => continue,
                _ => {}
            }
        }
        item.get_or_insert(at..end).end = end;
    }
    items.extend(item);
    items
}
