//! Text that may precede leading reasoning: white space, a role word, the first line of a fence.

use super::rules;
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::fence;
use crate::lex::space::is_space;
use crate::span::Place;

/// Maximum length of a lead-in in bytes.
const MAX_LEAD_IN_BYTES: usize = 255;

/// Role words that templates leave before replies.
const ROLE_WORDS: &[&str] = &["assistant", "model", "ai"];

/// Languages of fences around whole replies; the empty one is a fence without a language.
const REPLY_LANGUAGES: &[&str] = &["", "text", "txt", "plaintext", "markdown", "md", "xml", "html"];

/// Text at the start of a reply, as long as it may be a lead-in. Leading white space is dropped.
#[derive(Debug, Default)]
pub(super) struct LeadIn {
    text: String,
    /// Place of the text.
    start: Place,
}

impl LeadIn {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn place(&self) -> Place {
        self.start
    }

    /// Returns whether the text begins with a fence character.
    pub(super) fn is_fence(&self) -> bool {
        self.text.bytes().next().is_some_and(fence::is_mark)
    }

    /// Reads text of the reply. Returns the start of the held text if it can no longer be a lead-in, `None`
    /// while it may be one.
    pub(super) fn push(&mut self, text: &str, at: Place) -> Option<Place> {
        let mut body = text;
        if self.text.is_empty() {
            // Neither a byte order mark nor the white space around it is text.
            body = text.trim_start_matches(['\u{FEFF}', ' ', '\t', '\r', '\n']);
            self.start = at.end_of(&text[..text.len() - body.len()]);
        }
        self.text.push_str(body);
        (!self.text.is_empty() && !may_be_lead_in(&self.text)).then_some(self.start)
    }

    /// Takes the held text.
    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Drops a role word, because reasoning begins after it. A fence is kept, since it precedes the answer.
    pub(super) fn drop_role_word(&mut self, out: &mut dyn IntentSink) {
        if !self.text.is_empty() && !self.is_fence() {
            let text = self.take_text();
            let word = text.trim_end();
            let message = format!("`{word}` comes before the reasoning");
            let report =
                FindingReport::new(rules::ROLE_WORD, self.start, self.start.offset + word.len(), message);
            out.report(report.with_repair("left out"));
        }
    }
}

/// Returns whether a line is a role word.
pub(in crate::dialect) fn is_role_word(line: &str) -> bool {
    let word = line.trim_end_matches([':', '：', ' ', '\t']);
    ROLE_WORDS.iter().any(|role| role.eq_ignore_ascii_case(word))
}

/// Returns whether text may be the beginning of a role word or of a fence line.
fn may_be_lead_in(text: &str) -> bool {
    if text.len() > MAX_LEAD_IN_BYTES {
        return false;
    }
    let first_byte = text.as_bytes()[0];
    if fence::is_mark(first_byte) {
        let run_len = text.bytes().take_while(|&byte| byte == first_byte).count();
        let (info, text_after) = text[run_len..].split_once('\n').unwrap_or((&text[run_len..], ""));
        let is_language = |language: &&str| language.eq_ignore_ascii_case(info.trim_end());
        let begins_language = |language: &&str| {
            language.get(..info.len()).is_some_and(|start| start.eq_ignore_ascii_case(info))
        };
        let is_run_over = text.len() > run_len;
        return match is_run_over {
            // A fence has at least three marks.
            true if run_len < 3 => false,
            // The line is complete: only white space may follow it.
            true if text[run_len..].contains('\n') => {
                REPLY_LANGUAGES.iter().any(&is_language) && text_after.trim_start_matches(is_space).is_empty()
            }
            _ => REPLY_LANGUAGES.iter().any(|language| begins_language(language) || is_language(language)),
        };
    }
    ROLE_WORDS.iter().any(|role| {
        let shared_len = text.len().min(role.len());
        let Some((word, text_after)) = text.split_at_checked(shared_len) else { return false };
        let text_after = text_after.trim_start_matches([' ', '\t']);
        let text_after = text_after.strip_prefix([':', '：']).unwrap_or(text_after);
        role.get(..shared_len).is_some_and(|role| role.eq_ignore_ascii_case(word))
            && text_after.trim_start_matches(is_space).is_empty()
    })
}
