//! Grammars for constrained decoding: one small tree for each contract, and a writer for each notation.
//!
//! A dialect builds a [`Grammar`] with a [`GrammarBuilder`] from its own tables, structures and schemas;
//! [`Grammar::write`] writes it for an engine. A grammar accepts only replies that the contract allows, but for
//! the rules that its notes list, and it is narrower where that helps small models: the members of objects have
//! one order, white space is bounded, and the reply can end as soon as it is complete.

mod bound;
mod builder;
mod chars;
mod free_text;
mod gbnf;
mod json;
mod json_parts;
mod json_tokens;
mod lark;
mod merge;
mod number;
mod reference;
mod structural_tag;

pub use builder::{GrammarBuilder, GrammarLimits};
pub(crate) use builder::{
    Prose, draft, gap, leading_draft, leave_query_rules, move_references, search_queries, tag_starts,
    text_element,
};
pub use chars::CharClass;
pub use free_text::{FreeText, TextAutomaton, TextState, sequence_of};
pub use json::{JsonSpace, JsonStyle};
pub(crate) use reference::target as reference_target;

use serde_json::Value;

/// Grammar of the replies of one contract.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Grammar {
    /// Title for the reader, such as `thinkingml`.
    pub title: String,
    /// Whole reply.
    pub root: Node,
    /// Rules that nodes refer to, by index: a name in lower case, and what it stands for.
    pub rules: Vec<(String, Node)>,
    /// Differences between the grammar and the contract.
    pub notes: Vec<GrammarNote>,
}

/// Part of a grammar.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// This text.
    Literal(String),
    /// One character of a set.
    Class(CharClass),
    /// Parts one after the other; none stands for the empty text.
    Sequence(Vec<Node>),
    /// One of the parts; none stands for no text at all.
    Choice(Vec<Node>),
    /// A part repeated from `min` to `max` times.
    Repeat {
        /// The part.
        node: Box<Node>,
        /// Minimum number.
        min: u32,
        /// Maximum number; `None` is unbounded.
        max: Option<u32>,
    },
    /// Text up to a delimiter.
    Text(FreeText),
    /// A part without references, which engines with a lexer read as one token.
    Token(Box<Node>),
    /// A JSON value that satisfies a schema, and the same as a tree.
    Json {
        /// The schema; it refers to no other document.
        schema: Value,
        /// Values that the grammar accepts.
        node: Box<Node>,
    },
    /// The rule with this index.
    Rule(usize),
}

/// Difference between a grammar and its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrammarNote {
    /// Kind of difference.
    pub kind: NoteKind,
    /// Code of the rule, or JSON Pointer of the keyword; empty for a restriction.
    pub subject: String,
    /// Description.
    pub text: String,
}

/// Kind of a [`GrammarNote`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// The grammar forbids what the contract allows.
    Restriction,
    /// A rule that the grammar cannot state: the checker finds what breaks it.
    UncheckedRule,
    /// A keyword of a schema that the grammar does not state.
    UncheckedKeyword,
}

/// Notation of grammars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GrammarFormat {
    /// Lark in the dialect of llguidance.
    Lark,
    /// GBNF of llama.cpp.
    Gbnf,
    /// Structural tag of xgrammar, as JSON.
    StructuralTag,
}

impl Grammar {
    /// Writes the grammar, with its notes as comments.
    #[must_use]
    pub fn write(&self, format: GrammarFormat) -> String {
        match format {
            GrammarFormat::Lark => lark::write(self),
            GrammarFormat::Gbnf => gbnf::write(self),
            GrammarFormat::StructuralTag => format!("{:#}\n", structural_tag::build(self)),
        }
    }

    /// Codes of the rules that the grammar cannot state.
    pub fn unchecked_rules(&self) -> impl Iterator<Item = &str> {
        let rules = self.notes.iter().filter(|note| note.kind == NoteKind::UncheckedRule);
        rules.map(|note| note.subject.as_str())
    }

    /// Notes as lines of text, for comments.
    #[must_use]
    pub fn note_lines(&self) -> Vec<String> {
        let line = |note: &GrammarNote| {
            let label = match note.kind {
                NoteKind::Restriction => "narrower than the contract".to_owned(),
                NoteKind::UncheckedRule => format!("not stated, rule {}", note.subject),
                NoteKind::UncheckedKeyword => format!("not stated, schema at {}", note.subject),
            };
            format!("{label}: {}", note.text).replace(['\n', '\r'], " ")
        };
        self.notes.iter().map(line).collect()
    }
}

