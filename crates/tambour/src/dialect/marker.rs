//! The failure marker as the whole of a reply (T-025, J-055), and inexact forms of it.

use super::{MARKER, Output};
use crate::finding::{Report, Rule};
use crate::span::Place;

/// Form in which a reply declares that the model failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The exact marker.
    Exact,
    /// An inexact marker: `<ParsingError>`, in a fence, with a full stop.
    Near,
}

/// Rules that such a reply breaks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The model declared that it failed.
    pub(super) declared: &'static Rule,
    /// The marker is not written exactly.
    pub(super) form: &'static Rule,
}

impl Rules {
    /// Reports that the reply is the marker, which spans `at..end`, and requests the fallback text.
    pub(super) fn declare(self, form: Form, at: Place, end: usize, out: &mut dyn Output) {
        if form == Form::Near {
            let report = Report::new(
                self.form,
                at,
                end,
                format!("the failure marker is written `{MARKER}` and no more"),
            );
            out.report(report.repaired("read as the marker"));
        }
        let message = "the model declared that it cannot answer in this form";
        out.report(Report::new(self.declared, at, end, message).repaired("fallback text"));
        out.fall_back("parsing_error");
    }
}

/// Returns the form of the marker if the whole text is one.
pub(super) fn form(text: &str) -> Option<Form> {
    let mut watch = Watch::default();
    watch.push(text);
    watch.form()
}

/// Follows a reply as long as it may be the marker and nothing else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    at: At,
    /// Fence or code span character around the marker.
    fence: Option<char>,
    /// Set once that fence has closed.
    closed: bool,
    punctuated: bool,
    near: bool,
}

/// Part of the marker read last. Numbers count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Fence(u8),
    Info(u8),
    /// White space inside the fence.
    Inside,
    Opening(u8),
    Name(u8),
    Closing(u8),
    /// After the marker.
    After,
    FenceEnd,
    /// The text is not the marker.
    Other,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { at: At::Start, fence: None, closed: false, punctuated: false, near: false }
    }
}

impl Watch {
    /// Returns whether a fence or code span around the marker is open.
    pub(super) fn in_fence(&self) -> bool {
        self.fence.is_some() && !self.closed && self.at != At::FenceEnd
    }

    /// Returns the form of the marker, if the text so far is the whole reply.
    pub(super) fn form(&self) -> Option<Form> {
        match self.at {
            At::Closing(closing) => Some(if self.near || closing < 2 { Form::Near } else { Form::Exact }),
            At::After | At::FenceEnd => Some(if self.near { Form::Near } else { Form::Exact }),
            _ => None,
        }
    }

    /// Reads text; returns the length of the prefix that may still be part of the marker.
    pub(super) fn push(&mut self, text: &str) -> usize {
        for (at, c) in text.char_indices() {
            self.at = self.step(c);
            if self.at == At::Other {
                return at;
            }
        }
        text.len()
    }

    fn step(&mut self, c: char) -> At {
        let name = &MARKER[2..MARKER.len() - 2];
        let space = c.is_whitespace() || c == '\u{FEFF}';
        match self.at {
            At::Start if space => At::Start,
            At::Start if matches!(c, '`' | '~') => {
                self.fence = Some(c);
                self.near = true;
                At::Fence(1)
            }
            At::Fence(n) if self.fence == Some(c) && n < 8 => At::Fence(n + 1),
            At::Fence(n) if n < 3 && self.fence == Some('~') => At::Other,
            At::Fence(n) if n >= 3 && c.is_ascii_alphanumeric() => At::Info(1),
            At::Info(n) if c.is_ascii_alphanumeric() && n < 16 => At::Info(n + 1),
            At::Fence(_) | At::Info(_) | At::Inside if space => At::Inside,
            At::Start | At::Fence(_) | At::Inside if c == '<' => At::Opening(1),
            At::Opening(1) if c == '<' => At::Opening(2),
            At::Opening(n) if name.starts_with(c.to_ascii_uppercase()) => {
                self.near |= n < 2 || !name.starts_with(c);
                At::Name(1)
            }
            At::Name(n) if usize::from(n) == name.len() && c == '>' => At::Closing(1),
            At::Name(n) => match name.as_bytes().get(usize::from(n)) {
                Some(due) if due.eq_ignore_ascii_case(&(c as u32).try_into().unwrap_or(0)) => {
                    self.near |= char::from(*due) != c;
                    At::Name(n + 1)
                }
                _ => At::Other,
            },
            At::Closing(1) if c == '>' => At::Closing(2),
            At::Closing(n) => {
                self.near |= n < 2;
                self.after(c, space)
            }
            At::FenceEnd if self.fence == Some(c) => At::FenceEnd,
            At::After | At::FenceEnd => self.after(c, space),
            At::Start | At::Fence(_) | At::Info(_) | At::Inside | At::Opening(_) | At::Other => At::Other,
        }
    }

    /// Returns the state after a character behind the marker.
    fn after(&mut self, c: char, space: bool) -> At {
        self.closed |= self.at == At::FenceEnd;
        let punctuation =
            matches!(c, '.' | '!' | '?' | ',' | ';' | ':' | '…' | '。' | '！' | '？' | '，' | '；');
        if space {
            At::After
        } else if punctuation && !self.punctuated {
            self.punctuated = true;
            self.near = true;
            At::After
        } else if self.fence == Some(c) && !self.closed {
            At::FenceEnd
        } else {
            At::Other
        }
    }
}
