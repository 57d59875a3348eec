//! Decides after each round whether a dialogue action ends, by criteria that the author of the script sets
//! (S-007 to S-009, S-070 to S-083).
//!
//! Three rules apply, in this order:
//!
//! 1. The action ends if this was its last round.
//! 2. It ends if the model suggests it and the user has understood; the suggestion alone is not enough.
//! 3. Otherwise it continues.
//!
//! The format of a model's answer is defined in `dialect::ai_say`. Nothing here waits or does I/O.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::event::{DecisionSource, ExitDecision};
use crate::texts::{Language, format_count};

/// Conditions under which a dialogue action may end before its last round.
#[derive(Clone, Debug, PartialEq)]
pub struct ExitCriteria {
    /// Minimum level of understanding, from 0 to 100.
    understanding_threshold: f64,
    /// True if the action may end while the user has open questions.
    allows_questions: bool,
    /// Minimum level if the user said that they understand; `None` if saying so does not count.
    expressed_threshold: Option<f64>,
}

// Thresholds are between 0 and 100, so none of them is NaN.
impl Eq for ExitCriteria {}

/// Round that a reply answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitRound {
    /// Number of the round, from 1 (S-060).
    pub round: u32,
    /// Last round; the action ends after it in any case.
    pub max_rounds: u32,
    /// Criteria for ending earlier.
    pub criteria: ExitCriteria,
}

/// Maximum number of rounds of an action (S-006).
const MAX_ROUNDS: u32 = 20;

/// Fields of the criteria.
const CRITERIA_FIELDS: [&str; 3] = ["understanding_threshold", "has_questions", "expressed_threshold"];

impl Default for ExitCriteria {
    fn default() -> ExitCriteria {
        ExitCriteria {
            understanding_threshold: 80.0,
            allows_questions: false,
            expressed_threshold: Some(70.0),
        }
    }
}

impl ExitRound {
    /// Reads a round from a JSON object of `round`, `max_rounds` (1 to 20, default 5) and `exit_criteria`.
    ///
    /// # Errors
    /// The value does not have this form.
    pub fn from_json(value: &Value) -> Result<ExitRound> {
        const ROUND_FIELDS: [&str; 3] = ["round", "max_rounds", "exit_criteria"];
        let Value::Object(fields) = value else {
            return Err(Error::invalid(format!("a round must be a JSON object, not {value}")));
        };
        if let Some(name) = fields.keys().find(|name| !ROUND_FIELDS.contains(&name.as_str())) {
            return Err(Error::unknown("field of a round", name, ROUND_FIELDS));
        }
        let read_number = |name: &str, default: Option<u32>| match fields
            .get(name)
            .filter(|value| !value.is_null())
        {
            None => default
                .ok_or_else(|| Error::invalid(format!("a round must have `{name}`, a whole number from 1"))),
            Some(value) => {
                let number =
                    value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
                number.ok_or_else(|| {
                    Error::invalid(format!("`{name}` of a round must be a whole number from 1, not {value}"))
                })
            }
        };
        let criteria = fields.get("exit_criteria").filter(|value| !value.is_null());
        let max_rounds = read_number("max_rounds", Some(5))?;
        // Same limit as in a script (S-006).
        if max_rounds > MAX_ROUNDS {
            return Err(Error::invalid(format!(
                "`max_rounds` of a round must be from 1 to {MAX_ROUNDS}, not {max_rounds}"
            )));
        }
        Ok(ExitRound {
            round: read_number("round", None)?,
            max_rounds,
            criteria: criteria.map(ExitCriteria::from_value).transpose()?.unwrap_or_default(),
        })
    }
}

impl ExitCriteria {
    /// Reads criteria from a JSON object; absent fields have their defaults.
    ///
    /// ```
    /// let criteria = tambour::exit::ExitCriteria::from_json(r#"{"understanding_threshold": 90}"#)?;
    /// assert_eq!(criteria.understanding_threshold(), 90.0);
    /// # Ok::<(), tambour::Error>(())
    /// ```
    ///
    /// # Errors
    /// The text is not JSON, or does not have this form.
    pub fn from_json(text: &str) -> Result<ExitCriteria> {
        match serde_json::from_str(text) {
            Ok(value) => ExitCriteria::from_value(&value),
            Err(error) => Err(Error::invalid_json("the text of the exit criteria", text, error)),
        }
    }

