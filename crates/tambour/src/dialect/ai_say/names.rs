//! Other spellings of the fields of an answer: in other letters, with other signs, and in Chinese.

use super::fields::{ASSESSMENT, RESPONSES, TOP};

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

/// Names of the message that are less usual, without the signs between their words.
const MESSAGES: &[&str] = &[
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

/// Words that stand before or behind such a name and add nothing.
const BEFORE: &[&str] = &["final", "your", "my", "next", "model", "bot"];
const BEHIND: &[&str] =
    &["text", "content", "message", "body", "touser", "string", "回复", "回应", "内容", "文本", "消息"];

/// Words in keys of what a model assessed.
const ASSESSES: &[&str] =
    &["assess", "evaluat", "understand", "exit", "评估", "评价", "理解", "退出", "疑问"];

/// Whether a key is a name of the message: a usual one, which is not misspelt, or another.
pub(super) fn is_message(key: &str) -> bool {
    if RESPONSES.contains(&key) {
        return true;
    }
    let key = plain(key);
    let key =
        BEFORE.iter().find_map(|word| key.strip_prefix(word)).filter(|rest| !rest.is_empty()).unwrap_or(&key);
    let short =
        BEHIND.iter().find_map(|word| key.strip_suffix(word)).filter(|rest| !rest.is_empty()).unwrap_or(key);
    [key, short].iter().any(|name| {
        let usual = *name == "response" || RESPONSES.contains(name) || MESSAGES.contains(name);
        usual || is_misspelt(name, "response") || is_misspelt(name, "message") || is_misspelt(name, "answer")
    })
}

/// Whether a key is one of what a model assessed, under whatever name.
pub(super) fn is_assessed(key: &str) -> bool {
    let key = plain(key);
    ASSESSES.iter().any(|word| key.contains(word)) || is_misspelt(&key, "assessment")
}

/// Whether a word is another that is misspelt: a letter too much, too few, another, or two that changed places, and in a long word
/// two such slips.
fn is_misspelt(word: &str, name: &str) -> bool {
    let most = if name.len() < LONG { 1 } else { 2 };
    !name.starts_with(word)
        && word.len().abs_diff(name.len()) <= most
        && word.starts_with(&name[..1])
        && strsim::osa_distance(word, name) <= most
}

/// Letters of a word in which two slips are.
const LONG: usize = 8;

/// A key in small letters, without the signs between its words.
fn plain(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

fn named(key: &str, fields: &[&'static str], chinese: &[(&str, &'static str)]) -> Option<&'static str> {
    if let Some(name) = fields.iter().find(|name| **name == key) {
        return Some(name);
    }
    let key = plain(key);
    let other = || chinese.iter().find(|(name, _)| *name == key).map(|(_, field)| *field);
    // A lone `reasoning` is common in other objects, and so are words that are much like it.
    let misspelt = |name: &&str| *name != "reasoning" && is_misspelt(&key, &plain(name));
    let same = fields.iter().copied().find(|name| plain(name) == key);
    same.or_else(other).or_else(|| fields.iter().copied().find(misspelt))
}

#[cfg(test)]
mod tests {
    use super::{beside, is_assessed, is_message, top};

    #[test]
    fn misspelt_names_are_known() {
        //
        for key in ["responce", "respones", "reponse", "responses", "Response", "RESPONSE", "res_ponse"] {
            assert_eq!(top(key), Some("response"), "{key}");
        }
        for key in ["assesment", "assessement", "asessment", "Assessment"] {
            assert_eq!(top(key), Some("assessment"), "{key}");
        }
        assert_eq!(beside("understanding_levle"), Some("understanding_level"));
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
            assert_eq!(beside(key), None, "{key}");
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
            assert!(is_message(key), "{key}");
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
            assert!(!is_message(key), "{key}");
        }
        assert!(is_assessed("evaluation") && is_assessed("内部评价") && !is_assessed("level"));
    }
}
