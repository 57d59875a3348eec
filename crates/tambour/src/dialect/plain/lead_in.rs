//! Text that may precede leading reasoning: white space, a role word, the first line of a fence.

use super::rules;
use crate::dialect::Output;
use crate::finding::Report;
use crate::lex::fence;
use crate::lex::space::is_space;
use crate::span::Place;

/// Longest such text, in bytes.
const MOST: usize = 255;

/// Role words that templates leave before replies.
const ROLES: &[&str] = &["assistant", "model", "ai"];

/// Languages of fences around whole replies.
const LANGUAGES: &[&str] = &["", "text", "txt", "plaintext", "markdown", "md", "xml", "html"];

/// Text at the start of a reply, as long as it may be a lead-in. Leading white space is dropped.
#[derive(Debug, Default)]
pub(super) struct LeadIn {
    text: String,
    at: Place,
}

impl LeadIn {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn place(&self) -> Place {
        self.at
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
            self.at = at.after(&text[..text.len() - body.len()]);
        }
        self.text.push_str(body);
        (!self.text.is_empty() && !may_be(&self.text)).then_some(self.at)
    }

    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Leaves out a role word, because reasoning begins. A fence is kept: it precedes the answer.
    pub(super) fn leave_out(&mut self, out: &mut dyn Output) {
        if !self.text.is_empty() && !self.is_fence() {
            let text = self.take();
            let word = text.trim_end();
            let message = format!("`{word}` stands before the reasoning");
            let report = Report::new(rules::ROLE_WORD, self.at, self.at.offset + word.len(), message);
            out.report(report.repaired("left out"));
        }
    }
}

/// Returns whether a line is a role word.
pub(in crate::dialect) fn is_role(line: &str) -> bool {
    let word = line.trim_end_matches([':', '：', ' ', '\t']);
    ROLES.iter().any(|role| role.eq_ignore_ascii_case(word))
}

/// Returns whether text may be the beginning of a role word or of a fence line.
fn may_be(text: &str) -> bool {
    if text.len() > MOST {
        return false;
    }
    let mark = text.as_bytes()[0];
    if fence::is_mark(mark) {
        let run = text.bytes().take_while(|&byte| byte == mark).count();
        let (info, behind) = text[run..].split_once('\n').unwrap_or((&text[run..], ""));
        let known = |language: &&str| language.eq_ignore_ascii_case(info.trim_end());
        let begins = |language: &&str| {
            language.get(..info.len()).is_some_and(|start| start.eq_ignore_ascii_case(info))
        };
        return match text.len() > run {
            true if run < 3 => false,
            true if text[run..].contains('\n') => {
                LANGUAGES.iter().any(&known) && behind.trim_start_matches(is_space).is_empty()
            }
            _ => LANGUAGES.iter().any(|language| begins(language) || known(language)),
        };
    }
    ROLES.iter().any(|role| {
        let shared = text.len().min(role.len());
        let Some((start, behind)) = text.split_at_checked(shared) else { return false };
        let behind = behind.trim_start_matches([' ', '\t']);
        let behind = behind.strip_prefix([':', '：']).unwrap_or(behind);
        role.get(..shared).is_some_and(|role| role.eq_ignore_ascii_case(start))
            && behind.trim_start_matches(is_space).is_empty()
    })
}
