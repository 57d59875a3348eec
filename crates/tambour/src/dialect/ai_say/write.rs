//! Writes an answer in the form a model should use.

use std::io::Write;

use serde_json::Value;

use super::options;
use crate::dialect::pieces::{self, TextPieces};
use crate::event::{DecisionSource, Event, Extension};
use crate::exit::RoundAnswer;
use crate::options::Options;

/// Writes the answer of one reply: its message, and the contents of an `exit_decision` among the events.
/// Fields that no event holds get the values that never end an action early.
#[must_use]
pub(super) fn write(events: &[Event<'_>]) -> String {
    let mut round_answer = RoundAnswer::default();
    let decision = events.iter().filter_map(Event::extension).find_map(|event| match event {
        Extension::ExitDecision(decision) => Some(decision),
        _ => None,
    });
    if let Some(decision) = decision {
        let (source, assessment) = (&decision.assessment, &mut round_answer.assessment);
        assessment.understanding_level = source["understanding_level"].as_f64().unwrap_or_default();
        assessment.has_questions = source["has_questions"].as_bool().unwrap_or(true);
        assessment.expressed_understanding = source["expressed_understanding"].as_bool().unwrap_or(false);
        round_answer.should_exit = !decision.unmet.iter().any(|condition| condition == "should_exit");
        if decision.decision_source == DecisionSource::LlmSuggestion {
            round_answer.exit_reason.clone_from(&decision.reason);
        }
    }
    write_answer(&round_answer, &options::role(&Options::default()), events)
}

/// Writes an answer with the message of `events`.
pub(super) fn write_answer(round_answer: &RoundAnswer, role: &str, events: &[Event<'_>]) -> String {
    let message = events.iter().filter_map(|event| match event {
        Event::FinalDelta { text } => Some(&**text),
        _ => None,
    });
    let text = |text: &str| Value::from(text).to_string();
    let mut assessment = round_answer.assessment.to_value();
    assessment["reasoning"] = round_answer.assessment.reasoning.as_str().into();
    let mut out = Vec::with_capacity(512 + message.clone().map(str::len).sum::<usize>());
    out.extend_from_slice(b"{\n  \"assessment\": {\n");
    let fields = assessment.as_object().into_iter().flatten();
    for (number, (name, value)) in fields.enumerate() {
        let comma = if number == 0 { "" } else { ",\n" };
        // Writing to a `Vec` never fails.
        let _ = write!(out, "{comma}    {}: {value}", text(name));
    }
    let _ = write!(out, "\n  }},\n  \"response\": {{\n    {}: ", text(role));
    TextPieces(message).write(&mut out);
    let _ = write!(
        out,
        "\n  }},\n  \"should_exit\": {},\n  \"exit_reason\": {}\n}}\n",
        round_answer.should_exit,
        text(&round_answer.exit_reason)
    );
    pieces::utf8_string(out)
}
