//! User-visible texts: defaults in Chinese and English, and helpers that word messages.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// Formats a text like `format!`, from a Chinese and an English pattern, one of which `$language` selects.
#[doc(hidden)]
#[macro_export]
macro_rules! bilingual {
    ($language:expr, $zh:literal, $en:literal) => {
        match $language {
            $crate::texts::Language::Zh => $zh.to_owned(),
            $crate::texts::Language::En => $en.to_owned(),
        }
    };
    ($language:expr, $zh:literal, $en:literal $(, $value:expr)* $(,)?) => {
        match $language {
            $crate::texts::Language::Zh => format!($zh $(, $value)*),
            $crate::texts::Language::En => format!($en $(, $value)*),
        }
    };
}
#[doc(hidden)]
pub use crate::bilingual;

/// Language of the default texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Chinese, the language of the specification.
    #[default]
    Zh,
    /// English.
    En,
}

/// Default texts that the specifications leave to the product.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Texts {
    /// Language of the texts.
    pub language: Language,
    /// Title of a phase that has none.
    pub phase_title: Cow<'static, str>,
    /// Answer of a reply that has none.
    pub fallback: Cow<'static, str>,
    /// Answer of a plan that only calls tools.
    pub running_tools: Cow<'static, str>,
    /// Thought of the fallback plan (P-017).
    pub plan_thought: Cow<'static, str>,
    /// Placeholder in a prompt for a conversation that has not begun.
    pub no_history: Cow<'static, str>,
}

impl Texts {
    /// Default texts of one language.
    #[must_use]
    pub fn from_language(language: Language) -> Texts {
        match language {
            Language::Zh => Texts {
                language,
                phase_title: "思考过程".into(),
                fallback: "抱歉，我的响应格式有问题，请重新尝试您的请求。".into(),
                running_tools: "正在执行所需的操作。".into(),
                plan_thought: "解析响应格式时出现错误，使用安全降级模式".into(),
                no_history: "（暂无对话历史）".into(),
            },
            Language::En => Texts {
                language,
                phase_title: "Thinking".into(),
                fallback: "Sorry, my reply had a format problem. Please try your request again.".into(),
                running_tools: "Running the requested tools.".into(),
                plan_thought: "The reply format could not be parsed; using the safe fallback".into(),
                no_history: "(no conversation yet)".into(),
            },
        }
    }
}

impl Texts {
    /// User-visible text of the notice with the code `code`; a general text for an unknown code.
    #[doc(hidden)]
    #[must_use]
    pub fn notice_text(&self, code: &str) -> &'static str {
        let [zh, en] = match code {
            "state_update_partial_failure" => ["部分状态更新失败", "Part of the state update failed"],
            "tool_call_refused" => ["工具调用未执行", "A tool call was not run"],
            "tool_call_cut" => {
                ["回复被截断，工具调用未执行", "The reply was cut, so a tool call was not run"]
            }
            "ui_component_invalid" => ["界面组件无法显示", "A component cannot be shown"],
            "media_refused" => ["媒体无法显示", "A media item cannot be shown"],
            _ => ["部分内容无法处理", "A part of the reply could not be read"],
        };
        if self.language == Language::Zh { zh } else { en }
    }
}

impl Texts {
    /// User-visible text of the notice `constraint_refused`: a weaker form is used, or none.
    #[doc(hidden)]
    #[must_use]
    pub fn constraint_refusal_text(&self, is_constrained: bool) -> &'static str {
        let [zh, en] = match is_constrained {
            true => [
                "模型服务不接受此格式约束，已改用较弱的方式",
                "The model service refuses this constraint, so a weaker one is used",
            ],
            false => [
                "模型服务不接受此格式约束，回复不受约束",
                "The model service refuses this constraint, so the reply is not constrained",
            ],
        };
        if self.language == Language::Zh { zh } else { en }
    }
}

