//! Conditions of actions: an expression over variables, never code. Values of different types are not
//! comparable, except a number with a text that is a number, and any value with null by `==` and `!=`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::jinja::{self, OperandType, TypeMismatch};
use tambour::error::Error;
use tambour::texts::{Language, bilingual};

/// Functions that every expression can call; the template engine lists them among the variables.
const FUNCTIONS: [&str; 3] = ["dict", "namespace", "range"];

/// Evaluates a condition.
///
/// # Errors
/// The reason why the condition cannot be evaluated: it is not an expression, exceeds a limit, uses an
/// undefined variable or value, or compares values that are not comparable.
pub(super) fn evaluate(
    condition: &str,
    variables: &Map<String, Value>,
    language: Language,
) -> Result<bool, String> {
    // `None` if the result is undefined.
    let outcome =
        jinja::evaluate_typed_condition(condition, variables).map_err(|failure| match failure.mismatch {
            Some(mismatch) => describe_mismatch(mismatch, language),
            None => describe_error(condition, &failure.error, language),
        })?;
    // The engine accepts comparisons with undefined variables, but the usual cause is a misspelled name.
    let missing_name =
        used_variables(condition, language)?.into_iter().find(|name| !variables.contains_key(name));
    match (outcome, missing_name) {
        (_, Some(name)) if !tests_existence(condition) => Err(describe_undefined(&name, language)),
        (None, _) => Err(bilingual!(language, "用到了不存在的东西", "it uses something that does not exist")),
        (Some(is_true), _) => Ok(is_true),
    }
}

/// Returns the variables that a condition uses.
///
/// # Errors
/// The condition is not an expression, or exceeds a limit.
pub(super) fn used_variables(condition: &str, language: Language) -> Result<BTreeSet<String>, String> {
    // The evaluation enforces limits while it parses, but listing the variables does not. So the condition is
    // evaluated first, without variables, only to find out whether it exceeds a limit.
    if let Err(error) = jinja::evaluate_condition(condition, &Map::new())
        && error.code() == Some("limit_exceeded")
    {
        return Err(describe_error(condition, &error, language));
    }
    let names =
        jinja::list_variables(condition).map_err(|error| describe_error(condition, &error, language))?;
    Ok(names.into_iter().filter(|name| !FUNCTIONS.contains(&name.as_str())).collect())
}

/// Returns true if the condition itself tests whether variables are defined, judged by the words it contains.
pub(super) fn tests_existence(condition: &str) -> bool {
    condition.contains("defined") || condition.contains("default")
}

/// Describes a comparison of values of different types.
pub(super) fn describe_mismatch(mismatch: TypeMismatch, language: Language) -> String {
    let TypeMismatch { operator, left, right } = mismatch;
    // A number is comparable with a text that is a number, so the text of a mismatch is not a number.
    let is_text_with_number =
        |side: OperandType, other: OperandType| side == OperandType::Text && other == OperandType::Number;
    let describe_side =
        |side: OperandType, other: OperandType| match (is_text_with_number(side, other), language) {
            (true, Language::Zh) => "不是数字的文本",
            (true, Language::En) => "a text that is not a number",
            (false, _) => type_name(side, language),
        };
    let (left, right) = (describe_side(left, right), describe_side(right, left));
    bilingual!(language, "`{}` 比较了不同类型的值：{}与{}", "`{}` compares {} with {}", operator, left, right)
}

/// Returns the name of a type.
pub(super) fn type_name(operand_type: OperandType, language: Language) -> &'static str {
    match (operand_type, language) {
        (OperandType::Null, Language::Zh) => "空值",
        (OperandType::Null, Language::En) => "nothing (`none`)",
        (OperandType::Boolean, Language::Zh) => "真假值",
        (OperandType::Boolean, Language::En) => "true or false",
        (OperandType::Number, Language::Zh) => "数字",
        (OperandType::Number, Language::En) => "a number",
        (OperandType::Text, Language::Zh) => "文本",
        (OperandType::Text, Language::En) => "a text",
        (OperandType::List, Language::Zh) => "列表",
        (OperandType::List, Language::En) => "a list",
        (OperandType::Map, Language::Zh) => "映射",
        (OperandType::Map, Language::En) => "a map",
        (_, Language::Zh) => "其他值",
        (_, Language::En) => "something else",
    }
}

/// Describes a variable without a value, with a suggestion.
fn describe_undefined(name: &str, language: Language) -> String {
    bilingual!(language, "没有变量 `{}`", "there is no variable `{}`", name) + &suggest_name(name, language)
}

/// Returns a suggestion for an unknown name, to be appended to a message; empty if there is none.
pub(super) fn suggest_name(name: &str, language: Language) -> String {
    let replacement = find_replacement(name);
    let suggestion = |replacement| bilingual!(language, "；请写成 `{}`", "; write `{}` instead", replacement);
    replacement.map(suggestion).unwrap_or_default()
}

