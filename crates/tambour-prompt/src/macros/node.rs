//! The nodes of a text with macros, and what is done with lists of them.

use std::borrow::Cow;

use super::table::Rule;

/// A part of a text.
#[derive(Clone, Debug)]
pub(super) enum Node<'s> {
    /// Text as it is printed.
    Text(Cow<'s, str>),
    /// `{{ … }}` of Jinja: all of it, and the expression.
    Jinja(&'s str, &'s str),
    /// A statement, a comment or a raw block of Jinja.
    Verbatim(&'s str),
    /// A text that is left alone.
    Rest(&'s str),
    /// A name alone: the name, and how it was written.
    Bare { name: &'s str, written: &'s str },
    /// Apart, so that other nodes stay small.
    Macro(Box<Macro<'s>>),
    /// A macro that is none: its marks are text, what stands between them is not.
    Unknown { name: Cow<'s, str>, at: usize, inside: Vec<Node<'s>> },
}

/// A macro that the table has.
#[derive(Clone, Debug)]
pub(super) struct Macro<'s> {
    pub(super) rule: &'static Rule,
    pub(super) name: Cow<'s, str>,
    /// `{{#name}}`: white space stays.
    pub(super) keep: bool,
    pub(super) form: Form,
    pub(super) args: Vec<Vec<Node<'s>>>,
    /// What stands before its closing tag.
    pub(super) body: Option<Vec<Node<'s>>>,
    /// All of it, as it was written; the opening tag of a scoped one.
    pub(super) written: &'s str,
    pub(super) at: usize,
    /// Whether it is `{{/name}}`.
    pub(super) closes: bool,
}

impl<'s> From<Macro<'s>> for Node<'s> {
    fn from(one: Macro<'s>) -> Node<'s> {
        Node::Macro(Box::new(one))
    }
}

/// What stands between the name of a macro and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// There are none.
    None,
    /// `::`
    Double,
    /// `:`, a blank or nothing: one argument.
    Single,
}

/// Whether there is Jinja among them that was there before.
pub(super) fn holds_jinja(nodes: &[Node<'_>]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Jinja(..) | Node::Verbatim(_) => true,
        Node::Macro(one) => one.args.iter().chain(&one.body).any(|nodes| holds_jinja(nodes)),
        Node::Unknown { inside, .. } => holds_jinja(inside),
        _ => false,
    })
}

/// Divides nodes at each `separator` in their texts.
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

/// Takes white space from both ends.
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

/// Makes a text a part of itself.
pub(super) fn shorten<'s>(text: &mut Cow<'s, str>, part: impl Fn(&str) -> &str) {
    match text {
        Cow::Borrowed(whole) => {
            let (start, kept) = within(whole, part(whole));
            *text = Cow::Borrowed(&whole[start..start + kept]);
        }
        Cow::Owned(whole) => *whole = part(whole).to_owned(),
    }
}

/// Offset and length of a part of a text.
fn within(whole: &str, part: &str) -> (usize, usize) {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    if part.is_empty() { (0, 0) } else { (start, part.len()) }
}
