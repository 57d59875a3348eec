//! Syntax nodes of a text with macros, and operations on lists of them.

use std::borrow::Cow;

use super::table::Rule;

/// A node of a parsed text.
#[derive(Clone, Debug)]
pub(super) enum Node<'s> {
    /// Literal text.
    Text(Cow<'s, str>),
    /// `{{ … }}` of Jinja: the whole tag and the expression in it.
    Jinja(&'s str, &'s str),
    /// A statement, a comment or a raw block of Jinja.
    Verbatim(&'s str),
    /// Text that is not parsed further.
    Rest(&'s str),
    /// A single name in braces: the name, and the tag as written.
    Bare { name: &'s str, written: &'s str },
    /// A known macro; boxed to keep the enum small.
    Macro(Box<Macro<'s>>),
    /// An unknown macro: its braces are text, its content is parsed.
    Unknown { name: Cow<'s, str>, at: usize, inside: Vec<Node<'s>> },
}

/// A macro listed in the table.
#[derive(Clone, Debug)]
pub(super) struct Macro<'s> {
    pub(super) rule: &'static Rule,
    pub(super) name: Cow<'s, str>,
    /// True for `{{#name}}`, which preserves white space.
    pub(super) keep: bool,
    pub(super) form: Form,
    pub(super) args: Vec<Vec<Node<'s>>>,
    /// Content up to the closing tag.
    pub(super) body: Option<Vec<Node<'s>>>,
    /// The macro as written; for a scoped one, its opening tag.
    pub(super) written: &'s str,
    pub(super) at: usize,
    /// True for `{{/name}}`.
    pub(super) closes: bool,
}

impl<'s> From<Macro<'s>> for Node<'s> {
    fn from(one: Macro<'s>) -> Node<'s> {
        Node::Macro(Box::new(one))
    }
}

/// Separator between the name of a macro and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// No arguments.
    None,
    /// `::`, for any number of arguments.
    Double,
    /// `:`, a blank or nothing, for one argument.
    Single,
}

/// Returns true if the nodes contain Jinja from the source text.
pub(super) fn holds_jinja(nodes: &[Node<'_>]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Jinja(..) | Node::Verbatim(_) => true,
        Node::Macro(one) => one.args.iter().chain(&one.body).any(|nodes| holds_jinja(nodes)),
        Node::Unknown { inside, .. } => holds_jinja(inside),
        _ => false,
    })
}

/// Splits nodes at each `separator` in their texts.
pub(super) fn split<'s>(nodes: Vec<Node<'s>>, separator: &str) -> Vec<Vec<Node<'s>>> {
    let mut parts = vec![Vec::new()];
    for node in nodes {
        let Node::Text(text) = node else {
            parts.last_mut().expect("there is always one").push(node);
            continue;
        };
        let pieces: Vec<Cow<'s, str>> = match text {
            Cow::Borrowed(text) => text.split(separator).map(Cow::Borrowed).collect(),
            Cow::Owned(text) => text.split(separator).map(|piece| Cow::Owned(piece.to_owned())).collect(),
        };
        for (at, piece) in pieces.into_iter().enumerate() {
            if at > 0 {
                parts.push(Vec::new());
            }
            if !piece.is_empty() {
                parts.last_mut().expect("there is always one").push(Node::Text(piece));
            }
        }
    }
    parts
}

/// Trims white space at both ends of a node list.
pub(super) fn trim(nodes: &mut Vec<Node<'_>>) {
    while let Some(Node::Text(text)) = nodes.first_mut() {
        shorten(text, |text| text.trim_start());
        if !text.is_empty() {
            break;
        }
        nodes.remove(0);
    }
    while let Some(Node::Text(text)) = nodes.last_mut() {
        shorten(text, |text| text.trim_end());
        if !text.is_empty() {
            break;
        }
        nodes.pop();
    }
}

/// Replaces a text by a part of itself, without copying a borrowed text.
pub(super) fn shorten<'s>(text: &mut Cow<'s, str>, part: impl Fn(&str) -> &str) {
    match text {
        Cow::Borrowed(whole) => {
            let (start, kept) = within(whole, part(whole));
            *text = Cow::Borrowed(&whole[start..start + kept]);
        }
        Cow::Owned(whole) => *whole = part(whole).to_owned(),
    }
}

/// Returns offset and length of a part of a text.
fn within(whole: &str, part: &str) -> (usize, usize) {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    if part.is_empty() { (0, 0) } else { (start, part.len()) }
}
