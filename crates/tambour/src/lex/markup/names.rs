//! The names that a tolerant lexer knows.

use std::sync::Arc;

use super::slip::{Slip, Slips};
use crate::lex::marks;

/// Names of tags, such as those of an expected structure.
#[derive(Clone, Debug)]
pub struct Names(Arc<[Name]>);

/// A name in small letters, by which they are sorted, and as it is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    small: Box<str>,
    own: Box<str>,
}

/// The names that begin with what has come of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    first: usize,
    end: usize,
    /// Bytes that have come.
    len: usize,
}

impl Fit {
    /// Bytes of the name so far.
    pub(super) fn len(self) -> usize {
        self.len
    }
}

impl Names {
    /// Those names. What no tag can be called is left out.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
        let name = |name: &str| Name { small: name.to_ascii_lowercase().into(), own: name.into() };
        let mut names: Vec<Name> = names.into_iter().filter(|name| is_name(name)).map(name).collect();
        names.sort();
        Names(names.into())
    }

    /// What is wrong with a name that may be one of them in other letter case.
    pub(super) fn case(&self, name: &str) -> Slips {
        let small = |known: &&Name| known.small.eq_ignore_ascii_case(name);
        let other =
            self.0.iter().any(|known| small(&known)) && !self.0.iter().any(|known| *known.own == *name);
        if other { Slips::NONE.with(Slip::Case) } else { Slips::NONE }
    }

    /// All of them, before anything has come.
    pub(super) fn fit(&self) -> Fit {
        Fit { first: 0, end: self.0.len(), len: 0 }
    }

    /// Those of `fit` that go on with `c`, in any letter case.
    pub(super) fn go_on(&self, fit: Fit, c: char) -> Option<Fit> {
        let byte = u8::try_from(c).ok().filter(u8::is_ascii)?.to_ascii_lowercase();
        let Fit { mut first, mut end, len } = fit;
        // They are sorted, so that those that fit stand together; each is passed once.
        let at = |name: usize| self.0[name].small.as_bytes().get(len).copied();
        while first < end && at(first) < Some(byte) {
            first += 1;
        }
        while first < end && at(end - 1) > Some(byte) {
            end -= 1;
        }
        (first < end).then_some(Fit { first, end, len: len + 1 })
    }

    /// Whether all of a name has come. The shortest stands first.
    pub(super) fn is_whole(&self, fit: Fit) -> bool {
        fit.len > 0 && self.0[fit.first].small.len() == fit.len
    }
}

/// Whether a tag can be called so (T-028).
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(marks::is_name)
}