impl Node {
    /// Creates a literal.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Node {
        Node::Literal(text.into())
    }

    /// Creates an optional part.
    #[must_use]
    pub fn optional(self) -> Node {
        self.repeat(0, Some(1))
    }

    /// Creates a repetition.
    #[must_use]
    pub fn repeat(self, min: u32, max: Option<u32>) -> Node {
        if max == Some(0) {
            return Node::Sequence(Vec::new());
        }
        Node::Repeat { node: Box::new(self), min, max }
    }

    /// Creates a token.
    #[must_use]
    pub fn token(parts: impl IntoIterator<Item = Node>) -> Node {
        let mut parts: Vec<Node> = parts.into_iter().collect();
        let node = if parts.len() == 1 { parts.swap_remove(0) } else { Node::Sequence(parts) };
        Node::Token(Box::new(node))
    }

    /// Creates a sequence.
    #[must_use]
    pub fn sequence(parts: impl IntoIterator<Item = Node>) -> Node {
        Node::Sequence(parts.into_iter().collect())
    }

    /// Creates a choice of the parts that some text satisfies.
    #[must_use]
    pub fn choice(parts: impl IntoIterator<Item = Node>) -> Node {
        let mut parts: Vec<Node> = parts.into_iter().filter(|part| !part.is_never()).collect();
        if parts.len() == 1 { parts.swap_remove(0) } else { Node::Choice(parts) }
    }

    /// Node that no text satisfies.
    #[must_use]
    pub fn never() -> Node {
        Node::Choice(Vec::new())
    }

    /// Returns whether no text satisfies the node, as far as that is plain.
    #[must_use]
    pub fn is_never(&self) -> bool {
        match self {
            Node::Choice(parts) => parts.iter().all(Node::is_never),
            Node::Sequence(parts) => parts.iter().any(Node::is_never),
            Node::Repeat { node, min, .. } => *min > 0 && node.is_never(),
            Node::Token(node) | Node::Json { node, .. } => node.is_never(),
            Node::Class(class) => class.is_empty(),
            Node::Literal(_) | Node::Text(_) | Node::Rule(_) => false,
        }
    }

    /// Number of nodes, this one and all in it.
    pub(super) fn size(&self) -> usize {
        1 + match self {
            Node::Sequence(parts) | Node::Choice(parts) => parts.iter().map(Node::size).sum(),
            Node::Repeat { node, .. } | Node::Token(node) | Node::Json { node, .. } => node.size(),
            Node::Literal(_) | Node::Class(_) | Node::Text(_) | Node::Rule(_) => 0,
        }
    }

    /// Returns whether a text satisfies the node, given the rules that some text satisfies.
    fn is_satisfiable(&self, rules: &[bool]) -> bool {
        match self {
            Node::Choice(parts) => parts.iter().any(|part| part.is_satisfiable(rules)),
            Node::Sequence(parts) => parts.iter().all(|part| part.is_satisfiable(rules)),
            Node::Repeat { node, min, .. } => *min == 0 || node.is_satisfiable(rules),
            Node::Token(node) | Node::Json { node, .. } => node.is_satisfiable(rules),
            Node::Class(class) => !class.is_empty(),
            Node::Rule(index) => rules[*index],
            Node::Literal(_) | Node::Text(_) => true,
        }
    }

    /// Removes the parts that no text satisfies, given the rules that some text satisfies.
    fn remove_never(&mut self, rules: &[bool]) {
        match self {
            Node::Choice(parts) => {
                parts.iter_mut().for_each(|part| part.remove_never(rules));
                parts.retain(|part| !part.is_never());
            }
            Node::Sequence(parts) => parts.iter_mut().for_each(|part| part.remove_never(rules)),
            Node::Repeat { node, min, .. } => {
                node.remove_never(rules);
                if *min == 0 && node.is_never() {
                    *self = Node::Sequence(Vec::new());
                }
            }
            Node::Token(node) | Node::Json { node, .. } => node.remove_never(rules),
            Node::Rule(index) if !rules[*index] => *self = Node::never(),
            Node::Rule(_) | Node::Literal(_) | Node::Class(_) | Node::Text(_) => {}
        }
    }
}
