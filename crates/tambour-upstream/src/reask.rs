//! Texts that ask a model again after an unusable reply.

use tambour::texts::Language;
use tambour::{Finding, Severity};

use super::Message;

/// Maximum number of findings that a re-ask lists.
const MAX_REASK_FINDINGS: usize = 20;

/// Codes of findings on replies that copy the example of the instructions.
const ECHO_CODES: [&str; 2] = ["example_echo", "placeholder_copied"];

/// Builds the messages that follow the prompt when a model is re-asked (P-034): its reply, and a complaint in
/// `language` that lists the first warnings and errors of `findings`. A reply that copies the example of the
/// instructions is not repeated to the model, which would copy it again.
pub fn reask_messages<'a>(
    raw_reply: &str,
    findings: impl IntoIterator<Item = &'a Finding>,
    language: Language,
) -> Vec<Message> {
    let findings = findings.into_iter().filter(|finding| finding.severity >= Severity::Warning);
    let (echoes, findings): (Vec<&Finding>, Vec<&Finding>) =
        findings.partition(|finding| ECHO_CODES.contains(&&*finding.code));
    if !echoes.is_empty() {
        return vec![Message::new("user", echo_complaint(language))];
    }
    let finding_list: String = findings
        .iter()
        .take(MAX_REASK_FINDINGS)
        .map(|Finding { line, message, code, .. }| match language {
            Language::Zh => format!("- 第 {line} 行：{message}（{code}）\n"),
            Language::En => format!("- line {line}: {message} ({code})\n"),
        })
        .collect();
    let (complaint_start, instruction) = match language {
        Language::Zh => (
            "上面的回复不符合要求的格式",
            "请严格按照要求的格式重新给出完整的回复，内容要针对用户的问题，不要照抄示例。",
        ),
        Language::En => (
            "The reply above does not keep the format",
            "Please give the whole reply again, exactly in the format asked for. Its content answers the user; \
             do not copy an example.",
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
    vec![Message::new("assistant", raw_reply), Message::new("user", complaint)]
}

/// Complaint about a reply that copies the example.
fn echo_complaint(language: Language) -> &'static str {
    match language {
        Language::Zh => {
            "刚才的回复照抄了格式说明中的示例，没有回答用户。请用自己的话回答用户，并保持要求的格式。"
        }
        Language::En => {
            "Your last reply copied the example of the format instead of answering. Answer the user in your own \
             words, in the same format."
        }
    }
}

#[cfg(test)]
mod tests {
    use tambour::verdict::Contract;
    use tambour::{Options, Profile};

    use super::*;

    /// Messages after a reply in `aiplan` under the built-in instructions.
    fn messages_after(reply: &str, language: Language) -> Vec<Message> {
        let mut options = Options::default();
        (options.profile, options.has_own_examples) = (Profile::Strict, true);
        let contract = Contract::from_name("aiplan").expect("a dialect");
        let findings = contract.check(reply.as_bytes(), &options).findings;
        reask_messages(reply, &findings, language)
    }

    #[test]
    fn a_re_ask_says_what_was_broken() {
        for language in [Language::Zh, Language::En] {
            let messages = messages_after("{\"thought\": \"t\"}", language);
            assert_eq!(messages.len(), 2);
            assert_eq!(messages[0].text(), "{\"thought\": \"t\"}");
            assert!(messages[1].text().contains("field_missing"), "{}", messages[1].text());
        }
    }

    #[test]
    fn a_copied_example_is_not_shown_again() {
        let prompt =
            tambour::dialect::find_dialect("aiplan").expect("a dialect").prompt.expect("instructions");
        let example = prompt(&Options::default()).example;
        let messages = messages_after(&example, Language::En);
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert_eq!(messages[0].role, "user");
        assert!(!example.lines().any(|line| line.len() > 8 && messages[0].text().contains(line)));
    }
}
