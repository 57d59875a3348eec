//! Decides whether a complete object may be used, by its contract, repairs, end and surroundings (P-026,
//! P-027).

use super::check::{Checked, Stand, check};
use super::doubts::PlanDoubts;
use super::object::PlanObject;
use super::rules;
use super::wrapped::{Wrapper, unwrap};
use crate::finding::Report;
use crate::finding::clip;
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::Built;
use crate::repair::rules as json_rules;
use crate::span::Place;
use crate::texts::counted;

/// Builds the finding on an object that exceeds the limits and has no value.
pub(super) fn too_large(start: Place, end: usize, options: &Options) -> Report {
    let Limits { value, items, .. } = options.limits;
    let (bytes, values) = (counted(value, "byte"), counted(items, "value"));
    let message = format!("the object has more than {bytes} of text or {values}");
    Report::new(&json_rules::LIMIT_EXCEEDED, start, end, message)
}

/// Checks an object against the contract, including its repairs and its end.
pub(super) fn judge(built: Built, object: &mut PlanObject, options: &Options) -> Checked {
    let end = built.end;
    let (value, wrapper) = unwrap(built.value);
    let PlanObject { frame, reports, sent, replaced, allowed, .. } = object;
    let (frame, retracted) = (&*frame, *sent && *allowed != Some(true));
    let sent = *sent && !retracted;
    let start = object.places.start;
    let places = if wrapper.is_some() { &object.inner } else { &object.places };
    let twice = places.lists > 1;
    let doubts = PlanDoubts::new(built.doubts, wrapper.as_ref());
    let mut checked = check(value, places, &doubts, options);
    let (two_modes, guessed) = (doubts.mode_twice(), doubts.beside_calls());
    for duplicate in built.duplicates {
        let of_plan = |name: &str| duplicate.key == name && duplicate.again.0 == places.member(name).0;
        reports.push(match () {
            // The intended one of two lists of calls is unknown.
            () if twice && of_plan("tool_calls") => duplicate.report(duplicate.first),
            // The intended one of two modes, or of two values in a call, is unknown as well.
            () if checked.acts && (of_plan("response_mode") || doubts.in_call(duplicate.again.0)) => {
                duplicate.report(duplicate.first)
            }
            () if wrapper.is_none() && of_plan("thought") => {
                duplicate.report(duplicate.again).repaired("both are told, the last value is kept")
            }
            () if sent && !*replaced && of_plan("direct_response") => {
                duplicate.report(duplicate.again).repaired("both are sent, the last value is kept")
            }
            () if object.sent && !sent && of_plan("direct_response") => duplicate.first_kept(),
            () => duplicate.last_kept(),
        });
    }
    if let Some(wrapper) = wrapper {
        let (message, repair) = match wrapper {
            Wrapper::List => ("the plan is the item of a list".to_owned(), "read alone"),
            Wrapper::Key(key) => {
                (format!("the plan stands under `{}`", clip(&key, 60)), "read alone, the key is not used")
            }
        };
        let found = Report::new(rules::PLAN_WRAPPED, start, end.offset, message);
        checked.reports.insert(0, found.repaired(repair));
        checked.wrapped = true;
    }
    checked.valid &= !(twice || two_modes && checked.acts);
    if checked.acts && end.closed_by_us {
        checked.valid = false;
        let message = "the plan is cut; no call of it may run";
        checked.reports.push(Report::new(rules::TRUNCATED, start, end.offset, message));
    } else if checked.acts && (guessed || frame.thinking || retracted && checked.valid) {
        checked.valid = false;
        let message = match () {
            () if guessed => "the JSON of a plan that calls tools had to be guessed; no call of it may run",
            () if frame.thinking => "the plan stands in a thought or a comment; no call of it may run",
            () => "an answer was sent before a second mode that has none; no call of it may run",
        };
        checked.reports.push(Report::new(rules::REPAIR_UNSAFE, start, end.offset, message));
    }
    if checked.valid && checked.acts && frame.aside {
        checked.valid = false;
        let message = "the plan stands in code, in a quotation or in a sentence; no call of it may run";
        checked.reports.push(Report::new(rules::PLAN_ASIDE, start, end.offset, message));
    }
    if !checked.valid {
        let answer = checked.plan["direct_response"].as_str().is_some_and(|text| !text.trim().is_empty());
        let answer = (answer && !object.sent).then(|| places.member("direct_response"));
        checked.lost = lost(answer.into_iter().collect(), &checked.reports);
        // Dropped calls have a finding each.
        checked.lost_calls =
            lost((0..places.calls()).map(|call| places.call(call)).collect(), &checked.reports);
    }
    checked
}

/// Returns true if one of these parts of an unused plan is covered by no finding.
fn lost(mut parts: Vec<Stand>, reports: &[Report]) -> bool {
    // A finding with a repair is about something kept, unless it says `left out`.
    let tells = |report: &&Report| report.repair.as_ref().is_none_or(|repair| repair.contains("left out"));
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
