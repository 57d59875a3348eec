//! Texts of dialogues in both languages: messages for authors and users, and notes to the model.

use crate::template;
use tambour::error::Error;
use tambour::finding::clip;
use tambour::texts::Language;

/// Returns the failure message for replies without a message to the user, after the last of `attempts` calls.
pub(super) fn message_missing(attempts: u32, language: Language) -> String {
    match (language, attempts) {
        (Language::Zh, _) => {
            format!("模型的回复里没有要说的话（已请求 {attempts} 次），这一轮不算；再次输入会重新请求")
        }
        (Language::En, 1) => {
            "the model's reply has no message, so the round does not count; the next input asks again"
                .to_owned()
        }
        (Language::En, _) => format!(
            "none of {attempts} replies of the model has a message, so the round does not count; the next input asks again"
        ),
    }
}

/// Returns the failure message for unreadable replies of `ai_think`, after the last of `attempts` calls.
pub(super) fn reply_unreadable(attempts: u32, language: Language) -> String {
    match (language, attempts) {
        (Language::Zh, _) => format!("模型的回复无法读取（已请求 {attempts} 次）；再次输入会重新请求"),
        (Language::En, 1) => "the reply could not be read; the next input asks again".to_owned(),
        (Language::En, _) => {
            format!("none of {attempts} replies could be read; the next input asks again")
        }
    }
}

/// Returns the failure message for a template that does not exist or cannot be loaded.
pub(super) fn template_missing(id: &str, error: &Error, language: Language) -> String {
    match (language, error.code()) {
        (Language::Zh, Some(template::TEMPLATE_NOT_FOUND)) => format!("没有模板 `{}`", clip(id, 80)),
        _ => error.to_string(),
    }
}

/// Returns the note at the end of a repeated prompt. `reason` is the code of the last reply's fault.
pub(super) fn reask_note(reason: Option<&str>, language: Language) -> &'static str {
    match (reason, language) {
        (Some("message_missing"), Language::Zh) => {
            "\n\n注意：上一次的回复里没有对用户说的话。这一次在 response 里写出要说的话，不要留空，也不要照抄示例。\n"
        }
        (Some("message_missing"), Language::En) => {
            "\n\nNote: the last reply said nothing to the user. This time write your message to the user in response; do not leave it empty, and do not copy the example.\n"
        }
        (Some("answer_unfit"), Language::Zh) => {
            "\n\n注意：上一次的 value 不是这个问题的合格答案。用户的回答不合要求时，usable 为 false，value 为 null，并在 response 里再问一次。\n"
        }
        (Some("answer_unfit"), Language::En) => {
            "\n\nNote: the last value was not a valid answer to this question. If the user's answer is not valid, set usable to false and value to null, and ask again in the response.\n"
        }
        (_, Language::Zh) => {
            "\n\n注意：上一次的回复不是要求的 JSON 对象。这一次只输出这个 JSON 对象，前后不要有任何其他内容。\n"
        }
        (_, Language::En) => {
            "\n\nNote: the last reply was not the JSON object asked for. This time write only that JSON object, and nothing before or after it.\n"
        }
    }
}
