//! Texts that ask a model again after an unusable reply.

use tambour::texts::Language;
use tambour::{Finding, Severity};

use super::Message;

/// Maximum number of findings that a re-ask lists.
const MAX_REASK_FINDINGS: usize = 20;

/// Builds the messages that follow the prompt when a model is re-asked (P-034): its reply, and a complaint in
/// `language` that lists the first warnings and errors of `findings`.
pub fn reask_messages<'a>(
    raw_reply: &str,
    findings: impl IntoIterator<Item = &'a Finding>,
    language: Language,
) -> [Message; 2] {
    let findings = findings.into_iter().filter(|finding| finding.severity >= Severity::Warning);
    let finding_list: String = findings
        .take(MAX_REASK_FINDINGS)
        .map(|Finding { line, message, code, .. }| match language {
            Language::Zh => format!("- 第 {line} 行：{message}（{code}）\n"),
            Language::En => format!("- line {line}: {message} ({code})\n"),
        })
        .collect();
    let (complaint_start, instruction) = match language {
        Language::Zh => ("上面的回复不符合要求的格式", "请严格按照要求的格式重新给出完整的回复。"),
        Language::En => (
            "The reply above does not keep the format",
            "Please give the whole reply again, exactly in the format asked for.",
        ),
    };
    let (colon, full_stop) = match language {
        Language::Zh => ("：", "。"),
        Language::En => (":", "."),
    };
    let complaint = if finding_list.is_empty() {
        format!("{complaint_start}{full_stop}\n\n{instruction}")
    } else {
        format!("{complaint_start}{colon}\n{finding_list}\n{instruction}")
    };
    [Message::new("assistant", raw_reply), Message::new("user", complaint)]
}
