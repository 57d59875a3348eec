//! How replies begin: each dialect says by what it is known, and `auto` asks them in the order of their table, those of objects
//! first. In doubt a reply is text.

mod evidence;
mod objects;
mod tags;
mod wrapped;

use self::objects::Told;

/// By what the beginning of a reply is known to be in a dialect (J-054, R-74, R-91).
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Keys of its object: all of them tell it. The usual order.
    pub keys: &'static [Needed],
    /// Whether its objects may stand in a list.
    pub listed: bool,
    /// A key of an object that holds nothing but a list of them.
    pub wrapped: Option<Wrapped>,
    /// Tags that tell it, and where.
    pub tags: &'static [Begin],
}

/// A key that an object must have.
#[derive(Clone, Copy, Debug)]
pub struct Needed {
    /// Its names.
    pub names: &'static [&'static str],
    /// Values that it may have.
    pub values: &'static [Shape],
    /// Whether a text is one that it may have, where not every one is.
    pub named: Option<fn(&str) -> bool>,
}

impl Needed {
    /// A key with one name and any value of these shapes.
    #[must_use]
    pub const fn new(names: &'static [&'static str], values: &'static [Shape]) -> Needed {
        Needed { names, values, named: None }
    }
}

/// An object with one key, which holds a list of objects: all of it is a reply, or tells nothing.
#[derive(Clone, Copy, Debug)]
pub struct Wrapped {
    /// Names of the key.
    pub names: &'static [&'static str],
    /// Tells the names that the objects of the list may have, by the first key that they need.
    pub item: fn(&str) -> bool,
    /// Tells a whole reply by the names of its objects.
    pub whole: fn(&[&str]) -> bool,
}

/// The shape of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`.
    Null,
    /// A list.
    List,
    /// An object.
    Object,
}

/// A tag that tells the dialect of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// Its name.
    pub name: &'static str,
    /// Where it tells it.
    pub when: When,
    /// Attributes that it may have: with others it is another vocabulary's.
    pub attributes: &'static [&'static str],
}

impl Begin {
    /// A tag without attributes.
    #[must_use]
    pub const fn new(name: &'static str, when: When) -> Begin {
        Begin { name, when, attributes: &[] }
    }
}

/// Where a tag tells the dialect of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// Alone at the start of its line, outside of reasoning: a block that comes whole, also beside text.
    Alone,
    /// The same, before all text.
    Before,
    /// Like [`When::Before`], and its text streams. Behind text it is one of an example unless all of the reply has its shape.
    First,
    /// Like [`When::First`], also in `<thinking>`. In a sentence of that it is the end of thinking if it is closed and no other comes.
    EndsThinking,
    /// In `<thinking>`, which is then no reasoning but the beginning of the structure.
    InThinking,
}

impl Opening {
    /// It is never found out.
    pub const NONE: Opening = Opening { keys: &[], listed: false, wrapped: None, tags: &[] };
}

/// How much of a reply is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// What has come so far; more is to come.
    Part,
    /// All of the window, and perhaps more behind it.
    Window,
    /// All that will be looked at.
    All,
}

/// What the beginning of a reply tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Dialect(&'static str),
    Plain,
    Unknown,
}

/// What the beginning of a reply tells. Behind the window it is unknown only for an object that may be one of a dialect.
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

/// What a look at the beginning told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) verdict: Verdict,
    /// Whether the next character that is not blank tells more: reasoning has closed, or a tag has opened that may tell.
    pub(super) closed: bool,
    /// Whether it is known only behind the window what a tag is.
    pub(super) waits: bool,
}

/// Bytes at the beginning of a reply that show whether it is a document.
const HEAD: usize = 1024;

/// Whether the text before a structure makes it an example in a document: a heading stands in it.
fn document(before: &str) -> bool {
    let before = &before[..before.floor_char_boundary(HEAD)];
    let heading = |line: &str| line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
    before.lines().any(|line| heading(line.trim_start()))
}
