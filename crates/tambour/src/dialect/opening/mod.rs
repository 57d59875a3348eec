//! Beginnings of replies: each dialect lists the keys of JSON objects and the tags that identify it, and
//! `auto` looks for them, objects first. In doubt a reply is text.

mod evidence;
mod objects;
mod tags;

use self::objects::ObjectEvidence;

/// Beginnings of a reply that identify a dialect (J-054, R-74, R-91).
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Keys that an object of the dialect must all have, in the usual order.
    pub keys: &'static [NeededKey],
    /// Set if objects of the dialect may be items of a list.
    pub may_be_listed: bool,
    /// Object around a list of the dialect's objects, if there may be one.
    pub wrapped_list: Option<WrappedList>,
    /// Tags that identify the dialect, and their positions.
    pub tags: &'static [OpeningTag],
}

/// A key that an object must have.
#[derive(Clone, Copy, Debug)]
pub struct NeededKey {
    /// Accepted names of the key.
    pub names: &'static [&'static str],
    /// Accepted shapes of its value.
    pub values: &'static [ValueShape],
    /// Test of a text value; `None` accepts every text.
    pub text_test: Option<fn(&str) -> bool>,
}

impl NeededKey {
    /// Creates a key that accepts any value of these shapes.
    #[must_use]
    pub const fn new(names: &'static [&'static str], values: &'static [ValueShape]) -> NeededKey {
        NeededKey { names, values, text_test: None }
    }
}

/// An object whose only key holds a list of a dialect's objects. It is evidence only if it is the whole reply
///
#[derive(Clone, Copy, Debug)]
pub struct WrappedList {
    /// Accepted names of the key.
    pub names: &'static [&'static str],
    /// Tests the name of one object in the list, which is the value of the first needed key.
    pub item_test: fn(&str) -> bool,
    /// Tests the names of all objects of a complete reply.
    pub reply_test: fn(&[&str]) -> bool,
}

/// Shape of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueShape {
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
pub struct OpeningTag {
    /// Name of the tag.
    pub name: &'static str,
    /// Position in which the tag identifies the dialect.
    pub position: TagPosition,
    /// Attributes that the tag may have; with any other attribute the tag is of another vocabulary.
    pub attributes: &'static [&'static str],
}

impl OpeningTag {
    /// Creates a tag without attributes.
    #[must_use]
    pub const fn new(name: &'static str, position: TagPosition) -> OpeningTag {
        OpeningTag { name, position, attributes: &[] }
    }
}

/// Position in which a tag identifies the dialect of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TagPosition {
    /// Alone at the start of a line, outside of reasoning: a block that is read whole and may follow text.
    Alone,
    /// Like [`TagPosition::Alone`], but before all text.
    Before,
    /// Like [`TagPosition::Before`], but the text of the element is emitted as it arrives. After other text
    /// it is an example, unless the whole reply has the shape of the structure.
    First,
    /// Like [`TagPosition::First`], and also within `<thinking>`. In a sentence of the thinking, the tag ends
    /// the thinking only if its element is closed and no other tag of this name follows.
    EndsThinking,
    /// In `<thinking>`, which is then not reasoning but the beginning of the structure.
    InThinking,
}

impl Opening {
    /// No beginnings: the dialect is never detected.
    pub const NONE: Opening = Opening { keys: &[], may_be_listed: false, wrapped_list: None, tags: &[] };
}

/// Share of the reply that has been received. The window is the text after which a decision is due
/// (`limits.detect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrefixExtent {
    /// Less than the window; more text may follow.
    Part,
    /// At least the window; more text may follow.
    Window,
    /// All text that will be examined.
    All,
}

/// Decision from the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpeningVerdict {
    /// The dialect of this name.
    Dialect(&'static str),
    /// Plain text.
    Plain,
    /// More text decides.
    Unknown,
}

/// Examines the beginning of a reply. Beyond the window, the dialect stays unknown only while an object may
/// belong to a dialect, or the role of a tag depends on more text.
pub(super) fn examine(reply_start: &str, extent: PrefixExtent) -> Examination {
    let text = reply_start.trim_start_matches('\u{FEFF}').trim_start();
    let object_evidence = objects::object_evidence(text, extent);
    if let ObjectEvidence::Dialect(name) = object_evidence {
        return Examination {
            verdict: OpeningVerdict::Dialect(name),
            next_char_decides: false,
            needs_more: false,
        };
    }
    let examination = tags::examine_tags(text, extent);
    let is_undecided = object_evidence == ObjectEvidence::Possible || examination.needs_more;
    let must_wait = is_undecided && extent != PrefixExtent::All;
    match examination.verdict {
        OpeningVerdict::Plain if must_wait => Examination { verdict: OpeningVerdict::Unknown, ..examination },
        OpeningVerdict::Unknown if extent != PrefixExtent::Part && !must_wait => {
            Examination { verdict: OpeningVerdict::Plain, ..examination }
        }
        _ => examination,
    }
}

/// Result of examining the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Examination {
    pub(super) verdict: OpeningVerdict,
    /// Set if the next non-blank character adds evidence: the text ends after closed reasoning, or after a
    /// tag whose role is not known.
    pub(super) next_char_decides: bool,
    /// Set if the role of a tag depends on more text.
    pub(super) needs_more: bool,
}

/// Number of leading bytes of a reply that are examined to decide whether it is a document.
const HEAD_BYTES: usize = 1024;

/// Returns whether the text before a structure makes it an example in a document: it has a heading.
fn is_document(before: &str) -> bool {
    let before = &before[..before.floor_char_boundary(HEAD_BYTES)];
    let is_heading = |line: &str| line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
    before.lines().any(|line| is_heading(line.trim_start()))
}
