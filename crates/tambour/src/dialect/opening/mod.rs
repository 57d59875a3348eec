//! Beginnings of replies: each dialect lists the keys and tags that identify it, and `auto` tries them in
//! table order, objects first. In doubt a reply is text.

mod evidence;
mod objects;
mod tags;
mod wrapped;

use self::objects::Told;

/// Beginnings that identify a dialect (J-054, R-74, R-91).
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Keys that its object must all have, in the usual order.
    pub keys: &'static [Needed],
    /// Set if its objects may be items of a list.
    pub listed: bool,
    /// Key of an object that holds nothing but a list of such objects.
    pub wrapped: Option<Wrapped>,
    /// Tags that identify it, and where.
    pub tags: &'static [Begin],
}

/// A key that an object must have.
#[derive(Clone, Copy, Debug)]
pub struct Needed {
    /// Accepted names of the key.
    pub names: &'static [&'static str],
    /// Accepted shapes of its value.
    pub values: &'static [Shape],
    /// Test of a text value, if not every text is accepted.
    pub named: Option<fn(&str) -> bool>,
}

impl Needed {
    /// Creates a key that accepts any value of these shapes.
    #[must_use]
    pub const fn new(names: &'static [&'static str], values: &'static [Shape]) -> Needed {
        Needed { names, values, named: None }
    }
}

/// An object with one key that holds a list of objects: either the whole reply, or no evidence.
#[derive(Clone, Copy, Debug)]
pub struct Wrapped {
    /// Accepted names of the key.
    pub names: &'static [&'static str],
    /// Tests the name of one object in the list, which is the value of the first needed key.
    pub item: fn(&str) -> bool,
    /// Tests the names of all objects of a complete reply.
    pub whole: fn(&[&str]) -> bool,
}

/// Shape of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A string.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`.
    Null,
    /// An array.
    List,
    /// An object.
    Object,
}

/// A tag that identifies the dialect of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// Name of the tag.
    pub name: &'static str,
    /// Position in which the tag identifies the dialect.
    pub when: When,
    /// Attributes that it may have; any other attribute marks it as part of another vocabulary.
    pub attributes: &'static [&'static str],
}

impl Begin {
    /// Creates a tag without attributes.
    #[must_use]
    pub const fn new(name: &'static str, when: When) -> Begin {
        Begin { name, when, attributes: &[] }
    }
}

/// Position in which a tag identifies the dialect of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// Alone at the start of a line, outside of reasoning: a block that is read whole and may follow text.
    Alone,
    /// Like [`When::Alone`], but before all text.
    Before,
    /// Like [`When::Before`], and its text streams. After text it is an example, unless the whole reply has
    /// its shape.
    First,
    /// Like [`When::First`], and also in `<thinking>`. In a sentence of that, it ends the thinking if it is
    /// closed and no other one follows.
    EndsThinking,
    /// In `<thinking>`, which is then not reasoning but the beginning of the structure.
    InThinking,
}

impl Opening {
    /// No beginnings: the dialect is never detected.
    pub const NONE: Opening = Opening { keys: &[], listed: false, wrapped: None, tags: &[] };
}

/// Share of the reply that has been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Less than the window; more text follows.
    Part,
    /// The whole window; more text may follow.
    Window,
    /// All text that will be examined.
    All,
}

/// Decision from the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Dialect(&'static str),
    Plain,
    Unknown,
}

/// Examines the beginning of a reply. Beyond the window, only an object that may belong to a dialect leaves
/// it unknown.
pub(super) fn look(seen: &str, extent: Extent) -> Seen {
    let text = seen.trim_start_matches('\u{FEFF}').trim_start();
    let objects = objects::dialect_of(text, extent);
    if let Told::Dialect(name) = objects {
        return Seen { verdict: Verdict::Dialect(name), closed: false, waits: false };
    }
    let seen = tags::markup(text, extent);
    let waits = (objects == Told::Perhaps || seen.waits) && extent != Extent::All;
    match seen.verdict {
        Verdict::Plain if waits => Seen { verdict: Verdict::Unknown, ..seen },
        Verdict::Unknown if extent != Extent::Part && !waits => Seen { verdict: Verdict::Plain, ..seen },
        _ => seen,
    }
}

/// Result of examining the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) verdict: Verdict,
    /// Set if the next non-blank character adds evidence: reasoning has closed, or a tag has opened that may
    /// decide.
    pub(super) closed: bool,
    /// Set if the role of a tag is known only beyond the window.
    pub(super) waits: bool,
}

/// Leading bytes of a reply that decide whether it is a document.
const HEAD: usize = 1024;

/// Returns whether the text before a structure makes it an example in a document: it has a heading.
fn document(before: &str) -> bool {
    let before = &before[..before.floor_char_boundary(HEAD)];
    let heading = |line: &str| line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
    before.lines().any(|line| heading(line.trim_start()))
}
