//! Canonical form of a reply: an answer written from events; its JSON Schema and its grammar.

use std::io::Write;

use serde_json::{Value, json};

use crate::dialect::value_text::{self, TextPieces};
use crate::error::Result;
use crate::event::{DecisionSource, Event, Extension};
use crate::exit::RoundAnswer;
use crate::grammar::{Grammar, GrammarBuilder, GrammarLimits, JsonSpace, JsonStyle, Node, leading_draft};
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
        let (judged, assessment) = (&decision.assessment, &mut round_answer.assessment);
        assessment.understanding_level = judged["understanding_level"].as_f64().unwrap_or_default();
        assessment.has_questions = judged["has_questions"].as_bool().unwrap_or(true);
        assessment.expressed_understanding = judged["expressed_understanding"].as_bool().unwrap_or(false);
        round_answer.should_exit = !decision.unmet.iter().any(|condition| condition == "should_exit");
        if decision.decision_source == DecisionSource::LlmSuggestion {
            round_answer.exit_reason.clone_from(&decision.reason);
        }
    }
    write_answer(&round_answer, &super::role(&Options::default()), events)
}

/// Writes an answer; its message is the answer text in `events`, under the key `role`.
pub(super) fn write_answer(round_answer: &RoundAnswer, role: &str, events: &[Event<'_>]) -> String {
    let message_pieces = events.iter().filter_map(|event| match event {
        Event::FinalDelta { text } => Some(&**text),
        _ => None,
    });
    let json_string = |text: &str| Value::from(text).to_string();
    let mut assessment = round_answer.assessment.to_value();
    assessment["reasoning"] = round_answer.assessment.reasoning.as_str().into();
    let mut out = Vec::with_capacity(512 + message_pieces.clone().map(str::len).sum::<usize>());
    out.extend_from_slice(b"{\n  \"assessment\": {\n");
    let fields = assessment.as_object().into_iter().flatten();
    for (index, (name, value)) in fields.enumerate() {
        let comma = if index == 0 { "" } else { ",\n" };
        // Writing to a `Vec` never fails, here and below.
        let _ = write!(out, "{comma}    {}: {value}", json_string(name));
    }
    let _ = write!(out, "\n  }},\n  \"response\": {{\n    {}: ", json_string(role));
    TextPieces(message_pieces).write(&mut out);
    let _ = write!(
        out,
        "\n  }},\n  \"should_exit\": {},\n  \"exit_reason\": {}\n}}\n",
        round_answer.should_exit,
        json_string(&round_answer.exit_reason)
    );
    value_text::utf8_string(out)
}

/// Returns the JSON Schema (draft 2020-12) of the answer with the configured role key, for constrained
/// decoding and editors.
pub(super) fn schema(options: &Options) -> Value {
    let role = &super::role(options);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ai_say answer",
        "description": "The answer of one dialogue round.",
        "type": "object",
        "properties": {
            "assessment": {
                "description": "How well the user has understood, judged by what they said last.",
                "type": "object",
                "properties": {
                    "understanding_level": { "type": "number", "minimum": 0, "maximum": 100 },
                    "has_questions": {
                        "description": "Whether the user has open questions.",
                        "type": "boolean",
                    },
                    "expressed_understanding": {
                        "description": "Whether the user said that they understand.",
                        "type": "boolean",
                    },
                    "reasoning": { "description": "Why; never shown to the user.", "type": "string" },
                },
                "required": ["understanding_level", "has_questions", "expressed_understanding", "reasoning"],
                "additionalProperties": false,
            },
            "response": {
                "description": "The message to the user, under the role that speaks.",
                "type": "object",
                "properties": { (role): { "type": "string", "pattern": "\\S" } },
                "required": [role],
                "additionalProperties": false,
            },
            "should_exit": {
                "description": "Whether the topic should end. It ends only if the conditions hold too.",
                "type": "boolean",
            },
            "exit_reason": { "description": "Why it should or should not.", "type": "string" },
        },
        "required": ["assessment", "response", "should_exit", "exit_reason"],
        "additionalProperties": false,
    })
}

/// Builds the grammar of the answer, from its schema.
pub(super) fn grammar(options: &Options, limits: &GrammarLimits) -> Result<Grammar> {
    let mut builder = GrammarBuilder::default();
    let style = JsonStyle { space: JsonSpace::Pretty, escapes_tags: false };
    let mut schema = schema(options);
    // A small level with a fraction reads as one of another scale.
    let level = &mut schema["properties"]["assessment"]["properties"]["understanding_level"];
    let (min, max) = (level["minimum"].clone(), level["maximum"].clone());
    *level = json!({ "anyOf": [
        { "type": "integer", "minimum": min, "maximum": max },
        { "type": "number", "minimum": 2, "maximum": max },
    ] });
    if let Some(chars) = limits.aside_chars() {
        schema["properties"]["assessment"]["properties"]["reasoning"]["maxLength"] = chars.into();
        schema["properties"]["exit_reason"]["maxLength"] = chars.into();
    }
    builder.restrict("`understanding_level` below 2 has no fraction");
    let answer = builder.json(&schema, style)?;
    builder.leave(
        &["example_echo", "placeholder_copied", "limit_exceeded"],
        "a grammar neither compares nor measures texts",
    );
    let root = Node::sequence([leading_draft(""), answer, Node::literal("\n").optional()]);
    builder.finish(super::ENTRY.name, root)
}
