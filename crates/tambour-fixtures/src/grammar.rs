//! Order of events in a stream, as a regular expression with a letter for each event.
//!
//! Independent of the library's sequencer and checker, so that a mistake in one of them shows.

use tambour::contract::{StreamCheckOptions, StreamChecker};
use tambour::event::EventKind;
use tambour::{Event, Options, Severity};

/// Checks that `events` are a valid stream, here and with the library's own checker in the strict profile.
///
/// # Errors
/// The stream is not valid; the text describes the fault.
pub fn check_stream(events: &[Event<'_>], options: &Options) -> Result<(), String> {
    check_order(events, options.allow_missing_thinking)?;
    let mut check_options = StreamCheckOptions::default();
    check_options.options.allow_missing_thinking = options.allow_missing_thinking;
    // The stream must be complete.
    check_options.terminal = Some(true);
    let mut checker = StreamChecker::new(check_options);
    for event in events {
        checker.push_event(event);
    }
    let findings = checker.finish();
    let error = findings.into_iter().find(|finding| finding.severity == Severity::Error);
    error.map_or(Ok(()), |finding| Err(format!("the checker finds {finding:?} in {events:?}")))
}

/// Checks that `events` are a complete stream; `allow_missing_thinking` allows streams without thinking.
///
/// # Errors
/// The stream is incomplete, out of order, or has an event with faulty content; the text describes the fault.
pub fn check_order(events: &[Event<'_>], allow_missing_thinking: bool) -> Result<(), String> {
    let (last, earlier_events) = events.split_last().ok_or("the stream is empty")?;
    let has_failed = matches!(last, Event::Error(_));
    if !has_failed && !matches!(last, Event::Completed(_)) {
        return Err(format!("the stream ends with `{}`", last.name()));
    }
    let mut letters = String::new();
    let mut last_phase_id = 0;
    for event in earlier_events {
        if matches!(event, Event::Error(_) | Event::Completed(_)) {
            return Err(format!("`{}` stands inside the stream", event.name()));
        }
        check_content(event, &mut last_phase_id)?;
        if event.kind() == EventKind::Contract {
            letters.push(event_letter(event));
        }
    }
    // A stream may fail before its first contract event.
    let is_empty_failure = has_failed && letters.is_empty();
    if is_empty_failure || matches_grammar(&letters, allow_missing_thinking) {
        Ok(())
    } else {
        Err(format!("order: {letters}"))
    }
}

/// Letter of a contract event in the grammar.
fn event_letter(event: &Event<'_>) -> char {
    match event.name() {
        "serp_summary" => 's',
        "thinking_start" => 't',
        "phase_start" => 'p',
        "phase_delta" => 'd',
        "thinking_end" => 'e',
        "final_delta" => 'f',
        "serp_queries" => 'q',
        "final_end" => 'E',
        _ => '?',
    }
}

/// Checks the content of one event. `last_phase_id` is the id of the phase before it, and is advanced at each
/// `phase_start`.
fn check_content(event: &Event<'_>, last_phase_id: &mut u32) -> Result<(), String> {
    let is_faulty = match event {
        Event::SerpSummary { text } | Event::FinalDelta { text } => text.is_empty(),
        Event::PhaseStart { id, title } => {
            *last_phase_id += 1;
            *id != *last_phase_id || title.trim().is_empty()
        }
        Event::PhaseDelta { id, text } => *id != *last_phase_id || text.is_empty(),
        // At most five different queries, each of at most 80 characters.
        Event::SerpQueries { queries } => {
            queries.len() > 5
                || queries.iter().any(|query| query.trim().is_empty() || query.chars().count() > 80)
                || queries.iter().enumerate().any(|(index, query)| queries[..index].contains(query))
        }
        _ => false,
    };
    if is_faulty { Err(format!("not allowed: {event:?}")) } else { Ok(()) }
}

/// Returns `true` if `letters` match `s?t(pd*)+ef+q?E`, or `s?f+q?E` when thinking may be missing.
pub fn matches_grammar(letters: &str, allow_missing_thinking: bool) -> bool {
    let after_summary = letters.strip_prefix('s').unwrap_or(letters);
    let answer = match after_summary.strip_prefix('t') {
        Some(thinking) => {
            let Some((phases, answer)) = thinking.split_once('e') else { return false };
            if !phases.starts_with('p') || !phases.chars().all(|c| c == 'p' || c == 'd') {
                return false;
            }
            answer
        }
        None if allow_missing_thinking => after_summary,
        None => return false,
    };
    let after_deltas = answer.trim_start_matches('f');
    let has_delta = after_deltas.len() < answer.len();
    has_delta && matches!(after_deltas, "E" | "qE")
}
