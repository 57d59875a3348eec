//! Checks of search queries in events, without changing them (J-004, J-005).

use std::collections::{HashMap, HashSet};

use crate::finding::{FindingReport, Rule};
use crate::policy::queries::{MAX_QUERIES, MAX_QUERY_CHARS, USUAL_QUERIES, cite_event_row};
use crate::policy::rules;
use crate::privacy::DetectorSet;
use crate::span::Place;

/// Reports faults of the queries of an event, unchanged (J-004, J-005).
pub fn check(
    queries: &[&str],
    privacy: &DetectorSet,
    place: Place,
    end: usize,
    out: &mut Vec<FindingReport>,
) {
    let mut report = |rule: &'static Rule, message: String| {
        out.push(cite_event_row(FindingReport::new(rule, place, end, message)));
    };
    let mut before: HashMap<String, HashSet<&str>> = HashMap::new();
    for (index, query) in queries.iter().enumerate() {
        let number = index + 1;
        let trimmed = query.trim();
        if trimmed.is_empty() {
            report(rules::SERP_QUERY_EMPTY, format!("query {number} is blank"));
            continue;
        }
        if let Some(found) = privacy.find_first(query) {
            report(
                rules::SERP_QUERY_SENSITIVE,
                format!("query {number} holds sensitive data: {}", found.kind),
            );
        }
        let length = query.chars().count();
        if length > MAX_QUERY_CHARS {
            report(rules::SERP_QUERY_TOO_LONG, format!("query {number} has {length} characters"));
        }
        let spellings = before.entry(trimmed.to_lowercase()).or_default();
        let has_other_spelling = !spellings.is_empty();
        if !spellings.insert(trimmed) {
            report(rules::SERP_QUERIES_DUPLICATE, format!("query {number} repeats another one"));
        } else if has_other_spelling {
            let message = format!("query {number} differs from another one only by upper and lower case");
            report(rules::SERP_QUERIES_CASE, message);
        }
    }
    match queries.len() {
        0 => report(rules::SERP_QUERIES_EMPTY, "no queries".to_owned()),
        count if count > MAX_QUERIES => report(rules::SERP_QUERIES_TOO_MANY, format!("{count} queries")),
        count if count > USUAL_QUERIES => report(rules::SERP_QUERIES_MANY, format!("{count} queries")),
        _ => {}
    }
}
