//! Search queries: their rules (T-044 to T-051, J-004) and the repairs that enforce them. The checker of
//! streams has independent code.
//!
//! Queries are cleaned in this order:
//!
//! 1. *type*: a value that is no string is dropped;
//! 2. *empty*: blank queries are dropped;
//! 3. *sensitive*: dropped, or generalised and kept if nothing sensitive remains;
//! 4. *length*: truncated, since a generalised query may be longer; if the rest is sensitive (half of a long
//!    number may be a phone number), the query is dropped;
//! 5. *duplicate*: compared after truncation, since that can make two queries equal;
//! 6. *count*: last, so that bad queries do not use up the places of good ones.
//!
//! Queries are compared trimmed and otherwise kept as the model wrote them.

use std::collections::HashSet;

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use super::{places, rules};
use crate::finding::{Report, Rule};
use crate::options::Sensitive;
use crate::privacy::Privacy;
use crate::schema::type_name;
use crate::span::Place;

/// Most queries of one reply (T-045).
pub const MOST: usize = 5;
/// Usual number of queries at most (T-049).
pub const USUAL: usize = 3;
/// Most Unicode scalar values of one query (T-047, R-10).
pub const LONGEST: usize = 80;

/// Origin of queries; findings name the row of that specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// The queries block of a ThinkingML reply.
    #[default]
    Block,
    /// A `serp_queries` event.
    Event,
}

/// Settings for cleaning queries before they are sent.
#[derive(Clone, Copy, Debug)]
pub struct Cleaner<'a> {
    /// Policy for a sensitive query.
    pub sensitive: Sensitive,
    /// Detectors of sensitive data.
    pub privacy: &'a Privacy,
    /// Origin of the queries.
    pub source: Source,
}

impl Cleaner<'_> {
    /// Parses `text` strictly as JSON and cleans its queries; `None` if there are none to send (T-044).
    ///
    /// A caller that can repair JSON does so first and uses [`Cleaner::clean`].
    #[must_use]
    pub fn read(&self, text: &str, place: Place, end: usize) -> (Option<Vec<String>>, Vec<Report>) {
        match serde_json::from_str(text) {
            Ok(value) => self.clean_text(&value, text, place, end),
            Err(_) => {
                let report = Report::new(rules::SERP_QUERIES_JSON, place, end, "the queries are not JSON");
                (None, vec![report.repaired("no queries are sent")])
            }
        }
    }

    /// Cleaned queries of a JSON value, with reports on them; `None` if the value is no array.
    ///
    /// All reports have the place of the value.
    #[must_use]
    pub fn clean(&self, value: &Value, place: Place, end: usize) -> (Option<Vec<String>>, Vec<Report>) {
        self.clean_at(value, &[], place, end)
    }

    /// Like [`Cleaner::clean`], for a value that was parsed from `text` at `place`: reports on one query have
    /// its place.
    pub(super) fn clean_text(
        &self,
        value: &Value,
        text: &str,
        place: Place,
        end: usize,
    ) -> (Option<Vec<String>>, Vec<Report>) {
        let mut at = place;
        let mut read = 0;
        let spans: Vec<(Place, usize)> = places::items(text)
            .into_iter()
            .map(|item| {
                at.advance(&text[read..item.start]);
                read = item.start;
                (at, at.offset + item.len())
            })
            .collect();
        // A repairing reader may have found other items than these spans.
        let stands = |(value, (at, end)): (&Value, &(Place, usize))| {
            let item = &text[at.offset - place.offset..end - place.offset];
            value.as_str().is_none_or(|value| item.contains(value) || item.contains('\\'))
        };
        let known = value
            .as_array()
            .is_some_and(|values| values.len() == spans.len() && values.iter().zip(&spans).all(stands));
        self.clean_at(value, if known { &spans } else { &[] }, place, end)
    }

    fn clean_at(
        &self,
        value: &Value,
        spans: &[(Place, usize)],
        place: Place,
        end: usize,
    ) -> (Option<Vec<String>>, Vec<Report>) {
        let mut cleaning = Cleaning { cleaner: self, spans, place, end, reports: Vec::new() };
        let Value::Array(values) = value else {
            let message = format!("the queries are {}, not an array", type_name(value));
            cleaning.report(None, rules::SERP_QUERIES_NOT_ARRAY, message, "no queries are sent");
            return (None, cleaning.reports);
        };
        let queries = cleaning.run(values);
        (Some(queries), cleaning.reports)
    }
}

struct Cleaning<'a> {
    cleaner: &'a Cleaner<'a>,
    /// Place and end of each query, if known.
    spans: &'a [(Place, usize)],
    place: Place,
    end: usize,
    reports: Vec<Report>,
}

