//! Figures of replies (counts, tokens, cost, times) over days or hours: `GET /api/v1/figures`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use jiff::civil::Date;
use jiff::{ToSpan, Unit};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::keys::Caller;
use super::page::QueryParams;
use crate::base::clock;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::run::quotas::day;
use crate::store::{FigureStep, FirstTextTimes, ReplyCounts, RuleCount, StepFigures, StepRepairs};

/// Number of days when `from` is absent.
const DEFAULT_DAYS: i64 = 7;
/// Maximum number of days with steps of one hour.
const MAX_DAYS_BY_HOUR: i32 = 31;
/// Maximum number of days with steps of one day.
const MAX_DAYS_BY_DAY: i32 = 366;
/// Maximum number of rules whose repairs are shown: those with the most repairs.
const MAX_RULES: u32 = 100;

/// Query of the figures: range of days, and length of a step.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FiguresQuery {
    /// First day; when absent, the range has `DEFAULT_DAYS` days.
    from: Option<String>,
    /// Last day; today when absent.
    to: Option<String>,
    /// Length of a step: `day` (default) or `hour`.
    by: Option<String>,
}

/// Figures of one or more upstreams and steps.
#[derive(Default)]
struct FigureSum {
    counts: ReplyCounts,
    first_text_times: FirstTextTimes,
}

impl FigureSum {
    fn add(&mut self, row: &StepFigures) {
        self.counts.add(&row.counts);
        self.first_text_times.merge(&row.first_text_times);
    }

    /// Returns `id_fields`, which say what was summed, followed by the figures.
    fn to_json(&self, id_fields: &[(&str, Value)]) -> Value {
        let mut fields: Map<String, Value> =
            id_fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        if let Value::Object(counts) = json!(self.counts) {
            fields.extend(counts);
        }
        // Stored in millionths.
        #[expect(clippy::cast_precision_loss)]
        fields.insert("cost".to_owned(), (self.counts.cost as f64 / 1e6).into());
        for (name, quantile) in [("first_text_ms", 0.5), ("first_text_p95_ms", 0.95)] {
            fields.insert(name.to_owned(), json!(self.first_text_times.quantile(quantile)));
        }
        fields.into()
    }
}

/// `GET /api/v1/figures`: figures of all owners for an admin, otherwise of the caller's owner.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(range): QueryParams<FiguresQuery>,
) -> Result<Json<Value>, Problem> {
    let (step, max_days) = match range.by.as_deref() {
        None | Some("day") => (FigureStep::Day, MAX_DAYS_BY_DAY),
        Some("hour") => (FigureStep::Hour, MAX_DAYS_BY_HOUR),
        Some(_) => {
            return Err(Problem::invalid("invalid_field", "`by` must be `hour` or `day`").with("field", "by"));
        }
    };
    let today: Date = day(clock::now()).parse().map_err(|_| Problem::internal())?;
    let to = parse_day("to", range.to.as_deref())?.unwrap_or(today);
    let from = match parse_day("from", range.from.as_deref())? {
        Some(from) => from,
        None => to.saturating_sub((DEFAULT_DAYS - 1).days()),
    };
    // A range that cannot be computed counts as too long.
    let days = to.since((Unit::Day, from)).map_or(i32::MAX, |span| span.get_days().saturating_add(1));
    if days < 1 || days > max_days {
        let detail = format!(
            "`from` to `to` must cover 1 to {max_days} days with `by={}`",
            if step == FigureStep::Day { "day" } else { "hour" }
        );
        return Err(Problem::invalid("invalid_field", detail).with("field", "from"));
    }
    let owner = (!caller.is_admin).then_some(caller.owner.as_str());
    let (from, to) = (from.to_string(), to.to_string());
    let rows = app.store.figures(owner, (&from, &to), step).await?;
    let repairs = app.store.repairs(owner, (&from, &to), step, MAX_RULES).await?;
    let (mut total, mut sums_by_time, mut sums_by_upstream) =
        (FigureSum::default(), BTreeMap::new(), BTreeMap::new());
    let mut row_figures = Vec::with_capacity(rows.len());
    for row in &rows {
        total.add(row);
        sums_by_time.entry(&*row.time).or_insert_with(FigureSum::default).add(row);
        sums_by_upstream.entry(&row.upstream).or_insert_with(FigureSum::default).add(row);
        let mut sum = FigureSum::default();
        sum.add(row);
        row_figures
            .push(sum.to_json(&[("time", step_time(&row.time)), ("upstream", upstream_name(&row.upstream))]));
    }
    let mut rules_by_time: BTreeMap<&str, Vec<&RuleCount>> = BTreeMap::new();
    for StepRepairs { time, rule } in &repairs {
        // A step with repairs is listed even if no reply ended in it.
        sums_by_time.entry(time).or_default();
        rules_by_time.entry(time).or_default().push(rule);
    }
    let times = sums_by_time.iter().map(|(time, sum)| {
        let mut rules = rules_by_time.remove(time).unwrap_or_default();
        rules.sort_by_key(|rule| Reverse(rule.count));
        sum.to_json(&[("time", step_time(time)), ("repairs", json!(rules))])
    });
    let times: Vec<Value> = times.collect();
    let upstreams: Vec<Value> = sums_by_upstream
        .iter()
        .map(|(name, sum)| sum.to_json(&[("upstream", upstream_name(name))]))
        .collect();
    Ok(Json(json!({
        "from": from,
        "to": to,
        "by": if step == FigureStep::Day { "day" } else { "hour" },
        "currency": app.loaded_config().config.currency,
        "total": total.to_json(&[]),
        "times": times,
        "upstreams": upstreams,
        "data": row_figures,
        "repairs": sum_by_rule(&repairs),
    })))
}

/// Adds up the repairs of all steps by rule. Returns the most frequent rules first.
fn sum_by_rule(repairs: &[StepRepairs]) -> Vec<RuleCount> {
    let mut sums: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for StepRepairs { rule: RuleCount { rule, code, count }, .. } in repairs {
        let sum = sums.entry((rule, code)).or_default();
        *sum = sum.saturating_add(*count);
    }
    let sums = sums.into_iter();
    let mut sums: Vec<RuleCount> = sums
        .map(|((rule, code), count)| RuleCount { rule: rule.to_owned(), code: code.to_owned(), count })
        .collect();
    sums.sort_by_key(|rule| Reverse(rule.count));
    sums
}

/// Parses the day `YYYY-MM-DD` in the field `name`.
fn parse_day(name: &str, day: Option<&str>) -> Result<Option<Date>, Problem> {
    let Some(day) = day else { return Ok(None) };
    match day.parse() {
        // Ten characters: `jiff` reads other notations too.
        Ok(date) if day.len() == 10 => Ok(Some(date)),
        _ => {
            let detail = format!("`{name}` must be a day such as 2026-01-31");
            Err(Problem::invalid("invalid_field", detail).with("field", name))
        }
    }
}

/// Returns a day (`2026-01-31`) as it is, an hour (`2026-01-31T09`) as an RFC 3339 time.
fn step_time(step: &str) -> Value {
    if step.len() > 10 { format!("{step}:00:00Z").into() } else { step.into() }
}

/// Returns the name of an upstream, or `null` if it is no longer known.
fn upstream_name(name: &str) -> Value {
    if name.is_empty() { Value::Null } else { name.into() }
}
