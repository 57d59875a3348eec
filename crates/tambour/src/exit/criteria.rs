//! Exit criteria of an action, as the script's author sets them (S-007 to S-009, S-083).

use serde_json::Value;

use crate::error::{Error, Result};

/// Conditions under which a dialogue action may end before its last round.
#[derive(Clone, Debug, PartialEq)]
pub struct ExitCriteria {
    understanding_threshold: f64,
    allows_questions: bool,
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

/// Most rounds of an action (S-006).
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
        const CRITERIA_FIELDS: [&str; 3] = ["round", "max_rounds", "exit_criteria"];
        let Value::Object(fields) = value else {
            return Err(Error::invalid(format!("a round must be a JSON object, not {value}")));
        };
        if let Some(name) = fields.keys().find(|name| !CRITERIA_FIELDS.contains(&name.as_str())) {
            return Err(Error::unknown("field of a round", name, CRITERIA_FIELDS));
        }
        let number = |name: &str, default: Option<u32>| match fields
            .get(name)
            .filter(|value| !value.is_null())
        {
            None => default.ok_or_else(|| Error::invalid(format!("a round must have `{name}`, a whole number from 1"))),
            Some(value) => {
                let number =
                    value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
                number.ok_or_else(|| {
                    Error::invalid(format!("`{name}` of a round must be a whole number from 1, not {value}"))
                })
            }
        };
        let criteria = fields.get("exit_criteria").filter(|value| !value.is_null());
        let max_rounds = number("max_rounds", Some(5))?;
        // Same limit as in a script (S-006).
        if max_rounds > MAX_ROUNDS {
            return Err(Error::invalid(format!(
                "`max_rounds` of a round must be from 1 to {MAX_ROUNDS}, not {max_rounds}"
            )));
        }
        Ok(ExitRound {
            round: number("round", None)?,
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

    /// As [`ExitCriteria::from_json`].
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
                "has_questions" => {
                    criteria.allows_questions = value.as_bool().ok_or_else(|| {
                        Error::invalid(format!("`{name}` of the exit criteria must be true or false, not {value}"))
                    })?;
                }
                "expressed_threshold" if value.is_null() => criteria.expressed_threshold = None,
                "expressed_threshold" => criteria.expressed_threshold = Some(parse_level(name, value)?),
                _ => return Err(Error::unknown("field of the exit criteria", name, CRITERIA_FIELDS)),
            }
        }
        Ok(criteria)
    }

    /// Returns the level from which a suggested exit is followed if no questions are open (S-071, S-076).
    #[must_use]
    pub fn understanding_threshold(&self) -> f64 {
        self.understanding_threshold
    }

    /// Returns true if the action may end with open questions (S-080).
    #[must_use]
    pub fn allows_questions(&self) -> bool {
        self.allows_questions
    }

    /// Returns the level from which a suggested exit is followed if the user said they understand (S-072);
    /// `None` if that rule is off (S-083).
    #[must_use]
    pub fn expressed_threshold(&self) -> Option<f64> {
        self.expressed_threshold
    }
}

fn parse_level(name: &str, value: &Value) -> Result<f64> {
    let level = value.as_f64().filter(|level| (0.0..=100.0).contains(level));
    level.ok_or_else(|| {
        Error::invalid(format!("`{name}` of the exit criteria must be a number from 0 to 100, not {value}"))
    })
}
