//! Values of the variables in a template for one round of an action (S-028 to S-037).

use jiff::Timestamp;
use serde_json::{Number, Value};

use super::{FillWarning, LayeredTemplate, Map};
use crate::print;

/// Names of the system variables, in the order of [`system_values`].
pub const SYSTEM_NAMES: &[&str] = &[
    "time",
    "who",
    "user",
    "chat_history",
    "understanding_threshold",
    "current_round",
    "round",
    "max_rounds",
];

/// Facts about a round that the system knows.
#[derive(Clone, Debug)]
pub struct RoundFacts<'a> {
    /// Current time, in milliseconds since 1970 UTC.
    pub now: i64,
    /// Previous messages as text, or the placeholder for none (S-032).
    pub chat_history: &'a str,
    /// `understanding_threshold` of the action; `None` means 80 (S-033).
    pub understanding_threshold: Option<Number>,
    /// Number of rounds completed before this one (S-034).
    pub current_round: u32,
    /// `max_rounds` of the action; `None` means 5 (S-035).
    pub max_rounds: Option<u32>,
}

/// Formats a time in milliseconds since 1970 as ISO 8601 in UTC: `2025-01-20T10:30:00.000Z` (S-029). Times
/// beyond the calendar are clamped.
#[must_use]
pub fn format_time(milliseconds: i64) -> String {
    let nearest = if milliseconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    format!("{:.3}", Timestamp::from_millisecond(milliseconds).unwrap_or(nearest))
}

/// Returns the system values of a round. `variables` are those of the script: `咨询师名` names the speaker, `用户名`
/// the listener (S-030, S-031).
#[must_use]
pub fn system_values(variables: &Map, round: &RoundFacts<'_>) -> Map {
    let value_of = |variable: &str, default: &str| {
        let name = variables.get(variable).map(print::print).filter(|name| !name.trim().is_empty());
        Value::from(name.as_deref().unwrap_or(default))
    };
    let threshold = round.understanding_threshold.clone();
    let values: [(&str, Value); 8] = [
        ("time", format_time(round.now).into()),
        ("who", value_of("咨询师名", "AI咨询师")),
        ("user", value_of("用户名", "来访者")),
        ("chat_history", round.chat_history.into()),
        ("understanding_threshold", threshold.map_or(Value::from(80), Value::Number)),
        ("current_round", round.current_round.into()),
        ("round", (round.current_round.saturating_add(1)).into()),
        ("max_rounds", round.max_rounds.unwrap_or(5).into()),
    ];
    debug_assert!(values.iter().map(|(name, _)| *name).eq(SYSTEM_NAMES.iter().copied()));
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the script values of a round: all `variables` (S-037) and `topic_content`, the action's `content`
/// with its own variables inserted (S-036). Positions in the warnings refer to `content`.
#[must_use]
pub fn script_values(variables: &Map, content: &str, system: &Map) -> (Map, Vec<FillWarning>) {
    let filled_template = LayeredTemplate::parse(content).render(variables, system);
    let mut values = variables.clone();
    values.insert("topic_content".to_owned(), filled_template.text.into());
    (values, filled_template.warnings)
}
