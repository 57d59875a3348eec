//! Writer of structural tags, the notation of xgrammar: tags with free text or JSON of a schema between them.

use std::cell::Cell;

use serde_json::{Value, json};

use super::{FreeText, Grammar, Node, gbnf};

/// Note on JSON that a schema states alone.
const SCHEMA_NOTE: &str = "not stated in structural tags: JSON follows its schema alone, so the notes on its members, escapes, \
                           white space, digits and nesting do not hold, and a text in it may contain a tag";

/// Builds the structural tag. A part that this notation has no form for is a `grammar` in EBNF.
pub(super) fn build(grammar: &Grammar) -> Value {
    let writer = TagWriter { grammar, expanded: expanded_sizes(grammar), has_schemas: Cell::new(false) };
    let format = writer.format(&grammar.root);
    let mut notes = grammar.note_lines();
    if writer.has_schemas.get() {
        notes.push(SCHEMA_NOTE.to_owned());
    }
    json!({ "type": "structural_tag", "format": format, "x-notes": notes })
}

/// Maximum number of nodes of a rule that is written where it is referred to.
const MAX_EXPANDED: usize = 2000;

struct TagWriter<'a> {
    grammar: &'a Grammar,
    /// Number of nodes of each rule with those of the rules that it refers to.
    expanded: Vec<usize>,
    /// Set once a schema has been written.
    has_schemas: Cell<bool>,
}

impl TagWriter<'_> {
    fn format(&self, node: &Node) -> Value {
        match node {
            Node::Literal(text) if text.is_empty() => empty(),
            Node::Literal(text) => json!({ "type": "const_string", "value": text }),
            Node::Json { schema, .. } => {
                self.has_schemas.set(true);
                json!({ "type": "json_schema", "json_schema": schema })
            }
            Node::Sequence(parts) => self.sequence(parts),
            Node::Choice(parts) if !parts.is_empty() && parts.iter().all(has_tags) => {
                let elements: Vec<Value> = parts.iter().map(|part| self.format(part)).collect();
                json!({ "type": "or", "elements": elements })
            }
            // One part or none.
            Node::Repeat { node: part, min: 0, max: Some(1) } if has_tags(part) => json!({
                "type": "or",
                "elements": [self.format(part), empty()],
            }),
            Node::Token(inner) if has_tags(inner) => self.format(inner),
            Node::Text(text) => self.tag("", text),
            Node::Rule(index)
                if self.expanded[*index] <= MAX_EXPANDED && has_tags(&self.grammar.rules[*index].1) =>
            {
                self.format(&self.grammar.rules[*index].1)
            }
            node => json!({ "type": "grammar", "grammar": gbnf::write_rules(self.grammar, node) }),
        }
    }

    /// A sequence: a literal and the text after it are a tag.
    fn sequence(&self, parts: &[Node]) -> Value {
        let mut elements: Vec<Value> = Vec::new();
        let mut pending = String::new();
        for part in flatten(parts) {
            match part {
                Node::Literal(text) => pending.push_str(text),
                Node::Text(text) => elements.push(self.tag(&std::mem::take(&mut pending), text)),
                part => {
                    elements.extend(take_constant(&mut pending));
                    elements.push(self.format(part));
                }
            }
        }
        elements.extend(take_constant(&mut pending));
        match elements.len() {
            0 => empty(),
            1 => elements.swap_remove(0),
            _ => json!({ "type": "sequence", "elements": elements }),
        }
    }

    /// Free text between `begin` and its delimiter. Sequences of one spelling are excluded; the others are
    /// left to the checker.
    fn tag(&self, begin: &str, text: &FreeText) -> Value {
        let spelling = |sequence: &Vec<super::CharClass>| -> Option<String> {
            let single = |class: &super::CharClass| match class.ranges() {
                [(start, end)] if start == end => Some(*start),
                _ => None,
            };
            sequence.iter().map(single).collect()
        };
        let excludes: Vec<String> = text.forbidden.iter().filter_map(spelling).collect();
        // Begin and end of a tag have characters.
        let is_plain = !begin.is_empty()
            && excludes.len() == text.forbidden.len()
            && !text.is_filled
            && !text.end.is_empty();
        if !is_plain {
            let node = Node::sequence([Node::literal(begin), Node::Text(text.clone())]);
            return json!({ "type": "grammar", "grammar": gbnf::write_rules(self.grammar, &node) });
        }
        json!({
            "type": "tag",
            "begin": begin,
            "content": { "type": "any_text", "excludes": excludes },
            "end": text.end,
        })
    }
}

/// Number of nodes of each rule, with those of the rules that it refers to each time; `usize::MAX` for a rule that
/// refers to itself, through others too.
fn expanded_sizes(grammar: &Grammar) -> Vec<usize> {
    let outline = |(_, node): &(String, Node)| {
        let mut references = Vec::new();
        (outline_size(node, &mut references), references)
    };
    let outlines: Vec<(usize, Vec<usize>)> = grammar.rules.iter().map(outline).collect();
    let mut sizes: Vec<usize> = vec![usize::MAX; grammar.rules.len()];
    let mut waiting: Vec<usize> = (0..grammar.rules.len()).collect();
    loop {
        let count = waiting.len();
        waiting.retain(|&index| {
            let (size, references) = &outlines[index];
            sizes[index] = references.iter().map(|&rule| sizes[rule]).fold(*size, usize::saturating_add);
            sizes[index] == usize::MAX
        });
        if waiting.len() == count {
            return sizes;
        }
        // Rules refer to earlier ones and to later ones.
        waiting.reverse();
    }
}

/// Number of nodes, where a schema is one; adds the rules that they refer to.
fn outline_size(node: &Node, references: &mut Vec<usize>) -> usize {
    1 + match node {
        Node::Sequence(parts) | Node::Choice(parts) => {
            parts.iter().map(|part| outline_size(part, references)).sum()
        }
        Node::Repeat { node, .. } | Node::Token(node) => outline_size(node, references),
        Node::Rule(index) => {
            references.push(*index);
            0
        }
        Node::Json { .. } | Node::Literal(_) | Node::Class(_) | Node::Text(_) => 0,
    }
}

/// Returns whether a node is more than characters, so that structural tags have a form for it.
fn has_tags(node: &Node) -> bool {
    match node {
        Node::Literal(_) | Node::Json { .. } | Node::Text(_) | Node::Rule(_) => true,
        Node::Class(_) => false,
        Node::Sequence(parts) => parts.iter().any(has_tags),
        Node::Choice(parts) => parts.iter().all(has_tags),
        Node::Repeat { node, .. } | Node::Token(node) => has_tags(node),
    }
}

fn flatten(parts: &[Node]) -> Vec<&Node> {
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Node::Sequence(inner) => flat.extend(flatten(inner)),
            Node::Token(inner) if matches!(**inner, Node::Sequence(_) | Node::Text(_)) => {
                flat.extend(flatten(std::slice::from_ref(inner)));
            }
            part => flat.push(part),
        }
    }
    flat
}

/// The empty text: a `const_string` has a character.
fn empty() -> Value {
    json!({ "type": "grammar", "grammar": "root ::= \"\"\n" })
}

fn take_constant(pending: &mut String) -> Option<Value> {
    (!pending.is_empty()).then(|| json!({ "type": "const_string", "value": std::mem::take(pending) }))
}
