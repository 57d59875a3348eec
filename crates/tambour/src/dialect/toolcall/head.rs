//! What a text begins with: a mark, and behind it what stands before arguments.

use std::ops::Range;

use super::formats::{Body, FORMS, Form, Format, Step};
use crate::lex::space::is_space;

/// Bytes of a name.
const NAME: usize = 128;

/// Bytes from the mark to the arguments. What is longer is no call.
pub(super) const HEAD: usize = 512;

/// What a text begins with.
#[derive(Debug)]
pub(super) enum Begun {
    /// Nothing that is told here.
    No,
    /// Perhaps a mark, of which more is to come.
    Mark,
    /// A mark, behind which nothing yet tells whether it begins a call.
    Part,
    /// A mark of so many bytes that begins nothing.
    Stray(usize),
    /// A form.
    Form(Head),
}

/// A form, and where its parts stand.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) form: &'static Form,
    /// The name of the tool, where it stands before the arguments.
    pub(super) name: Option<Range<usize>>,
    /// Where the arguments begin.
    pub(super) body: usize,
}

/// Which forms count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Which {
    /// The format, where it is known.
    pub(super) format: Option<Format>,
    /// Whether the reply begins here.
    pub(super) start: bool,
    /// Whether marks of Harmony have come.
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

/// Beginning of `text` in the known format, or else, with `any`, in another one. `end`: no more comes.
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

/// What `text` begins with. `end`: no more comes.
fn begun(text: &str, which: Which, end: bool) -> Begun {
    let (mut mark, mut part, mut half) = (0, false, false);
    for form in FORMS.iter().filter(|form| which.takes(form)) {
        if text.len() < form.open.len() && form.open.starts_with(text) {
            half = true;
        } else if text.starts_with(form.open) {
            match fits(text, form, end) {
                // One before it may still turn out to be the right one.
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

/// Whether a form stands at the beginning of `text`, which begins with its mark.
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
        // A name of Python, so that a list of links is none.
        let first = name.as_ref().and_then(|name| text[name.clone()].chars().next());
        if !first.is_some_and(|first| first.is_alphabetic() || first == '_') {
            return Fits::No;
        }
    }
    Fits::Yes(Head { form, name, body: body.unwrap_or(at) })
}

/// Whether `c` may stand in the name of a tool.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/')
}
