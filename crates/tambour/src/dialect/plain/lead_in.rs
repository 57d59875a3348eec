//! Text that may precede leading reasoning: white space, a role word, the first line of a fence.

use super::rules;
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::fence;
use crate::lex::space::is_space;
use crate::span::Place;

/// Longest such text, in bytes.
const MAX_LEAD_IN_BYTES: usize = 255;

/// Role words that templates leave before replies.
const ROLE_WORDS: &[&str] = &["assistant", "model", "ai"];

/// Languages of fences around whole replies.
const REPLY_LANGUAGES: &[&str] = &["", "text", "txt", "plaintext", "markdown", "md", "xml", "html"];

/// Text at the start of a reply, as long as it may be a lead-in. Leading white space is dropped.
#[derive(Debug, Default)]
pub(super) struct LeadIn {
    text: String,
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

    pub(super) fn is_fence(&self) -> bool {
        self.text.bytes().next().is_some_and(fence::is_mark)
    }

    /// Reads text of the reply. Returns the start of the held text once it cannot be a lead-in.
    pub(super) fn push(&mut self, text: &str, at: Place) -> Option<Place> {
        let mut body = text;
        if self.text.is_empty() {
            // A byte order mark is no text, nor is the white space around it.
            body = text.trim_start_matches(['\u{FEFF}', ' ', '\t', '\r', '\n']);
            self.start = at.end_of(&text[..text.len() - body.len()]);
        }
        self.text.push_str(body);
        (!self.text.is_empty() && !may_be_lead_in(&self.text)).then_some(self.start)
    }

    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Leaves out a role word, because reasoning begins. A fence is kept: it precedes the answer.
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
    let mark = text.as_bytes()[0];
    if fence::is_mark(mark) {
        let run = text.bytes().take_while(|&byte| byte == mark).count();
        let (info, after) = text[run..].split_once('\n').unwrap_or((&text[run..], ""));
        let is_language = |language: &&str| language.eq_ignore_ascii_case(info.trim_end());
        let is_beginning = |language: &&str| {
            language.get(..info.len()).is_some_and(|start| start.eq_ignore_ascii_case(info))
        };
        return match text.len() > run {
            true if run < 3 => false,
            true if text[run..].contains('\n') => {
                REPLY_LANGUAGES.iter().any(&is_language) && after.trim_start_matches(is_space).is_empty()
            }
            _ => REPLY_LANGUAGES.iter().any(|language| is_beginning(language) || is_language(language)),
        };
    }
    ROLE_WORDS.iter().any(|role| {
        let shared_len = text.len().min(role.len());
        let Some((start, after)) = text.split_at_checked(shared_len) else { return false };
        let after = after.trim_start_matches([' ', '\t']);
        let after = after.strip_prefix([':', '：']).unwrap_or(after);
        role.get(..shared_len).is_some_and(|role| role.eq_ignore_ascii_case(start))
            && after.trim_start_matches(is_space).is_empty()
    })
}
