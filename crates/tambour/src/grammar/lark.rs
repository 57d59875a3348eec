//! Writer of Lark in the dialect of llguidance.
//!
//! Its lexer takes the longest token and never goes back, so that each free text is one token with its
//! delimiter.

use std::collections::HashMap;
use std::fmt::Write;

use super::{CharClass, FreeText, Grammar, Node};

/// Writes a grammar.
pub(super) fn write(grammar: &Grammar) -> String {
    let mut writer = LarkWriter {
        grammar,
        is_used: vec![false; grammar.rules.len()],
        pending: Vec::new(),
        terminals: HashMap::new(),
        definitions: String::new(),
    };
    let mut rules = format!("start: {}\n", writer.rule_body(&grammar.root));
    // Rules that are referred to, and those that these refer to.
    let mut bodies: Vec<Option<String>> = vec![None; grammar.rules.len()];
    while let Some(index) = writer.pending.pop() {
        bodies[index] = Some(writer.rule_body(&grammar.rules[index].1));
    }
    for ((name, _), body) in grammar.rules.iter().zip(bodies) {
        if let Some(body) = body {
            let _ = writeln!(rules, "{}: {body}", rule_name(name));
        }
    }
    let mut out = String::from("%llguidance {}\n");
    let _ = writeln!(out, "// Replies of the contract `{}`.", grammar.title);
    grammar.note_lines().iter().for_each(|line| {
        let _ = writeln!(out, "// {line}");
    });
    out + &rules + &writer.definitions
}

fn rule_name(name: &str) -> String {
    name.replace('-', "_")
}

struct LarkWriter<'a> {
    grammar: &'a Grammar,
    /// True for rules that are referred to.
    is_used: Vec<bool>,
    /// Rules that are referred to and not written yet.
    pending: Vec<usize>,
    /// Names of terminals by their text.
    terminals: HashMap<String, String>,
    /// Definitions of the terminals.
    definitions: String,
}

impl LarkWriter<'_> {
    /// Right side of a rule.
    fn rule_body(&mut self, node: &Node) -> String {
        match node {
            Node::Choice(parts) if !parts.is_empty() => {
                let parts: Vec<String> = parts.iter().map(|part| self.part(part)).collect();
                parts.join("\n    | ")
            }
            node => self.part(node),
        }
    }

    /// Part of a rule.
    fn part(&mut self, node: &Node) -> String {
        match node {
            Node::Literal(text) => literal(text),
            Node::Class(_) | Node::Text(_) => self.terminal(&terminal_text(node)),
            Node::Token(inner) => self.terminal(&terminal_text(inner)),
            Node::Json { node, .. } => self.part(node),
            Node::Sequence(parts) if parts.is_empty() => "\"\"".to_owned(),
            Node::Sequence(parts) => {
                let mut texts: Vec<String> = Vec::with_capacity(parts.len());
                let mut pending = String::new();
                for part in flatten(parts) {
                    if let Node::Literal(text) = part {
                        pending.push_str(text);
                        continue;
                    }
                    texts.extend(take_literal(&mut pending));
                    texts.push(self.part(part));
                }
                texts.extend(take_literal(&mut pending));
                texts.join(" ")
            }
            // A token that matches nothing.
            Node::Choice(parts) if parts.is_empty() => self.terminal("/a/ & /b/"),
            Node::Choice(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.part(part)).collect();
                format!("( {} )", parts.join(" | "))
            }
            Node::Repeat { node, min, max } => repeat(&self.part(node), *min, *max),
            Node::Rule(index) => {
                if !std::mem::replace(&mut self.is_used[*index], true) {
                    self.pending.push(*index);
                }
                rule_name(&self.grammar.rules[*index].0)
            }
        }
    }

    /// Name of a terminal; its definition is added once.
    fn terminal(&mut self, text: &str) -> String {
        if let Some(name) = self.terminals.get(text) {
            return name.clone();
        }
        let name = format!("T{}", self.terminals.len() + 1);
        let _ = writeln!(self.definitions, "{name}: {text}");
        self.terminals.insert(text.to_owned(), name.clone());
        name
    }
}

/// Parts of a sequence, with those of nested sequences and JSON values.
fn flatten(parts: &[Node]) -> Vec<&Node> {
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Node::Sequence(inner) => flat.extend(flatten(inner)),
            Node::Json { node, .. } => flat.extend(flatten(std::slice::from_ref(node))),
            part => flat.push(part),
        }
    }
    flat
}

fn take_literal(pending: &mut String) -> Option<String> {
    (!pending.is_empty()).then(|| literal(&std::mem::take(pending)))
}

fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn repeat(part: &str, min: u32, max: Option<u32>) -> String {
    match (min, max) {
        (0, Some(1)) => format!("({part})?"),
        (0, None) => format!("({part})*"),
        (1, None) => format!("({part})+"),
        (min, None) => format!("({part}){{{min},}}"),
        (min, Some(max)) => format!("({part}){{{min},{max}}}"),
    }
}

/// Text of a terminal.
fn terminal_text(node: &Node) -> String {
    match node {
        Node::Literal(text) => literal(text),
        Node::Class(class) => format!("/{}/", class_pattern(class)),
        Node::Sequence(parts) if parts.is_empty() => "\"\"".to_owned(),
        Node::Sequence(parts) => parts.iter().map(terminal_text).collect::<Vec<_>>().join(" "),
        Node::Choice(parts) => {
            let parts: Vec<String> = parts.iter().map(terminal_text).collect();
            format!("({})", parts.join(" | "))
        }
        Node::Repeat { node, min, max } => repeat(&terminal_text(node), *min, *max),
        Node::Text(text) => free_text(text),
        Node::Token(node) | Node::Json { node, .. } => terminal_text(node),
        // A token has no references.
        Node::Rule(_) => "\"\"".to_owned(),
    }
}

/// Free text with its delimiter.
fn free_text(text: &FreeText) -> String {
    let sequence = |classes: &Vec<CharClass>| classes.iter().map(class_pattern).collect::<String>();
    let forbidden: Vec<String> = text.sequences().iter().map(sequence).collect();
    let mut pattern = match forbidden.is_empty() {
        true => "/(?s:.*)/".to_owned(),
        false => format!("/(?s:.*)/ & ~/(?s:.*)({})(?s:.*)/", forbidden.join("|")),
    };
    let unfinished: Vec<String> = text.unfinished_sequences().iter().map(sequence).collect();
    if !unfinished.is_empty() {
        pattern += &format!(" & ~/(?s:.*)({})/", unfinished.join("|"));
    }
    if text.is_filled {
        let blank = class_pattern(&CharClass::blank());
        pattern += &format!(" & ~/{blank}*/");
    }
    match text.end.is_empty() {
        true => format!("({pattern})"),
        false => format!("({pattern}) {}", literal(&text.end)),
    }
}

fn class_pattern(class: &CharClass) -> String {
    if *class == CharClass::any() {
        return "(?s:.)".to_owned();
    }
    class.write(|c| match c {
        c if c.is_ascii_alphanumeric() => c.to_string(),
        c => format!("\\x{{{:X}}}", u32::from(c)),
    })
}