    /// Like [`ExitCriteria::from_json`], for a parsed value.
    ///
    /// # Errors
    /// The value is not an object, has an unknown field, or a field of the wrong type or out of range.
    pub fn from_value(value: &Value) -> Result<ExitCriteria> {
        let Value::Object(fields) = value else {
            return Err(Error::invalid(format!("the exit criteria must be a JSON object, not {value}")));
        };
        let mut criteria = ExitCriteria::default();
        for (name, value) in fields {
            match name.as_str() {
                "understanding_threshold" => criteria.understanding_threshold = parse_level(name, value)?,
                // The public name of `allows_questions`.
                "has_questions" => {
                    criteria.allows_questions = value.as_bool().ok_or_else(|| {
                        Error::invalid(format!(
                            "`{name}` of the exit criteria must be true or false, not {value}"
                        ))
                    })?;
                }
                "expressed_threshold" if value.is_null() => criteria.expressed_threshold = None,
                "expressed_threshold" => criteria.expressed_threshold = Some(parse_level(name, value)?),
                _ => return Err(Error::unknown("field of the exit criteria", name, CRITERIA_FIELDS)),
            }
        }
        Ok(criteria)
    }

    /// Returns the level of understanding from which the action ends if the model suggests it, and no
    /// questions are open or open questions are allowed (S-071, S-076).
    #[must_use]
    pub fn understanding_threshold(&self) -> f64 {
        self.understanding_threshold
    }

    /// Returns true if the action may end with open questions (S-080).
    #[doc(hidden)]
    #[must_use]
    pub fn allows_questions(&self) -> bool {
        self.allows_questions
    }

    /// Returns the level of understanding from which the action ends if the model suggests it and the user
    /// said that they understand (S-072); `None` if that rule is off (S-083).
    #[doc(hidden)]
    #[must_use]
    pub fn expressed_threshold(&self) -> Option<f64> {
        self.expressed_threshold
    }
}

/// Parses a level of understanding, from 0 to 100. `name` is the field, for errors.
fn parse_level(name: &str, value: &Value) -> Result<f64> {
    let level = value.as_f64().filter(|level| (0.0..=100.0).contains(level));
    level.ok_or_else(|| {
        Error::invalid(format!("`{name}` of the exit criteria must be a number from 0 to 100, not {value}"))
    })
}

/// Understanding of the user. The default never ends an action early (S-055).
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// Level from 0 to 100.
    pub understanding_level: f64,
    /// True if the user has open questions.
    pub has_questions: bool,
    /// True if the user said that they understand.
    pub expressed_understanding: bool,
    /// The model's reasons; no decision depends on them (S-051).
    pub reasoning: String,
}

/// Parts of a model's answer that a decision depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundAnswer {
    /// Understanding of the user.
    pub assessment: Assessment,
    /// True if the model suggests ending the action.
    pub should_exit: bool,
    /// The model's reason for its suggestion.
    pub exit_reason: String,
}

/// Status of an action after a round.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActionStatus {
    /// The next round follows.
    Active,
    /// The action ends as soon as the user has replied (S-081).
    AwaitingAck,
    /// The action has ended.
    Completed,
}

impl Default for Assessment {
    fn default() -> Assessment {
        Assessment {
            understanding_level: 0.0,
            has_questions: true,
            expressed_understanding: false,
            reasoning: String::new(),
        }
    }
}

impl Assessment {
    /// Returns all fields as JSON, including the model's reasoning: for the application, not for the user.
    #[doc(hidden)]
    #[must_use]
    pub fn to_full_value(&self) -> Value {
        let mut value = self.to_value();
        value["reasoning"] = self.reasoning.as_str().into();
        value
    }

    /// Returns the fields that a decision depends on as JSON, with integral levels as integers.
    #[doc(hidden)]
    #[must_use]
    pub fn to_value(&self) -> Value {
        let level = self.understanding_level;
        // Below 1e15 every integral `f64` is exact as `i64`.
        let is_integer = level.fract() == 0.0 && level.abs() < 1e15;
        let mut fields = Map::new();
        let level = if is_integer { Value::from(level as i64) } else { Value::from(level) };
        fields.insert("understanding_level".to_owned(), level);
        fields.insert("has_questions".to_owned(), self.has_questions.into());
        fields.insert("expressed_understanding".to_owned(), self.expressed_understanding.into());
        Value::Object(fields)
    }
}

