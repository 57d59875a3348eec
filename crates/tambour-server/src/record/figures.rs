//! Figures of one reply (tokens, cost, outcome, repairs), as added to the totals of its hour.

use serde::Deserialize;
use serde_json::Value;

use super::spending::UpstreamSpending;
use crate::base::clock;
use crate::store::{Figures, FirstTextTimes, MessageRow, ReplyCounts, RuleCount};

/// Result of a reply, with its repairs.
#[derive(Debug, Default)]
pub(crate) struct ReplyEnd<'a> {
    /// `completed`, `failed` or `cancelled`.
    pub(crate) status: &'a str,
    /// Set when a fallback text is shown instead of the reply, or the reply is kept as prose.
    pub(crate) is_replaced: bool,
    /// Milliseconds from the request to the first text of the reply.
    pub(crate) first_text_ms: Option<u64>,
    /// Findings of the reply, as a JSON list.
    pub(crate) findings: Option<&'a Value>,
}

/// Fields of a finding that the figures need; a finding is counted if it has a `repair`.
#[derive(Deserialize)]
struct FindingFields<'a> {
    rule: &'a str,
    code: &'a str,
    repair: Option<&'a str>,
}

/// Returns the figures of a message, one for each upstream. The last of `calls` produced the reply.
pub(crate) fn message_figures(
    row: &MessageRow,
    status: &str,
    record: &Value,
    first_text_ms: Option<u64>,
    calls: &[UpstreamSpending],
) -> Vec<Figures> {
    let metadata = &record["metadata"];
    let has_metadata = |name: &str| metadata.get(name).is_some_and(|value| !value.is_null());
    let end = ReplyEnd {
        status,
        is_replaced: has_metadata("fallback_reason") || has_metadata("unused_reason"),
        first_text_ms,
        findings: record.get("findings"),
    };
    reply_figures(hour(&row.created), &row.owner, &end, calls)
}

/// Returns the figures of a reply that began in `hour` (`2026-11-27T03`), one for each upstream. The last of
/// `calls` produced the reply; its upstream also gets the counts of the reply itself: status, repairs, time
/// to the first text.
pub(crate) fn reply_figures(
    hour: &str,
    owner: &str,
    ReplyEnd { status, is_replaced, first_text_ms, findings }: &ReplyEnd<'_>,
    calls: &[UpstreamSpending],
) -> Vec<Figures> {
    let token_count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    let upstream_figures = |spending: &UpstreamSpending| Figures {
        hour: hour.to_owned(),
        owner: owner.to_owned(),
        upstream: spending.upstream.as_ref().to_owned(),
        counts: ReplyCounts {
            input_tokens: token_count(spending.tokens.input),
            output_tokens: token_count(spending.tokens.output),
            unpriced_tokens: token_count(spending.unpriced_tokens),
            cost: spending.cost,
            ..ReplyCounts::default()
        },
        ..Figures::default()
    };
    let mut figures: Vec<Figures> = calls.iter().map(upstream_figures).collect();
    if figures.is_empty() {
        // After an interruption the upstreams of a run are unknown: its figures name none.
        figures.push(Figures { hour: hour.to_owned(), owner: owner.to_owned(), ..Figures::default() });
    }
    let Some(Figures { counts, first_text, repairs, .. }) = figures.last_mut() else { return figures };
    *first_text = first_text_ms.map(FirstTextTimes::bucket);
    match *status {
        "completed" => counts.completed = 1,
        "cancelled" => counts.cancelled = 1,
        _ => counts.failed = 1,
    }
    if counts.completed == 1 {
        *repairs = repairs_by_rule(*findings);
        counts.replaced = i64::from(*is_replaced);
        counts.repaired = i64::from(!is_replaced && !repairs.is_empty());
    }
    figures
}

/// Returns the date and hour (`2026-11-27T03`) of an RFC 3339 time in UTC.
fn hour(time: &str) -> &str {
    time.get(..13).unwrap_or(time)
}

/// Returns the current date and hour in UTC (`2026-11-27T03`).
pub(crate) fn current_hour() -> String {
    hour(&clock::now().to_string()).to_owned()
}

/// Counts the findings that have a repair, by rule and code.
fn repairs_by_rule(findings: Option<&Value>) -> Vec<RuleCount> {
    let mut counts: Vec<RuleCount> = Vec::new();
    for finding in findings.and_then(Value::as_array).into_iter().flatten() {
        let Ok(FindingFields { rule, code, repair: Some(_) }) = FindingFields::deserialize(finding) else {
            continue;
        };
        match counts.iter_mut().find(|rule_count| rule_count.rule == rule && rule_count.code == code) {
            Some(rule_count) => rule_count.count += 1,
            None => counts.push(RuleCount { rule: rule.to_owned(), code: code.to_owned(), count: 1 }),
        }
    }
    counts
}
