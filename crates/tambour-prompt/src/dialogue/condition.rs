//! Conditions of actions: an expression over variables, never code. Values of different types are not
//! comparable.

mod remedy;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::jinja::{self, Mismatch, Type};
use tambour::error::Error;
use tambour::texts::{Language, bilingual};

/// Functions that every expression has.
const FUNCTIONS: [&str; 3] = ["dict", "namespace", "range"];

/// Evaluates a condition.
///
/// # Errors
/// The reason why it cannot be evaluated: it is not an expression, a variable is undefined, or it compares
/// values of different types.
pub(super) fn holds(
    condition: &str,
    variables: &Map<String, Value>,
    language: Language,
) -> Result<bool, String> {
    let holds = jinja::holds(condition, variables).map_err(|broken| match broken.mismatch {
        Some(mismatch) => compared(mismatch, language),
        None => told(condition, &broken.error, language),
    })?;
    // The engine accepts comparisons with undefined variables, but the usual cause is a misspelled name.
    let missing = uses(condition, language)?.into_iter().find(|name| !variables.contains_key(name));
    match (holds, missing) {
        (_, Some(name)) if !asks_for_existence(condition) => Err(undefined(&name, language)),
        (None, _) => Err(bilingual!(language, "用到了不存在的东西", "it uses something that is not there")),
        (Some(holds), _) => Ok(holds),
    }
}

/// Returns the variables that a condition uses.
///
/// # Errors
/// The condition is not an expression.
pub(super) fn uses(condition: &str, language: Language) -> Result<BTreeSet<String>, String> {
    // Parsing with limits comes first.
    if let Err(error) = jinja::condition(condition, &Map::new())
        && error.code() == Some("limit_exceeded")
    {
        return Err(told(condition, &error, language));
    }
    let names = jinja::variables(condition).map_err(|error| told(condition, &error, language))?;
    Ok(names.into_iter().filter(|name| !FUNCTIONS.contains(&name.as_str())).collect())
}

/// Returns true if the condition itself tests whether variables are defined.
pub(super) fn asks_for_existence(condition: &str) -> bool {
    condition.contains("defined") || condition.contains("default")
}

/// Describes a comparison of values of different types.
pub(super) fn compared(mismatch: Mismatch, language: Language) -> String {
    let Mismatch { sign, left, right } = mismatch;
    // A text that is a number would be comparable.
    let no_number = |side: Type, other: Type| side == Type::Text && other == Type::Number;
    let word = |side: Type, other: Type| match (no_number(side, other), language) {
        (true, Language::Zh) => "不是数字的文本",
        (true, Language::En) => "a text that is no number",
        (false, _) => type_name(side, language),
    };
    let (left, right) = (word(left, right), word(right, left));
    bilingual!(language, "`{}` 比较了不同类型的值：{}与{}", "`{}` compares {} with {}", sign, left, right)
}

/// Returns the name of a type.
pub(super) fn type_name(of: Type, language: Language) -> &'static str {
    match (of, language) {
        (Type::Nothing, Language::Zh) => "空值",
        (Type::Nothing, Language::En) => "nothing (`none`)",
        (Type::Flag, Language::Zh) => "真假值",
        (Type::Flag, Language::En) => "true or false",
        (Type::Number, Language::Zh) => "数字",
        (Type::Number, Language::En) => "a number",
        (Type::Text, Language::Zh) => "文本",
        (Type::Text, Language::En) => "a text",
        (Type::List, Language::Zh) => "列表",
        (Type::List, Language::En) => "a list",
        (Type::Map, Language::Zh) => "映射",
        (Type::Map, Language::En) => "a map",
        (_, Language::Zh) => "其他值",
        (_, Language::En) => "something else",
    }
}

/// Describes a variable without a value, with a suggestion.
fn undefined(name: &str, language: Language) -> String {
    bilingual!(language, "没有变量 `{}`", "there is no variable `{}`", name) + &instead(name, language)
}

/// Returns a suggestion for an unknown name, to be appended to a message; empty if there is none.
pub(super) fn instead(name: &str, language: Language) -> String {
    let instead = remedy::of_name(name);
    let told = |instead| bilingual!(language, "；请写成 `{}`", "; write `{}` instead", instead);
    instead.map(told).unwrap_or_default()
}

/// Describes why a condition cannot be evaluated, with remedies.
fn told(condition: &str, error: &Error, language: Language) -> String {
    let invalid = error.code() == Some("expression_invalid");
    let message = match (language, error.place()) {
        (Language::Zh, Some(place)) if invalid => format!("第 {} 列附近无法作为表达式读取", place.column),
        (Language::Zh, None) if invalid => "无法作为表达式读取".to_owned(),
        (Language::Zh, _) if error.code() == Some("limit_exceeded") => {
            "表达式太长，或计算步骤太多".to_owned()
        }
        _ => error.to_string(),
    };
    let remedies = if invalid { remedy::of(condition, language) } else { Vec::new() };
    let apart = bilingual!(language, "；", "; ");
    [vec![message], remedies].concat().join(&apart)
}