/// Decides after `round` of `max_rounds` was answered with `answer`; texts are in `language`.
///
/// ```
/// use tambour::exit::{RoundAnswer, Assessment, ExitCriteria, decide};
/// use tambour::options::Language;
///
/// let assessment = Assessment { understanding_level: 85.0, has_questions: false, ..Assessment::default() };
/// let answer = RoundAnswer { assessment, should_exit: true, exit_reason: String::new() };
/// let decision = decide(2, 5, &ExitCriteria::default(), &answer, Language::Zh);
/// assert_eq!((decision.should_exit, decision.reason.as_str()), (true, "理解度85达到80且无疑问"));
/// ```
#[must_use]
pub fn decide(
    round: u32,
    max_rounds: u32,
    criteria: &ExitCriteria,
    answer: &RoundAnswer,
    language: Language,
) -> ExitDecision {
    let understanding = check_understanding(criteria, &answer.assessment, language);
    // Names of the answer fields that speak against ending.
    let unmet = match (&understanding, answer.should_exit) {
        (Ok(_), true) => Vec::new(),
        (Ok(_), false) => vec!["should_exit"],
        (Err(unmet), true) => unmet.clone(),
        (Err(unmet), false) => [&["should_exit"], unmet.as_slice()].concat(),
    };
    let (decision_source, reason) = match understanding {
        // The last round decides, whatever the model says (S-070).
        _ if round >= max_rounds => (DecisionSource::MaxRounds, last_round_reason(max_rounds, language)),
        Ok(reason) if answer.should_exit => (DecisionSource::ExitCriteria, reason),
        _ => (DecisionSource::LlmSuggestion, continue_reason(&answer.exit_reason, language)),
    };
    ExitDecision {
        should_exit: decision_source != DecisionSource::LlmSuggestion,
        reason,
        decision_source,
        unmet: unmet.into_iter().map(Cow::Borrowed).collect(),
        round,
        max_rounds,
        assessment: answer.assessment.to_value(),
    }
}

/// Returns the status of an action after the decision `should_exit`. `has_reply` is set if the user has
/// replied since the first message of the action (S-081, S-082).
#[doc(hidden)]
#[must_use]
pub fn action_status(should_exit: bool, require_acknowledgment: bool, has_reply: bool) -> ActionStatus {
    match should_exit {
        false => ActionStatus::Active,
        true if require_acknowledgment && !has_reply => ActionStatus::AwaitingAck,
        true => ActionStatus::Completed,
    }
}

/// Returns the reason why the user counts as having understood, or the names of the answer fields whose
/// conditions are not met.
fn check_understanding(
    criteria: &ExitCriteria,
    assessment: &Assessment,
    language: Language,
) -> std::result::Result<String, Vec<&'static str>> {
    let (level, threshold) = (assessment.understanding_level, criteria.understanding_threshold());
    let has_questions = assessment.has_questions;
    let expressed_threshold = criteria.expressed_threshold();
    let is_reached = level >= threshold;
    if is_reached && !has_questions {
        return Ok(match language {
            Language::Zh => format!("理解度{level}达到{threshold}且无疑问"),
            Language::En => format!("Understanding {level} reached {threshold} and no questions are open"),
        });
    }
    if is_reached && criteria.allows_questions() {
        return Ok(match language {
            Language::Zh => format!("理解度{level}达到{threshold}（允许有疑问）"),
            Language::En => format!("Understanding {level} reached {threshold} (open questions allowed)"),
        });
    }
    match expressed_threshold {
        Some(minimum) if level >= minimum && assessment.expressed_understanding => Ok(match language {
            Language::Zh => format!("理解度{level}达到{minimum}+且用户明确表达理解"),
            Language::En => {
                format!("Understanding {level} reached {minimum}+ and the user said they understand")
            }
        }),
        _ => {
            let mut unmet = Vec::new();
            if !is_reached || expressed_threshold.is_some_and(|minimum| level < minimum) {
                unmet.push("understanding_level");
            }
            if has_questions && !criteria.allows_questions() {
                unmet.push("has_questions");
            }
            if expressed_threshold.is_some() && !assessment.expressed_understanding {
                unmet.push("expressed_understanding");
            }
            Err(unmet)
        }
    }
}

fn last_round_reason(max_rounds: u32, language: Language) -> String {
    match language {
        Language::Zh => format!("达到最大轮次限制 ({max_rounds})"),
        Language::En => format!("Reached the maximum of {}", format_count(max_rounds, "round")),
    }
}

/// Returns the reason to continue: `reason`, which the model gave, or a default if that is blank.
fn continue_reason(reason: &str, language: Language) -> String {
    match (reason.trim(), language) {
        ("", Language::Zh) => "继续讲解".to_owned(),
        ("", Language::En) => "continue explaining".to_owned(),
        _ => reason.to_owned(),
    }
}
