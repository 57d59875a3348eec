//! How replies begin: each dialect says by what it is known, and `auto` asks them in the order of their table. What is written
//! as text comes first, then keys of objects, then tags.

mod objects;
mod tags;

use std::borrow::Cow;

use super::DIALECTS;

/// By what the beginning of a reply is known to be in a dialect (J-054, R-74).
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Whether a text, in which there are no HTML comments, is such a beginning.
    pub text: Option<fn(&str) -> bool>,
    /// Keys of its object: two of them tell it, or one where the object is not complete.
    pub keys: &'static [&'static str],
    /// Those of them that are common words: as the first key of an object they tell it only where the reply begins with that.
    pub common: &'static [&'static str],
    /// Tags that tell it, and where.
    pub tags: &'static [(&'static str, When)],
}

/// Where a tag tells the dialect of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// Alone at the start of its line, outside of reasoning.
    Alone,
    /// The same, also in `<thinking>`. In a sentence of that it is the end of thinking if it is closed and no other comes.
    EndsThinking,
    /// In `<thinking>`, which is then no reasoning but the beginning of the structure.
    InThinking,
}

impl Opening {
    /// It is never found out.
    pub const NONE: Opening = Opening { text: None, keys: &[], common: &[], tags: &[] };
}

/// What the beginning of a reply tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Dialect(&'static str),
    Plain,
    Unknown,
}

/// What the beginning of a reply tells; `full` when no more will be looked at.
pub(super) fn look(seen: &str, full: bool) -> Seen {
    let text = seen.trim_start_matches('\u{FEFF}').trim_start();
    let plain = uncommented(text, full);
    let by_text = DIALECTS.iter().find(|entry| entry.opening.text.is_some_and(|begins| begins(&plain)));
    let found = by_text.map(|entry| entry.name).or_else(|| objects::dialect_of(text, full));
    if let Some(name) = found {
        return Seen { verdict: Verdict::Dialect(name), closed: false };
    }
    let seen = tags::markup(text, full);
    if seen.verdict == Verdict::Unknown && full { Seen { verdict: Verdict::Plain, ..seen } } else { seen }
}

/// What a look at the beginning told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) verdict: Verdict,
    /// Whether reasoning has closed and nothing has followed.
    pub(super) closed: bool,
}

/// The text without its HTML comments; one that may still end is left out with what follows.
fn uncommented(text: &str, full: bool) -> Cow<'_, str> {
    let mut kept = Cow::Borrowed("");
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        let Some((_, after)) = comment.split_once("-->") else {
            rest = if full { rest } else { before };
            break;
        };
        kept += before;
        rest = after;
    }
    kept + rest
}
