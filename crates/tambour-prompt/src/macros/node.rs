//! Syntax nodes of a text with macros, and operations on lists of them.

use std::borrow::Cow;

use super::table::MacroRule;

/// A node of a parsed text.
#[derive(Clone, Debug)]
pub(super) enum MacroNode<'s> {
    /// Literal text.
    Text(Cow<'s, str>),
    /// `{{ … }}` of Jinja in the source: the whole tag and the expression in it.
    Jinja(&'s str, &'s str),
    /// A statement, a comment or a raw block of Jinja.
    Verbatim(&'s str),
    /// Text that is not parsed, and prints as it was written.
    Unparsed(&'s str),
    /// A single name in braces that is not a known macro but may be a variable: the name, and the tag as
    /// written.
    BareName { name: &'s str, source: &'s str },
    /// A known macro; boxed to keep the enum small.
    Macro(Box<KnownMacro<'s>>),
    /// An unknown macro at a byte offset: its braces are text, its content is parsed.
    Unknown { name: Cow<'s, str>, at: usize, inner_nodes: Vec<MacroNode<'s>> },
}

/// A macro listed in the table.
#[derive(Clone, Debug)]
pub(super) struct KnownMacro<'s> {
    pub(super) rule: &'static MacroRule,
    /// Name as written.
    pub(super) name: Cow<'s, str>,
    /// True for `{{#name}}`, which preserves white space.
    pub(super) keeps_white_space: bool,
    /// Separator that the source has after the name.
    pub(super) separator: ArgumentSeparator,
    /// Nodes of each argument.
    pub(super) args: Vec<Vec<MacroNode<'s>>>,
    /// Content up to the closing tag; `None` for a macro without one.
    pub(super) body: Option<Vec<MacroNode<'s>>>,
    /// The macro as written; for a scoped one, its opening tag.
    pub(super) source: &'s str,
    /// Byte offset of the macro in the text.
    pub(super) offset: usize,
    /// True for `{{/name}}`.
    pub(super) is_closing: bool,
}

impl<'s> From<KnownMacro<'s>> for MacroNode<'s> {
    fn from(known_macro: KnownMacro<'s>) -> MacroNode<'s> {
        MacroNode::Macro(Box::new(known_macro))
    }
}

/// Separator between the name of a macro and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentSeparator {
    /// No arguments.
    None,
    /// `::`, for any number of arguments.
    Double,
    /// `:`, a blank or nothing, for one argument.
    Single,
}

/// Returns true if the nodes contain Jinja from the source text.
pub(super) fn has_jinja(nodes: &[MacroNode<'_>]) -> bool {
    nodes.iter().any(|node| match node {
        MacroNode::Jinja(..) | MacroNode::Verbatim(_) => true,
        MacroNode::Macro(known_macro) => {
            known_macro.args.iter().chain(&known_macro.body).any(|nodes| has_jinja(nodes))
        }
        MacroNode::Unknown { inner_nodes, .. } => has_jinja(inner_nodes),
        _ => false,
    })
}

/// Splits a list of nodes into several at each `separator` in its texts.
pub(super) fn split_nodes<'s>(nodes: Vec<MacroNode<'s>>, separator: &str) -> Vec<Vec<MacroNode<'s>>> {
    let mut groups = vec![Vec::new()];
    for node in nodes {
        let MacroNode::Text(text) = node else {
            groups.last_mut().expect("there is always one").push(node);
            continue;
        };
        let pieces: Vec<Cow<'s, str>> = match text {
            Cow::Borrowed(text) => text.split(separator).map(Cow::Borrowed).collect(),
            Cow::Owned(text) => text.split(separator).map(|piece| Cow::Owned(piece.to_owned())).collect(),
        };
        for (at, piece) in pieces.into_iter().enumerate() {
            if at > 0 {
                groups.push(Vec::new());
            }
            if !piece.is_empty() {
                groups.last_mut().expect("there is always one").push(MacroNode::Text(piece));
            }
        }
    }
    groups
}

/// Trims white space at both ends of a node list.
pub(super) fn trim_nodes(nodes: &mut Vec<MacroNode<'_>>) {
    while let Some(MacroNode::Text(text)) = nodes.first_mut() {
        shorten(text, |text| text.trim_start());
        if !text.is_empty() {
            break;
        }
        nodes.remove(0);
    }
    while let Some(MacroNode::Text(text)) = nodes.last_mut() {
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
        Cow::Borrowed(full_text) => {
            let (start, len) = range_within(full_text, part(full_text));
            *text = Cow::Borrowed(&full_text[start..start + len]);
        }
        Cow::Owned(full_text) => *full_text = part(full_text).to_owned(),
    }
}

/// Returns offset and length of `part`, which must be a slice of `full_text`.
fn range_within(full_text: &str, part: &str) -> (usize, usize) {
    let start = (part.as_ptr() as usize).saturating_sub(full_text.as_ptr() as usize);
    if part.is_empty() { (0, 0) } else { (start, part.len()) }
}
