//! Decision whether a complete object may be used as the plan: by the contract, its repairs and doubts, its
//! end and the text around it (P-026, P-027). A doubt says that a value may differ from the intended one. A
//! plan that is the only item of a list or under the only key of an object is unwrapped first.

use serde_json::Value;

use super::check::{CheckedPlan, MIN_NESTED_FIELDS, PLAN_FIELDS, check_plan};
use super::object::{PlanAnswer, PlanObject};
use super::rules;
use crate::finding::{Doubt, FindingReport, clip};
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::{BuiltValue, PathStep, ValueDoubt, ValueDoubts};
use crate::repair::rules as json_rules;
use crate::span::{Extent, Place};
use crate::texts::format_count;

/// Builds the finding on an object that exceeds the limits and has no value.
pub(super) fn too_large_report(start: Place, end: usize, options: &Options) -> FindingReport {
    let Limits { value, items, .. } = options.limits;
    let (bytes, values) = (format_count(value, "byte"), format_count(items, "value"));
    let message = format!("the object has more than {bytes} of text or {values}");
    FindingReport::new(&json_rules::LIMIT_EXCEEDED, start, end, message)
}

/// Checks an object against the contract, and decides whether its repairs, doubts, end and position allow its
/// use. Adds findings on its JSON to `object`.
pub(super) fn judge_plan(built_value: BuiltValue, object: &mut PlanObject, options: &Options) -> CheckedPlan {
    let end = built_value.end;
    let (value, wrapper) = unwrap_plan(built_value.value);
    let has_sent_answer = object.has_sent_answer();
    let PlanObject { context, reports, answer, allows_answer, .. } = object;
    let context = &*context;
    // An answer was emitted, and a later mode does not allow one.
    let is_retracted = has_sent_answer && !*allows_answer;
    let is_sent_twice = *answer == PlanAnswer::SentBeforeKey && !is_retracted;
    let start = object.places.start;
    let places = if wrapper.is_some() { &object.inner_places } else { &object.places };
    let has_two_lists = places.list_count > 1;
    let doubts = PlanDoubts::new(built_value.doubts, wrapper.as_ref());
    let mut checked_plan = check_plan(value, places, &doubts, options);
    let (has_two_modes, has_guess) = (doubts.has_two_modes(), doubts.has_guess_outside_calls());
    for duplicate in built_value.duplicates {
        let is_plan_member =
            |name: &str| duplicate.key == name && duplicate.second.place == places.member_extent(name).place;
        reports.push(match () {
            // The intended one of two lists of calls is unknown.
            () if has_two_lists && is_plan_member("tool_calls") => duplicate.report(duplicate.first),
            // The intended one of two modes, or of two values in a call, is unknown as well.
            () if checked_plan.is_acting
                && (is_plan_member("response_mode")
                    || doubts.is_duplicate_in_call(duplicate.second.place)) =>
            {
                duplicate.report(duplicate.first)
            }
            () if wrapper.is_none() && is_plan_member("thought") => duplicate
                .report(duplicate.second)
                .with_repair("both are sent as thinking, the last value is kept"),
            () if is_sent_twice && is_plan_member("direct_response") => {
                duplicate.report(duplicate.second).with_repair("both are sent, the last value is kept")
            }
            () if is_retracted && is_plan_member("direct_response") => duplicate.report_first_kept(),
            () => duplicate.report_last_kept(),
        });
    }
    if let Some(wrapper) = wrapper {
        let (message, repair) = match wrapper {
            PlanWrapper::List => ("the plan is an item of a list".to_owned(), "read alone"),
            PlanWrapper::Key(key) => {
                (format!("the plan is under the key `{}`", clip(&key, 60)), "read alone, the key is not used")
            }
        };
        let report = FindingReport::new(rules::PLAN_WRAPPED, start, end.offset, message);
        checked_plan.reports.insert(0, report.with_repair(repair));
        checked_plan.is_wrapped = true;
    }
    checked_plan.is_valid &= !(has_two_lists || has_two_modes && checked_plan.is_acting);
    if checked_plan.is_acting && end.is_auto_closed {
        checked_plan.is_valid = false;
        let message = "the plan is cut off; none of its calls may run";
        checked_plan.reports.push(FindingReport::new(rules::TRUNCATED, start, end.offset, message));
    } else if checked_plan.is_acting
        && (has_guess || context.is_in_thought || is_retracted && checked_plan.is_valid)
    {
        checked_plan.is_valid = false;
        let message = match () {
            () if has_guess => {
                "the JSON of a plan that calls tools had to be guessed; none of its calls may run"
            }
            () if context.is_in_thought => {
                "the plan is inside a thought or a comment; none of its calls may run"
            }
            () => "an answer was sent before a second mode, which has no answer; no call of the plan may run",
        };
        checked_plan.reports.push(FindingReport::new(rules::REPAIR_UNSAFE, start, end.offset, message));
    }
    if checked_plan.is_valid && checked_plan.is_acting && context.is_quoted {
        checked_plan.is_valid = false;
        let message = "the plan is in code, in a quotation or in a sentence; none of its calls may run";
        checked_plan.reports.push(FindingReport::new(rules::PLAN_ASIDE, start, end.offset, message));
    }
    if !checked_plan.is_valid {
        let has_answer =
            checked_plan.plan["direct_response"].as_str().is_some_and(|text| !text.trim().is_empty());
        let answer_extent = (has_answer && !has_sent_answer).then(|| places.member_extent("direct_response"));
        checked_plan.has_lost_answer =
            has_unreported_loss(answer_extent.into_iter().collect(), &checked_plan.reports);
        // Dropped calls have a finding each.
        checked_plan.has_lost_calls = has_unreported_loss(
            (0..places.call_count()).map(|call| places.call_extent(call)).collect(),
            &checked_plan.reports,
        );
    }
    checked_plan
}

