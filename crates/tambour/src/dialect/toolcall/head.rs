//! Recognizes the beginning of a call: its mark and the text before its arguments.

use std::ops::Range;

use super::formats::{Body, FORMS, Form, Format, Step};
use crate::lex::space::is_space;

/// Longest name, in bytes.
const NAME: usize = 128;

/// Most bytes from the mark to the arguments. A longer head is not a call.
pub(super) const HEAD: usize = 512;

/// Result of reading the beginning of a text.
#[derive(Debug)]
pub(super) enum Begun {
    /// Not a mark.
    No,
    /// Possibly a mark; more text is needed.
    Mark,
    /// A mark; more text is needed to decide whether it begins a call.
    Part,
    /// A mark of this many bytes that begins nothing.
    Stray(usize),
    /// A form of call.
    Form(Head),
}

/// A form and the positions of its parts.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) form: &'static Form,
    /// Range of the tool's name, if it is before the arguments.
    pub(super) name: Option<Range<usize>>,
    /// Offset of the arguments.
    pub(super) body: usize,
}

/// Selection of the forms that are recognized.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Which {
    /// The format, if it is known.
    pub(super) format: Option<Format>,
    /// Set at the beginning of the reply.
    pub(super) start: bool,
    /// Set once marks of Harmony have been seen.
    pub(super) harmony: bool,
}

impl Which {
    fn takes(self, form: &Form) -> bool {
        let known = self.format == Some(form.format) || self.harmony && form.format == Format::Harmony;
        self.format.is_none_or(|format| format == form.format)
            && (self.start || !form.open.is_empty())
            && (known || !form.known)
    }
}

/// Reads the beginning of `text` in the known format or, with `any`, in another one. `end` means that no more
/// text follows.
pub(super) fn begun_at(text: &str, which: Which, any: bool, end: bool) -> Begun {
    match begun(text, which, end) {
        known @ (Begun::No | Begun::Stray(_)) if any && which.format.is_some() => {
            match begun(text, Which { format: None, ..which }, end) {
                Begun::No => known,
                other => other,
            }
        }
        known => known,
    }
}

/// Reads the beginning of `text`. `end` means that no more text follows.
fn begun(text: &str, which: Which, end: bool) -> Begun {
    let (mut mark, mut part, mut half) = (0, false, false);
    for form in FORMS.iter().filter(|form| which.takes(form)) {
        if text.len() < form.open.len() && form.open.starts_with(text) {
            half = true;
        } else if text.starts_with(form.open) {
            match fits(text, form, end) {
                // An earlier form may still turn out to match.
                Fits::Yes(head) if !part => return Begun::Form(head),
                Fits::No => mark = mark.max(form.open.len()),
                _ => (part, mark) = (true, mark.max(form.open.len())),
            }
        }
    }
    match (part, half && !end) {
        (true, _) if text.len() < HEAD && !end => Begun::Part,
        (_, true) => Begun::Mark,
        _ if mark > 0 => Begun::Stray(mark),
        _ => Begun::No,
    }
}

enum Fits {
    No,
    Part,
    Yes(Head),
}

/// Matches `form` against `text`, which begins with the form's mark.
fn fits(text: &str, form: &'static Form, end: bool) -> Fits {
    let (mut at, mut name, mut body) = (form.open.len(), None, None);
    let skip = |from: usize, is: &dyn Fn(char) -> bool| {
        from + text[from..].find(|c| !is(c)).unwrap_or(text.len() - from)
    };
    for step in form.head {
        let rest = &text[at..];
        let half = |wanted: &str| !end && rest.len() < wanted.len() && wanted.starts_with(rest);
        match step {
            Step::Space => at = skip(at, &is_space),
            Step::Here => body = Some(at),
            Step::Text(wanted) if rest.starts_with(wanted) => at += wanted.len(),
            Step::Text(wanted) if half(wanted) => return Fits::Part,
            Step::Text(_) => return Fits::No,
            Step::Maybe(wanted) if rest.starts_with(wanted) => at += wanted.len(),
            Step::Maybe(wanted) if half(wanted) => return Fits::Part,
            Step::Maybe(_) => {}
            Step::Any(words) | Step::Next(words) => {
                match words.iter().find(|word| rest.starts_with(**word)) {
                    Some(_) if matches!(step, Step::Next(_)) => {}
                    Some(word) => at += word.len(),
                    None if words.iter().any(|word| half(word)) => return Fits::Part,
                    None => return Fits::No,
                }
            }
            Step::Name | Step::Id => {
                let stop = skip(at, &is_name);
                let named = matches!(step, Step::Name);
                if stop - at > NAME || named && stop == at && stop < text.len() {
                    return Fits::No;
                }
                if stop == text.len() {
                    return if end { Fits::No } else { Fits::Part };
                }
                if named {
                    name = Some(at..stop);
                }
                at = stop;
            }
        }
    }
    if form.body == Body::Python {
        // The name must be a Python name, so that a list of links does not match.
        let first = name.as_ref().and_then(|name| text[name.clone()].chars().next());
        if !first.is_some_and(|first| first.is_alphabetic() || first == '_') {
            return Fits::No;
        }
    }
    Fits::Yes(Head { form, name, body: body.unwrap_or(at) })
}

/// Returns true if `c` is allowed in the name of a tool.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/')
}