/// Describes why a condition cannot be evaluated, with remedies.
fn describe_error(condition: &str, error: &Error, language: Language) -> String {
    let is_invalid = error.code() == Some("expression_invalid");
    let message = match (language, error.location()) {
        (Language::Zh, Some(place)) if is_invalid => format!("第 {} 列附近无法作为表达式读取", place.column),
        (Language::Zh, None) if is_invalid => "无法作为表达式读取".to_owned(),
        (Language::Zh, _) if error.code() == Some("limit_exceeded") => {
            "表达式太长，或计算步骤太多".to_owned()
        }
        _ => error.to_string(),
    };
    let remedies = if is_invalid { find_remedies(condition, language) } else { Vec::new() };
    let separator = bilingual!(language, "；", "; ");
    [vec![message], remedies].concat().join(&separator)
}

/// Operators of mathematics and of other programming languages, full-width signs and typographic quotation
/// marks, with their replacements. A sign comes before any shorter sign that it begins with. The valid
/// operators `==` and `!=` are listed so that they are not taken for `=` and `!`.
const SIGNS: [(&str, &str); 24] = [
    ("===", "=="),
    ("!==", "!="),
    ("&&", "and"),
    ("||", "or"),
    ("<>", "!="),
    ("=>", ">="),
    ("=<", "<="),
    ("≥", ">="),
    ("≤", "<="),
    ("≠", "!="),
    ("＝", "=="),
    ("＞", ">"),
    ("＜", "<"),
    ("！", "not"),
    ("（", "("),
    ("）", ")"),
    ("，", ","),
    ("“", "\""),
    ("”", "\""),
    ("‘", "'"),
    ("’", "'"),
    ("==", "=="),
    ("!=", "!="),
    ("&", "and"),
];

/// Words for operators and literals in other programming languages and in Chinese, with their replacements.
const WORDS: [(&str, &str); 15] = [
    ("AND", "and"),
    ("OR", "or"),
    ("NOT", "not"),
    ("And", "and"),
    ("Or", "or"),
    ("Not", "not"),
    ("IN", "in"),
    ("且", "and"),
    ("并且", "and"),
    ("和", "and"),
    ("或", "or"),
    ("或者", "or"),
    ("非", "not"),
    ("TRUE", "true"),
    ("FALSE", "false"),
];

/// Returns the replacement for a word of another programming language, or of Chinese, that stands for `none`,
/// `true`, `false` or an operator.
fn find_replacement(name: &str) -> Option<&'static str> {
    match name {
        "null" | "NULL" | "Null" | "nil" | "undefined" => Some("none"),
        _ => WORDS.iter().find(|(word, _)| *word == name).map(|(_, replacement)| *replacement),
    }
}

/// Returns remedies for an invalid condition, without duplicates.
fn find_remedies(condition: &str, language: Language) -> Vec<String> {
    let mut remedies: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if !remedies.contains(&text) {
            remedies.push(text);
        }
    };
    let describe_replacement = |symbol: &str, replacement: &str| {
        bilingual!(language, "`{}` 请写成 `{}`", "write `{1}` for `{0}`", symbol, replacement)
    };
    let mut offset = 0;
    while let Some(c) = condition[offset..].chars().next() {
        let remaining = &condition[offset..];
        if matches!(c, '\'' | '"') {
            // Skips a string literal with its quotation marks.
            offset += remaining[1..].find(c).map_or(remaining.len(), |end| end + 2);
            continue;
        }
        if c == '{' {
            let name =
                remaining.trim_start_matches(['{', '%']).split(['}', '%']).next().unwrap_or_default().trim();
            if is_name(name) {
                add(bilingual!(
                    language,
                    "条件里的变量不加花括号：`{}`",
                    "in a condition a variable has no braces: `{}`",
                    name
                ));
            }
            offset += 1;
            continue;
        }
        if let Some((symbol, replacement)) = SIGNS.iter().find(|(symbol, _)| remaining.starts_with(symbol)) {
            if symbol != replacement {
                add(describe_replacement(symbol, replacement));
            }
            offset += symbol.len();
            continue;
        }
        match c {
            // Valid operators, with or without `=`.
            '<' | '>' => offset += 1 + usize::from(remaining[1..].starts_with('=')),
            '=' => {
                add(bilingual!(language, "比较相等请写 `==`，不是 `=`", "write `==` to compare, not `=`"));
                offset += 1;
            }
            '!' => {
                add(describe_replacement("!", "not"));
                offset += 1;
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end =
                    remaining.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(remaining.len());
                let word = &remaining[..end];
                if let Some((word, replacement)) = WORDS.iter().find(|(candidate, _)| *candidate == word) {
                    add(describe_replacement(word, replacement));
                }
                offset += end;
            }
            c => offset += c.len_utf8(),
        }
    }
    remedies
}

/// Returns true if a text can be the name of a variable in a condition.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