/// Returns true if one of `extents`, the parts of a plan that is not used, is not covered by findings about
/// losses.
fn has_unreported_loss(mut extents: Vec<Extent>, reports: &[FindingReport]) -> bool {
    // A finding is about a loss if it has no repair, or a repair that says `left out`.
    let is_loss =
        |report: &&FindingReport| report.repair.as_ref().is_none_or(|repair| repair.contains("left out"));
    let losses = reports.iter().filter(is_loss).map(|report| (report.place.offset, report.end));
    let mut loss_ranges: Vec<(usize, usize)> = losses.collect();
    loss_ranges.sort_unstable();
    let (mut next_range, mut covered_end) = (0, 0);
    extents.sort_unstable();
    extents.into_iter().any(|Extent { place, end }| {
        while let Some((_, range_end)) =
            loss_ranges.get(next_range).filter(|(range_start, _)| *range_start <= place.offset)
        {
            covered_end = covered_end.max(*range_end);
            next_range += 1;
        }
        covered_end < end
    })
}

/// Keys that may wrap a plan, in any letter case. An object under any other key is not a plan.
const WRAPPER_KEYS: &[&str] =
    &["aiplan", "ai_plan", "answer", "data", "json", "output", "plan", "reply", "response", "result"];

/// Kind of wrapper around a plan.
enum PlanWrapper {
    /// A list with one item.
    List,
    /// An object with this key.
    Key(String),
}

/// Takes a plan out of a list with no other item, or an object with no key but a wrapper key. Returns any
/// other value as it is, without a wrapper.
fn unwrap_plan(value: Value) -> (Value, Option<PlanWrapper>) {
    match value {
        Value::Array(mut items) if items.len() == 1 && is_plan(&items[0]) => {
            (items.pop().unwrap_or_default(), Some(PlanWrapper::List))
        }
        Value::Object(fields)
            if fields.len() == 1 && fields.iter().all(|(key, value)| is_wrapper(key, value)) =>
        {
            match fields.into_iter().next() {
                Some((key, value)) => (value, Some(PlanWrapper::Key(key))),
                None => (Value::Null, None),
            }
        }
        value => (value, None),
    }
}

/// Returns true if the key is a wrapper key and the value a plan.
fn is_wrapper(key: &str, value: &Value) -> bool {
    WRAPPER_KEYS.iter().any(|name| name.eq_ignore_ascii_case(key.trim())) && is_plan(value)
}

/// Returns true if the value has enough plan fields to be a plan.
fn is_plan(value: &Value) -> bool {
    PLAN_FIELDS.iter().filter(|&&field| value.get(field).is_some()).count() >= MIN_NESTED_FIELDS
}

/// Doubts about the values of an object that may be a plan, in its calls or outside of them.
#[derive(Debug, Default)]
pub(super) struct PlanDoubts {
    doubts: ValueDoubts,
    /// Paths of `response_mode` and of `tool_calls`.
    mode_path: Vec<PathStep>,
    calls_path: Vec<PathStep>,
}

impl PlanDoubts {
    /// Creates the doubts of a value that contains the plan in this wrapper.
    fn new(doubts: ValueDoubts, wrapper: Option<&PlanWrapper>) -> PlanDoubts {
        let wrapper_path = match wrapper {
            None => None,
            Some(PlanWrapper::List) => Some(PathStep::Index(0)),
            Some(PlanWrapper::Key(key)) => Some(PathStep::Key(key.clone())),
        };
        let path = |key: &str| wrapper_path.iter().cloned().chain([PathStep::Key(key.to_owned())]).collect();
        PlanDoubts { doubts, mode_path: path("response_mode"), calls_path: path("tool_calls") }
    }

    /// Returns true if the key of the mode occurs twice.
    fn has_two_modes(&self) -> bool {
        self.doubts.iter().any(|entry| entry.doubt == Doubt::DuplicateKey && entry.path == self.mode_path)
    }

    /// Returns true if a value outside the calls may differ from the intended one; duplicate keys have their
    /// own checks.
    fn has_guess_outside_calls(&self) -> bool {
        self.doubts.iter().any(|entry| entry.doubt != Doubt::DuplicateKey && !self.is_in_call(entry))
    }

    /// Returns true if the key at this place is a duplicate inside a call.
    fn is_duplicate_in_call(&self, key: Place) -> bool {
        self.doubts.iter().any(|entry| entry.place == key && self.is_in_call(entry))
    }

    /// Returns the first doubt about the call with this index.
    pub(super) fn find_in_call(&self, index: usize) -> Option<&ValueDoubt> {
        let path: Vec<PathStep> = self.calls_path.iter().cloned().chain([PathStep::Index(index)]).collect();
        self.doubts.find_within(&path)
    }

    /// Returns true if the doubt is about a value in the list of calls.
    fn is_in_call(&self, entry: &ValueDoubt) -> bool {
        entry.path.len() > self.calls_path.len() && entry.path.starts_with(&self.calls_path)
    }
}