impl Cleaning<'_> {
    fn run(&mut self, values: &[Value]) -> Vec<String> {
        let mut kept: Vec<String> = Vec::new();
        let mut numbers = Vec::new();
        let mut seen = HashSet::new();
        let mut folded = HashSet::new();
        for (index, value) in values.iter().enumerate() {
            let number = index + 1;
            let Value::String(query) = value else {
                let message = format!("query {number} is {}, not a string", type_name(value));
                self.report(Some(number), rules::SERP_QUERY_NOT_STRING, message, "query dropped");
                continue;
            };
            if query.trim().is_empty() {
                self.report(
                    Some(number),
                    rules::SERP_QUERY_EMPTY,
                    format!("query {number} is blank"),
                    "query dropped",
                );
                continue;
            }
            let Some(query) = self.harmless(number, query) else { continue };
            let Some(query) = self.short(number, query) else { continue };
            let same = query.trim().to_owned();
            let case = same.to_lowercase();
            if !seen.insert(same) {
                let message = format!("query {number} repeats another one");
                self.report(Some(number), rules::SERP_QUERIES_DUPLICATE, message, "query dropped");
                continue;
            }
            if !folded.insert(case) && kept.len() < MOST {
                let message = format!("query {number} differs from another one only by upper and lower case");
                self.note(Some(number), rules::SERP_QUERIES_CASE, message);
            }
            kept.push(query);
            numbers.push(number);
        }
        if values.len() > MOST {
            let message = format!("{} queries, at most {MOST} are allowed", values.len());
            let repair =
                if kept.len() > MOST { "the first 5 kept" } else { "the others were dropped already" };
            self.report(None, rules::SERP_QUERIES_TOO_MANY, message, repair);
            if let (Some(&first), Some(report)) = (numbers.get(MOST), self.reports.last_mut())
                && let (Some(&(place, _)), Some(&(_, end))) = (self.spans.get(first - 1), self.spans.last())
            {
                (report.place, report.end) = (place, end);
            }
        } else if kept.len() > USUAL {
            self.note(
                None,
                rules::SERP_QUERIES_MANY,
                format!("{} queries, one to three are usual", kept.len()),
            );
        }
        kept.truncate(MOST);
        if values.is_empty() {
            self.note(None, rules::SERP_QUERIES_EMPTY, "no queries");
        }
        kept
    }

    /// Removes or refuses sensitive data; `None` if the query is dropped (T-048).
    fn harmless(&mut self, number: usize, query: &str) -> Option<String> {
        let privacy = self.cleaner.privacy;
        let Some(found) = privacy.first(query) else { return Some(query.to_owned()) };
        let message = format!("query {number} holds sensitive data: {}", found.kind);
        if self.cleaner.sensitive == Sensitive::Generalise {
            let general = privacy.generalise(query);
            if privacy.first(&general).is_none() {
                self.report(Some(number), rules::SERP_QUERY_SENSITIVE, message, "data replaced by its kind");
                return Some(general);
            }
        }
        self.report(Some(number), rules::SERP_QUERY_SENSITIVE, message, "query dropped");
        None
    }

    /// Truncates the query to [`LONGEST`] characters; `None` if it is dropped (T-047).
    fn short(&mut self, number: usize, query: String) -> Option<String> {
        let length = query.chars().count();
        if length <= LONGEST {
            return Some(query);
        }
        let cut = cut(query.trim()).to_owned();
        let message = format!("query {number} has {length} characters, at most {LONGEST} are allowed");
        if cut.is_empty() {
            self.report(Some(number), rules::SERP_QUERY_TOO_LONG, message, "query dropped");
            return None;
        }
        self.report(Some(number), rules::SERP_QUERY_TOO_LONG, message, "query cut");
        if let Some(found) = self.cleaner.privacy.first(&cut) {
            let message = format!("the rest of query {number} reads as sensitive data: {}", found.kind);
            self.report(Some(number), rules::SERP_QUERY_SENSITIVE, message, "query dropped");
            return None;
        }
        Some(cut)
    }

    fn report(
        &mut self,
        number: Option<usize>,
        rule: &'static Rule,
        message: impl Into<String>,
        repair: &str,
    ) {
        self.note(number, rule, message);
        let report = self.reports.pop().expect("a report was just added");
        self.reports.push(report.repaired(repair));
    }

    /// Reports on one query, or on all of them.
    fn note(&mut self, number: Option<usize>, rule: &'static Rule, message: impl Into<String>) {
        let span = number.and_then(|number| self.spans.get(number - 1));
        let (place, end) = span.copied().unwrap_or((self.place, self.end));
        let report = Report::new(rule, place, end, message);
        self.reports.push(match self.cleaner.source {
            Source::Block => report,
            Source::Event => on_event(report),
        });
    }
}

/// Moves a report to the JSONSeq row of its rule, if there is one.
pub(crate) fn on_event(report: Report) -> Report {
    match report.rule.rows.iter().find(|row| row.starts_with("J-")) {
        Some(row) => report.row(row),
        None => report,
    }
}

/// Longest prefix of `query` of at most [`LONGEST`] scalar values, in whole graphemes and without trailing
/// white space. Empty if the first grapheme alone is too long.
fn cut(query: &str) -> &str {
    let mut scalars = 0;
    let mut end = 0;
    for (start, grapheme) in query.grapheme_indices(true) {
        scalars += grapheme.chars().count();
        if scalars > LONGEST {
            break;
        }
        end = start + grapheme.len();
    }
    query[..end].trim_end()
}
