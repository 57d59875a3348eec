//! Other spellings of the fields of an answer: in other letters, with other signs, and in Chinese.

use super::fields::{ASSESSMENT, TOP};

/// Names in Chinese of the fields at the top.
const CHINESE: &[(&str, &str)] = &[
    ("评估", "assessment"),
    ("评价", "assessment"),
    ("内部评估", "assessment"),
    ("理解评估", "assessment"),
    ("回复", "response"),
    ("回应", "response"),
    ("回答", "response"),
    ("答复", "response"),
    ("是否退出", "should_exit"),
    ("是否结束", "should_exit"),
    ("应该退出", "should_exit"),
    ("应退出", "should_exit"),
    ("退出原因", "exit_reason"),
    ("退出理由", "exit_reason"),
    ("结束原因", "exit_reason"),
];

/// Those of the fields of the assessment.
const ASSESSED: &[(&str, &str)] = &[
    ("理解程度", "understanding_level"),
    ("理解度", "understanding_level"),
    ("理解水平", "understanding_level"),
    ("有疑问", "has_questions"),
    ("是否有疑问", "has_questions"),
    ("有问题", "has_questions"),
    ("是否有问题", "has_questions"),
    ("表达理解", "expressed_understanding"),
    ("表示理解", "expressed_understanding"),
    ("已表达理解", "expressed_understanding"),
    ("是否表达理解", "expressed_understanding"),
    ("理由", "reasoning"),
    ("评估理由", "reasoning"),
    ("推理", "reasoning"),
];

/// The field at the top of an answer that a key means.
pub(super) fn top(key: &str) -> Option<&'static str> {
    named(key, &TOP, CHINESE)
}

/// The field of the assessment that a key in it means.
pub(super) fn assessed(key: &str) -> Option<&'static str> {
    named(key, &ASSESSMENT, ASSESSED)
}

/// The field that a key means at the top, where fields of the assessment stand too. A lone reason may be one of anything.
pub(super) fn beside(key: &str) -> Option<&'static str> {
    top(key).or_else(|| assessed(key).filter(|name| *name != "reasoning" || key == *name))
}

fn named(key: &str, fields: &[&'static str], chinese: &[(&str, &'static str)]) -> Option<&'static str> {
    if let Some(name) = fields.iter().find(|name| **name == key) {
        return Some(name);
    }
    let plain = |text: &str| -> String {
        text.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
    };
    let key = plain(key);
    let other = || chinese.iter().find(|(name, _)| *name == key).map(|(_, field)| *field);
    fields.iter().copied().find(|name| plain(name) == key).or_else(other)
}
