//! Tokens of JSON: strings, white space, and lists between brackets.

use super::json::{JsonSpace, JsonStyle};
use super::{CharClass, Node};

/// Number of nodes of white space, about.
pub(super) const SPACE_NODES: usize = 12;

/// Bounds of a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StringBounds {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// True if it needs a character that is not white space.
    pub(super) is_filled: bool,
}

/// White space where a line may break.
pub(super) fn space(style: JsonStyle) -> Node {
    let blank = || Node::Class(CharClass::of(" "));
    match style.space {
        JsonSpace::Line => Node::token([blank()]).optional(),
        JsonSpace::Pretty => {
            let indentation = Node::Class(CharClass::of(" \t")).repeat(0, Some(24));
            let line = Node::sequence([Node::literal("\r").optional(), Node::literal("\n"), indentation]);
            Node::token([Node::choice([blank().repeat(1, Some(2)), line])]).optional()
        }
    }
}

/// Colon between a key and its value.
pub(super) fn colon() -> Node {
    Node::sequence([Node::literal(":"), Node::token([Node::literal(" ")]).optional()])
}

/// Items between brackets, from `count.0` to `count.1`.
pub(super) fn list(open: &str, item: Node, close: &str, count: (u32, Option<u32>), style: JsonStyle) -> Node {
    let (min, max) = count;
    if max == Some(0) {
        return Node::sequence([Node::literal(open), space(style), Node::literal(close)]);
    }
    let more = Node::sequence([Node::literal(","), space(style), item.clone()]);
    let rest = more.repeat(min.saturating_sub(1), max.map(|max| max - 1));
    let items = Node::sequence([item, rest, space(style)]);
    let items = if min == 0 { items.optional() } else { items };
    Node::sequence([Node::literal(open), space(style), items, Node::literal(close)])
}

/// A string; bounds that no text satisfies give a node that no text satisfies.
pub(super) fn string(style: JsonStyle, bounds: StringBounds) -> Node {
    let hex = || Node::Class(CharClass::new([('0', '9'), ('a', 'f'), ('A', 'F')]));
    let class = |text: &str| Node::Class(CharClass::of(text));
    let excluded = CharClass::of(if style.escapes_tags { "\"\\<＜\u{7F}" } else { "\"\\\u{7F}" });
    let plain = CharClass::new([('\0', '\u{1F}')]).union(&excluded).negate();
    let blank = CharClass::blank();
    // A pair of surrogates is one character.
    let pair = Node::sequence([
        class("dD"),
        class("89abAB"),
        hex().repeat(2, Some(2)),
        Node::literal("\\u"),
        class("dD"),
        Node::Class(CharClass::new([('c', 'f'), ('C', 'F')])),
        hex().repeat(2, Some(2)),
    ]);
    let low =
        Node::sequence([class("dD"), Node::Class(CharClass::new([('0', '7')])), hex().repeat(2, Some(2))]);
    let not_d = Node::Class(CharClass::new([('1', '9'), ('a', 'c'), ('e', 'f'), ('A', 'C'), ('E', 'F')]));
    let other = Node::sequence([not_d, hex().repeat(3, Some(3))]);
    let zero = Node::sequence([
        Node::literal("00"),
        Node::Class(CharClass::new([('2', '7'), ('a', 'f'), ('A', 'F')])),
        hex(),
    ]);
    let code = Node::sequence([Node::literal("u"), Node::choice([pair, low, other, zero])]);
    let escape = |of: Node| Node::sequence([Node::literal("\\"), of]);
    let any = || {
        Node::choice([Node::Class(plain.clone()), escape(Node::choice([class("\"\\/bfnrt"), code.clone()]))])
    };
    let filled = || Node::choice([Node::Class(plain.without(&blank)), escape(class("\"\\/"))]);
    let blanks = Node::choice([Node::Class(CharClass::of(" \u{3000}")), escape(class("nrt"))]);
    let quote = || Node::literal("\"");
    let StringBounds { min, max, is_filled } = bounds;
    if max.is_some_and(|max| max < min.max(u32::from(is_filled))) {
        return Node::never();
    }
    let body = match (is_filled, max) {
        (false, max) => any().repeat(min, max),
        (true, None) => {
            Node::sequence([blanks.repeat(0, None), filled(), any().repeat(min.saturating_sub(1), None)])
        }
        (true, Some(max)) => {
            Node::sequence([filled(), any().repeat(min.saturating_sub(1), Some(max.saturating_sub(1)))])
        }
    };
    Node::token([quote(), body, quote()])
}
