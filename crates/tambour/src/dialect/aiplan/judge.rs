//! Decides whether a complete object may be used, by its contract, repairs, end and surroundings (P-026,
//! P-027).

use super::check::{CheckedPlan, Stand, check_plan};
use super::doubts::PlanDoubts;
use super::object::PlanObject;
use super::rules;
use super::wrapper::{PlanWrapper, unwrap_plan};
use crate::finding::FindingReport;
use crate::finding::clip;
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::BuiltValue;
use crate::repair::rules as json_rules;
use crate::span::Place;
use crate::texts::format_count;

/// Builds the finding on an object that exceeds the limits and has no value.
pub(super) fn too_large_report(start: Place, end: usize, options: &Options) -> FindingReport {
    let Limits { value, items, .. } = options.limits;
    let (bytes, values) = (format_count(value, "byte"), format_count(items, "value"));
    let message = format!("the object has more than {bytes} of text or {values}");
    FindingReport::new(&json_rules::LIMIT_EXCEEDED, start, end, message)
}

/// Checks an object against the contract, including its repairs and its end.
pub(super) fn judge_plan(built: BuiltValue, object: &mut PlanObject, options: &Options) -> CheckedPlan {
    let end = built.end;
    let (value, wrapper) = unwrap_plan(built.value);
    let PlanObject { context, reports, has_sent_answer, is_answer_replaced, allows_answer, .. } = object;
    let (frame, retracted) = (&*context, *has_sent_answer && *allows_answer != Some(true));
    let sent = *has_sent_answer && !retracted;
    let start = object.places.start;
    let places = if wrapper.is_some() { &object.inner_places } else { &object.places };
    let twice = places.list_count > 1;
    let doubts = PlanDoubts::new(built.doubts, wrapper.as_ref());
    let mut checked = check_plan(value, places, &doubts, options);
    let (two_modes, guessed) = (doubts.has_two_modes(), doubts.has_guess_outside_calls());
    for duplicate in built.duplicates {
        let of_plan =
            |name: &str| duplicate.key == name && duplicate.second.0 == places.member_extent(name).0;
        reports.push(match () {
            // The intended one of two lists of calls is unknown.
            () if twice && of_plan("tool_calls") => duplicate.report(duplicate.first),
            // The intended one of two modes, or of two values in a call, is unknown as well.
            () if checked.is_acting
                && (of_plan("response_mode") || doubts.is_duplicate_in_call(duplicate.second.0)) =>
            {
                duplicate.report(duplicate.first)
            }
            () if wrapper.is_none() && of_plan("thought") => {
                duplicate.report(duplicate.second).with_repair("both are told, the last value is kept")
            }
            () if sent && !*is_answer_replaced && of_plan("direct_response") => {
                duplicate.report(duplicate.second).with_repair("both are sent, the last value is kept")
            }
            () if object.has_sent_answer && !sent && of_plan("direct_response") => {
                duplicate.report_first_kept()
            }
            () => duplicate.report_last_kept(),
        });
    }
    if let Some(wrapper) = wrapper {
        let (message, repair) = match wrapper {
            PlanWrapper::List => ("the plan is the item of a list".to_owned(), "read alone"),
            PlanWrapper::Key(key) => {
                (format!("the plan stands under `{}`", clip(&key, 60)), "read alone, the key is not used")
            }
        };
        let found = FindingReport::new(rules::PLAN_WRAPPED, start, end.offset, message);
        checked.reports.insert(0, found.with_repair(repair));
        checked.is_wrapped = true;
    }
    checked.is_valid &= !(twice || two_modes && checked.is_acting);
    if checked.is_acting && end.is_auto_closed {
        checked.is_valid = false;
        let message = "the plan is cut; no call of it may run";
        checked.reports.push(FindingReport::new(rules::TRUNCATED, start, end.offset, message));
    } else if checked.is_acting && (guessed || frame.is_in_thought || retracted && checked.is_valid) {
        checked.is_valid = false;
        let message = match () {
            () if guessed => "the JSON of a plan that calls tools had to be guessed; no call of it may run",
            () if frame.is_in_thought => "the plan stands in a thought or a comment; no call of it may run",
            () => "an answer was sent before a second mode that has none; no call of it may run",
        };
        checked.reports.push(FindingReport::new(rules::REPAIR_UNSAFE, start, end.offset, message));
    }
    if checked.is_valid && checked.is_acting && frame.is_quoted {
        checked.is_valid = false;
        let message = "the plan stands in code, in a quotation or in a sentence; no call of it may run";
        checked.reports.push(FindingReport::new(rules::PLAN_ASIDE, start, end.offset, message));
    }
    if !checked.is_valid {
        let answer = checked.plan["direct_response"].as_str().is_some_and(|text| !text.trim().is_empty());
        let answer = (answer && !object.has_sent_answer).then(|| places.member_extent("direct_response"));
        checked.has_lost_answer = has_unreported(answer.into_iter().collect(), &checked.reports);
        // Dropped calls have a finding each.
        checked.has_lost_calls = has_unreported(
            (0..places.call_count()).map(|call| places.call_extent(call)).collect(),
            &checked.reports,
        );
    }
    checked
}

/// Returns true if one of these parts of an unused plan is covered by no finding.
fn has_unreported(mut parts: Vec<Stand>, reports: &[FindingReport]) -> bool {
    // A finding with a repair is about something kept, unless it says `left out`.
    let tells =
        |report: &&FindingReport| report.repair.as_ref().is_none_or(|repair| repair.contains("left out"));
    let covered = reports.iter().filter(tells).map(|report| (report.place.offset, report.end));
    let mut covered: Vec<(usize, usize)> = covered.collect();
    covered.sort_unstable();
    let (mut at, mut until) = (0, 0);
    parts.sort_unstable();
    parts.into_iter().any(|(place, end)| {
        while let Some((_, last)) = covered.get(at).filter(|(first, _)| *first <= place.offset) {
            until = until.max(*last);
            at += 1;
        }
        until < end
    })
}