/// A count with its noun, such as `1 round` or `2 rounds`.
#[must_use]
pub fn format_count<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// Replaces Rust type names in the message of a JSON, YAML or TOML parser by words of JSON.
#[must_use]
pub fn explain_parse_error(message: &str) -> String {
    const WORDS: [(&str, &str); 13] = [
        ("f64", "a number"),
        ("u64", "a whole number from 0 to 18446744073709551615"),
        ("usize", "a whole number from 0 to 18446744073709551615"),
        ("u32", "a whole number from 0 to 4294967295"),
        ("u16", "a whole number from 0 to 65535"),
        ("u8", "a whole number from 0 to 255"),
        ("i64", "a whole number"),
        ("i32", "a whole number"),
        ("a sequence", "a list"),
        ("sequence start", "a list"),
        ("a map", "an object"),
        ("mapping start", "an object"),
        ("a boolean", "true or false"),
    ];
    const EXPECTED: &str = "expected ";
    let Some(at) = message.rfind(EXPECTED).map(|at| at + EXPECTED.len()) else { return message.to_owned() };
    let (before, expected) = message.split_at(at);
    // The type name must be a whole word; text such as ` at line 1` may follow it.
    let is_whole_name =
        |length: usize| !expected[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    for (rust_name, word) in WORDS {
        if expected.starts_with(rust_name) && is_whole_name(rust_name.len()) {
            return format!("{before}{word}{}", &expected[rust_name.len()..]);
        }
    }
    match expected.strip_prefix("struct ") {
        Some(type_name) => {
            let end = type_name.find(|c: char| !c.is_alphanumeric()).unwrap_or(type_name.len());
            format!("{before}an object{}", &type_name[end..])
        }
        None => message.to_owned(),
    }
}

/// Maximum number of names that a message lists.
const MAX_LISTED_NAMES: usize = 20;

/// Maximum number of candidates compared with a misspelled name.
const MAX_COMPARED_NAMES: usize = 1000;

/// Up to three of the first 1000 names in `candidates` that resemble `name`, the closest first.
#[must_use]
pub fn closest_names<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let prefix = comparable_prefix(name).to_lowercase();
    let likeness_of = |candidate: &str| {
        strsim::normalized_damerau_levenshtein(&prefix, &comparable_prefix(candidate).to_lowercase())
    };
    let candidates = candidates.into_iter().take(MAX_COMPARED_NAMES);
    let mut found: Vec<(f64, &str)> =
        candidates.map(|candidate| (likeness_of(candidate), candidate)).collect();
    // Equal names have the likeness 1, names without a common letter 0.
    found.retain(|(likeness, _)| *likeness >= 0.5);
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

/// The names in `candidates`, formatted for a message: each once, the closest to `name` first, the others in
/// their order, at most 20 in all.
#[must_use]
pub fn list_names<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut seen_names = HashSet::new();
    names.extend(candidates.into_iter().filter(|name| seen_names.insert(*name)));
    let close_names = closest_names(name, names.iter().copied());
    let other_names = names.iter().copied().filter(|name| !close_names.contains(name));
    let listed_names: Vec<&str> =
        close_names.iter().copied().chain(other_names).take(MAX_LISTED_NAMES).collect();
    match names.len() - listed_names.len() {
        0 => listed_names.join(", "),
        omitted_count => format!("{} and {omitted_count} more", listed_names.join(", ")),
    }
}

/// First 64 bytes of a name, the only ones compared: models write names of any length.
fn comparable_prefix(name: &str) -> &str {
    &name[..name.floor_char_boundary(64)]
}

impl Default for Texts {
    fn default() -> Texts {
        Texts::from_language(Language::Zh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_agree_with_their_nouns() {
        assert_eq!([format_count(0_usize, "round"), format_count(1_u32, "round")], ["0 rounds", "1 round"]);
        assert_eq!([format_count(2_u64, "entry"), format_count(2_usize, "key")], ["2 entries", "2 keys"]);
    }

    #[test]
    fn names_are_listed_once_and_the_closest_first() {
        assert_eq!(list_names("openia", ["demo", "local", "openai", "demo"]), "openai, demo, local");
        let names: Vec<String> = (0..30).map(|number| format!("name{number}")).collect();
        let list = list_names("nobody", names.iter().map(String::as_str));
        assert!(list.ends_with("and 10 more"), "{list}");
        assert_eq!(list_names("x", []), "");
    }

    #[test]
    fn rust_type_names_become_words_of_json() {
        for (message, words) in [
            ("expected u32 at line 1", "expected a whole number from 0 to 4294967295 at line 1"),
            ("expected u64", "expected a whole number from 0 to 18446744073709551615"),
            ("expected struct NewKey with 3 elements", "expected an object with 3 elements"),
            ("unknown field `u32`, expected one of `a`", "unknown field `u32`, expected one of `a`"),
            ("expected a mapping", "expected a mapping"),
        ] {
            assert_eq!(
                explain_parse_error(&format!("invalid type: {message}")),
                format!("invalid type: {words}")
            );
        }
    }
}
