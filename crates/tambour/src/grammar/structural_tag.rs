//! Writer of structural tags, the notation of xgrammar: tags with free text or JSON of a schema between them.

use std::cell::Cell;

use serde_json::{Value, json};

use super::{FreeText, Grammar, Node, gbnf};

/// Note on JSON that a schema states alone.
const SCHEMA_NOTE: &str = "not stated in structural tags: JSON follows its schema alone, so the notes on its members, escapes, \
                           white space, digits and nesting do not hold, and a text in it may contain a tag";

/// Builds the structural tag. A part that this notation has no form for is a `grammar` in EBNF.
pub(super) fn build(grammar: &Grammar) -> Value {
    let writer = TagWriter { grammar, has_schemas: Cell::new(false) };
    let format = writer.format(&grammar.root);
    let mut notes = grammar.note_lines();
    if writer.has_schemas.get() {
        notes.push(SCHEMA_NOTE.to_owned());
    }
    json!({ "type": "structural_tag", "format": format, "x-notes": notes })
}

struct TagWriter<'a> {
    grammar: &'a Grammar,
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
            Node::Rule(index) if !self.is_recursive(*index) && has_tags(&self.grammar.rules[*index].1) => {
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

    /// Returns whether a rule refers to itself, through others too.
    fn is_recursive(&self, index: usize) -> bool {
        let mut visited = vec![false; self.grammar.rules.len()];
        let mut pending = vec![index];
        while let Some(rule) = pending.pop() {
            let mut references = Vec::new();
            collect_references(&self.grammar.rules[rule].1, &mut references);
            for reference in references {
                if reference == index {
                    return true;
                }
                if !std::mem::replace(&mut visited[reference], true) {
                    pending.push(reference);
                }
            }
        }
        false
    }
}

fn collect_references(node: &Node, found: &mut Vec<usize>) {
    match node {
        Node::Sequence(parts) | Node::Choice(parts) => {
            parts.iter().for_each(|part| collect_references(part, found))
        }
        Node::Repeat { node, .. } | Node::Token(node) => collect_references(node, found),
        Node::Rule(index) => found.push(*index),
        // A schema stands for itself.
        Node::Json { .. } | Node::Literal(_) | Node::Class(_) | Node::Text(_) => {}
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
