//! Conditions of actions: an expression over variables, never code. Values of different types are not compared.

mod remedy;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::jinja::{self, Mismatch, Type};
use tambour::error::Error;
use tambour::texts::{Language, bilingual};

/// Functions that every expression has.
const FUNCTIONS: [&str; 3] = ["dict", "namespace", "range"];

/// Whether a condition holds.
///
/// # Errors
/// Why it cannot be said: it is no expression, a variable is undefined, or values of different types are compared.
pub(super) fn holds(
    condition: &str,
    variables: &Map<String, Value>,
    language: Language,
) -> Result<bool, String> {
    let holds = jinja::holds(condition, variables).map_err(|broken| match broken.mismatch {
        Some(mismatch) => compared(mismatch, language),
        None => told(condition, &broken.error, language),
    })?;
    // Comparing what is not there is no error to the engine, but mostly a misspelt name.
    let missing = uses(condition, language)?.into_iter().find(|name| !variables.contains_key(name));
    match (holds, missing) {
        (_, Some(name)) if !asks_for_existence(condition) => Err(undefined(&name, language)),
        (None, _) => Err(bilingual!(language, "用到了不存在的东西", "it uses something that is not there")),
        (Some(holds), _) => Ok(holds),
    }
}

/// The variables that a condition uses.
///
/// # Errors
/// It is no expression.
pub(super) fn uses(condition: &str, language: Language) -> Result<BTreeSet<String>, String> {
    // Read with limits first.
    if let Err(error) = jinja::condition(condition, &Map::new())
        && error.code() == Some("limit_exceeded")
    {
        return Err(told(condition, &error, language));
    }
    let names = jinja::variables(condition).map_err(|error| told(condition, &error, language))?;
    Ok(names.into_iter().filter(|name| !FUNCTIONS.contains(&name.as_str())).collect())
}

/// Whether a condition itself looks whether variables are there.
pub(super) fn asks_for_existence(condition: &str) -> bool {
    condition.contains("defined") || condition.contains("default")
}

/// Values of different types that a condition compares, in words.
pub(super) fn compared(mismatch: Mismatch, language: Language) -> String {
    let Mismatch { sign, left, right } = mismatch;
    // A text that is a number would have been compared.
    let no_number = |side: Type, other: Type| side == Type::Text && other == Type::Number;
    let word = |side: Type, other: Type| match (no_number(side, other), language) {
        (true, Language::Zh) => "不是数字的文本",
        (true, Language::En) => "a text that is no number",
        (false, _) => type_name(side, language),
    };
    let (left, right) = (word(left, right), word(right, left));
    bilingual!(language, "`{}` 比较了不同类型的值：{}与{}", "`{}` compares {} with {}", sign, left, right)
}

/// The name of a type.
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

/// A variable without a value, with what may help.
fn undefined(name: &str, language: Language) -> String {
    bilingual!(language, "没有变量 `{}`", "there is no variable `{}`", name) + &instead(name, language)
}

/// Name that may be meant by one that no variable has, as words behind a message; empty where nobody knows.
pub(super) fn instead(name: &str, language: Language) -> String {
    let instead = remedy::of_name(name);
    let told = |instead| bilingual!(language, "；请写成 `{}`", "; write `{}` instead", instead);
    instead.map(told).unwrap_or_default()
}

/// Message for a condition that cannot be evaluated, with remedies.
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
