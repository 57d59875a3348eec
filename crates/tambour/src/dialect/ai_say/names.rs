//! Other spellings of an answer's fields: other case, other separators, Chinese names and misspellings
//!

use super::fields::{ANSWER_FIELDS, ASSESSMENT_FIELDS, RESPONSE_ALIASES};

/// Chinese names of the top-level fields.
const CHINESE_ANSWER_FIELDS: &[(&str, &str)] = &[
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

/// Chinese names of the assessment fields.
const CHINESE_ASSESSMENT_FIELDS: &[(&str, &str)] = &[
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

/// Returns the top-level field that a key stands for.
pub(super) fn find_answer_field(key: &str) -> Option<&'static str> {
    find_field(key, &ANSWER_FIELDS, CHINESE_ANSWER_FIELDS)
}

/// Returns the assessment field that a key in the assessment stands for.
pub(super) fn find_assessment_field(key: &str) -> Option<&'static str> {
    find_field(key, &ASSESSMENT_FIELDS, CHINESE_ASSESSMENT_FIELDS)
}

/// Returns the field that a key at the top level stands for; assessment fields may occur there too.
/// `reasoning` counts only in exactly this spelling, because words like it are too common.
pub(super) fn find_any_field(key: &str) -> Option<&'static str> {
    find_answer_field(key)
        .or_else(|| find_assessment_field(key).filter(|name| *name != "reasoning" || key == *name))
}

/// Less common names of the message, in lower case without separators.
const MESSAGE_ALIASES: &[&str] = &[
    "output",
    "answer",
    "say",
    "says",
    "said",
    "speech",
    "utterance",
    "dialogue",
    "dialog",
    "spoken",
    "reaction",
    "feedback",
    "counsellor",
    "ai",
    "bot",
    "reply",
    "回复",
    "回应",
    "回答",
    "答复",
    "咨询师",
    "followup",
    "followupquestion",
    "nextquestion",
    "assistant",
    "counselor",
    "therapist",
    "coach",
    "tutor",
    "teacher",
    "输出",
    "消息",
    "内容",
    "话语",
    "台词",
    "对话",
    "答案",
    "文本",
    "助手",
    "老师",
    "教练",
];

/// Words before or after a name of the message that add no meaning.
const PREFIXES: &[&str] = &["final", "your", "my", "next", "model", "bot"];
const SUFFIXES: &[&str] =
    &["text", "content", "message", "body", "touser", "string", "回复", "回应", "内容", "文本", "消息"];

/// Words, or beginnings of words, in keys of assessments.
const ASSESSMENT_WORDS: &[&str] =
    &["assess", "evaluat", "understand", "exit", "评估", "评价", "理解", "退出", "疑问"];

/// Returns true if the key is a name of the message: one of the aliases, with or without a prefix or suffix,
/// or a misspelling of a common name.
pub(super) fn is_message_key(key: &str) -> bool {
    if RESPONSE_ALIASES.contains(&key) {
        return true;
    }
    let key = normalize_key(key);
    let key = PREFIXES
        .iter()
        .find_map(|word| key.strip_prefix(word))
        .filter(|stem| !stem.is_empty())
        .unwrap_or(&key);
    let stem = SUFFIXES
        .iter()
        .find_map(|word| key.strip_suffix(word))
        .filter(|stem| !stem.is_empty())
        .unwrap_or(key);
    [key, stem].iter().any(|name| {
        let is_alias =
            *name == "response" || RESPONSE_ALIASES.contains(name) || MESSAGE_ALIASES.contains(name);
        is_alias
            || is_misspelled(name, "response")
            || is_misspelled(name, "message")
            || is_misspelled(name, "answer")
    })
}

/// Returns true if the key names a part of an assessment, under any name.
pub(super) fn is_assessment_key(key: &str) -> bool {
    let key = normalize_key(key);
    ASSESSMENT_WORDS.iter().any(|word| key.contains(word)) || is_misspelled(&key, "assessment")
}

/// Returns true if `word` is a misspelling of `name`: one letter added, missing, changed or swapped with its
/// neighbour, or two such errors in a long name. The first letter must be right.
fn is_misspelled(word: &str, name: &str) -> bool {
    let max_distance = if name.len() < LONG_NAME { 1 } else { 2 };
    // The beginning of a name, such as `assess`, is a different word, not a misspelling.
    !name.starts_with(word)
        && word.len().abs_diff(name.len()) <= max_distance
        && word.starts_with(&name[..1])
        && strsim::osa_distance(word, name) <= max_distance
}

/// Length in bytes from which a name may have two errors.
const LONG_NAME: usize = 8;

/// Returns the key in lower case, without the separators between its words.
fn normalize_key(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Returns the field that a key stands for: by its name, in any case and with any separators, by a Chinese
/// name, or by a misspelled name.
fn find_field(
    key: &str,
    fields: &[&'static str],
    chinese_names: &[(&str, &'static str)],
) -> Option<&'static str> {
    if let Some(name) = fields.iter().find(|name| **name == key) {
        return Some(name);
    }
    let key = normalize_key(key);
    let by_chinese_name = || chinese_names.iter().find(|(name, _)| *name == key).map(|(_, field)| *field);
    // A lone `reasoning` is common in other objects, and so are words similar to it.
    let is_similar = |name: &&str| *name != "reasoning" && is_misspelled(&key, &normalize_key(name));
    let exact = fields.iter().copied().find(|name| normalize_key(name) == key);
    exact.or_else(by_chinese_name).or_else(|| fields.iter().copied().find(is_similar))
}

#[cfg(test)]
mod tests {
    use super::{find_answer_field, find_any_field, is_assessment_key, is_message_key};

    #[test]
    fn misspelled_names_are_recognized() {
        //
        for key in ["responce", "respones", "reponse", "responses", "Response", "RESPONSE", "res_ponse"] {
            assert_eq!(find_answer_field(key), Some("response"), "{key}");
        }
        for key in ["assesment", "assessement", "asessment", "Assessment"] {
            assert_eq!(find_answer_field(key), Some("assessment"), "{key}");
        }
        assert_eq!(find_any_field("understanding_levle"), Some("understanding_level"));
        for key in [
            "respond",
            "resource",
            "request",
            "session",
            "season",
            "reasonings",
            "reason",
            "level",
            "questions",
        ] {
            assert_eq!(find_any_field(key), None, "{key}");
        }
        for key in [
            "output",
            "answer",
            "final_answer",
            "response_text",
            "messageToUser",
            "mesage",
            "anwser",
            "Counselor",
            "输出",
            "reply_text",
        ] {
            assert!(is_message_key(key), "{key}");
        }
        for key in [
            "user_message",
            "context",
            "note",
            "mood",
            "question",
            "passage",
            "input",
            "summary",
            "texture",
            "next",
        ] {
            assert!(!is_message_key(key), "{key}");
        }
        assert!(
            is_assessment_key("evaluation") && is_assessment_key("内部评价") && !is_assessment_key("level")
        );
    }
}
