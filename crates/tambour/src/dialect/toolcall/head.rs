//! Recognizes the beginning of a call, its head: the opening mark and the text before the arguments.

use std::ops::Range;

use super::formats::{CallBody, CallForm, CallFormat, FORMS, FormStep};
use crate::lex::space::is_space;

/// Maximum length in bytes of the name of a tool.
const MAX_NAME: usize = 128;

/// Maximum length in bytes of a head, which ends where the arguments begin. A longer head begins no call.
pub(super) const MAX_HEAD: usize = 512;

/// Result of reading the beginning of a text.
#[derive(Debug)]
pub(super) enum CallStart {
    /// Not a mark.
    NoMark,
    /// Possibly a mark; more text is needed.
    PartialMark,
    /// A mark; more text is needed to decide whether it begins a call.
    PartialHead,
    /// A mark of this many bytes that begins nothing.
    StrayMark(usize),
    /// A complete head of this form.
    Form(CallHead),
}

/// Form of a call that has begun, and positions in its text.
#[derive(Clone, Debug)]
pub(super) struct CallHead {
    pub(super) form: &'static CallForm,
    /// Range of the tool's name, if it is before the arguments.
    pub(super) name: Option<Range<usize>>,
    /// Offset of the arguments.
    pub(super) body_start: usize,
}

/// Selection of the forms that are recognized.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FormFilter {
    /// The only format whose forms are accepted; `None` accepts all.
    pub(super) format: Option<CallFormat>,
    /// Set at the beginning of the reply, where forms without an opening mark are accepted.
    pub(super) is_reply_start: bool,
    /// Set if the format is Harmony, or once marks of Harmony have been seen.
    pub(super) has_harmony: bool,
}

impl FormFilter {
    /// Returns whether the form is recognized.
    fn accepts(self, form: &CallForm) -> bool {
        let is_known_format =
            self.format == Some(form.format) || self.has_harmony && form.format == CallFormat::Harmony;
        self.format.is_none_or(|format| format == form.format)
            && (self.is_reply_start || !form.open_mark.is_empty())
            && (is_known_format || !form.needs_format)
    }
}

/// Reads the beginning of `text` in the format of the filter. If that fails and `accepts_any` is set, reads
/// it in any other format. `is_end` is set if no more text follows.
pub(super) fn read_call_start(text: &str, filter: FormFilter, accepts_any: bool, is_end: bool) -> CallStart {
    match read_start(text, filter, is_end) {
        start @ (CallStart::NoMark | CallStart::StrayMark(_)) if accepts_any && filter.format.is_some() => {
            match read_start(text, FormFilter { format: None, ..filter }, is_end) {
                CallStart::NoMark => start,
                other => other,
            }
        }
        start => start,
    }
}

/// Reads the beginning of `text` in one of the forms that the filter accepts. `is_end` is set if no more text
/// follows.
fn read_start(text: &str, filter: FormFilter, is_end: bool) -> CallStart {
    // Length of the longest mark that `text` begins with.
    let mut mark_len = 0;
    let (mut has_partial_head, mut has_partial_mark) = (false, false);
    for form in FORMS.iter().filter(|form| filter.accepts(form)) {
        if text.len() < form.open_mark.len() && form.open_mark.starts_with(text) {
            has_partial_mark = true;
        } else if text.starts_with(form.open_mark) {
            match match_head(text, form, is_end) {
                HeadMatch::Match(head) if !has_partial_head => return CallStart::Form(head),
                HeadMatch::Mismatch => mark_len = mark_len.max(form.open_mark.len()),
                // A match after a partial one waits too: the earlier form may still match and takes
                // precedence.
                _ => (has_partial_head, mark_len) = (true, mark_len.max(form.open_mark.len())),
            }
        }
    }
    match (has_partial_head, has_partial_mark && !is_end) {
        (true, _) if text.len() < MAX_HEAD && !is_end => CallStart::PartialHead,
        (_, true) => CallStart::PartialMark,
        _ if mark_len > 0 => CallStart::StrayMark(mark_len),
        _ => CallStart::NoMark,
    }
}

/// Result of matching the head of a form.
enum HeadMatch {
    Mismatch,
    /// More text is needed.
    Partial,
    Match(CallHead),
}

/// Matches `form` against `text`, which begins with the form's mark.
fn match_head(text: &str, form: &'static CallForm, is_end: bool) -> HeadMatch {
    let (mut at, mut name, mut body_start) = (form.open_mark.len(), None, None);
    // Offset of the first character from `from` on that is not accepted.
    let skip = |from: usize, accepts: &dyn Fn(char) -> bool| {
        from + text[from..].find(|c| !accepts(c)).unwrap_or(text.len() - from)
    };
    for step in form.head {
        let rest = &text[at..];
        let is_partial =
            |expected: &str| !is_end && rest.len() < expected.len() && expected.starts_with(rest);
        match step {
            FormStep::Space => at = skip(at, &is_space),
            FormStep::ArgumentsStart => body_start = Some(at),
            FormStep::Text(expected) if rest.starts_with(expected) => at += expected.len(),
            FormStep::Text(expected) if is_partial(expected) => return HeadMatch::Partial,
            FormStep::Text(_) => return HeadMatch::Mismatch,
            FormStep::Optional(expected) if rest.starts_with(expected) => at += expected.len(),
            FormStep::Optional(expected) if is_partial(expected) => return HeadMatch::Partial,
            FormStep::Optional(_) => {}
            FormStep::OneOf(words) | FormStep::NextIs(words) => {
                match words.iter().find(|word| rest.starts_with(**word)) {
                    Some(_) if matches!(step, FormStep::NextIs(_)) => {}
                    Some(word) => at += word.len(),
                    None if words.iter().any(|word| is_partial(word)) => return HeadMatch::Partial,
                    None => return HeadMatch::Mismatch,
                }
            }
            FormStep::Name | FormStep::Id => {
                let name_end = skip(at, &is_name_char);
                let is_name_step = matches!(step, FormStep::Name);
                if name_end - at > MAX_NAME || is_name_step && name_end == at && name_end < text.len() {
                    return HeadMatch::Mismatch;
                }
                // The name may continue in later text; at the end of the reply no arguments can follow.
                if name_end == text.len() {
                    return if is_end { HeadMatch::Mismatch } else { HeadMatch::Partial };
                }
                if is_name_step {
                    name = Some(at..name_end);
                }
                at = name_end;
            }
        }
    }
    if form.body == CallBody::Python {
        // The name must be a Python name, so that a list of links does not match.
        let first = name.as_ref().and_then(|name| text[name.clone()].chars().next());
        if !first.is_some_and(|first| first.is_alphabetic() || first == '_') {
            return HeadMatch::Mismatch;
        }
    }
    HeadMatch::Match(CallHead { form, name, body_start: body_start.unwrap_or(at) })
}

/// Returns whether `c` is allowed in the name of a tool or the id of a call.
fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/')
}
