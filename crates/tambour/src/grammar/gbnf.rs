//! Writer of GBNF, the notation of llama.cpp. Free text is written as the rules of its automaton.

use std::collections::HashMap;
use std::fmt::Write;

use super::{CharClass, FreeText, Grammar, Node};

/// Maximum length in bytes of a part in parentheses that is repeated.
const MAX_GROUP: usize = 400;

/// Maximum count of a repetition without blocks: the largest that a schema has.
const MAX_COUNT: u32 = 1000;

/// Number of parts in a block.
const BLOCK: u32 = 100;

/// Writes a grammar.
pub(super) fn write(grammar: &Grammar) -> String {
    let mut out = format!("# Replies of the contract `{}`.\n", grammar.title);
    for line in grammar.note_lines() {
        let _ = writeln!(out, "# {line}");
    }
    out + &write_rules(grammar, &grammar.root)
}

/// Writes the rules of `root` without comments.
pub(super) fn write_rules(grammar: &Grammar, root: &Node) -> String {
    let mut writer = GbnfWriter {
        grammar,
        texts: HashMap::new(),
        is_used: vec![false; grammar.rules.len()],
        pending: Vec::new(),
        parts: HashMap::new(),
        text_rules: String::new(),
    };
    let mut rules = format!("root ::= {}\n", writer.alternatives(root));
    // Rules that are referred to, and those that these refer to.
    let mut bodies: Vec<Option<String>> = vec![None; grammar.rules.len()];
    while let Some(index) = writer.pending.pop() {
        bodies[index] = Some(writer.alternatives(&grammar.rules[index].1));
    }
    for ((name, _), body) in grammar.rules.iter().zip(bodies) {
        if let Some(body) = body {
            let _ = writeln!(rules, "{name} ::= {body}");
        }
    }
    rules + &writer.text_rules
}

struct GbnfWriter<'a> {
    grammar: &'a Grammar,
    /// Numbers of free texts by their rules without names.
    texts: HashMap<String, usize>,
    /// True for rules that are referred to.
    is_used: Vec<bool>,
    /// Rules that are referred to and not written yet.
    pending: Vec<usize>,
    /// Numbers of repeated parts by their text.
    parts: HashMap<String, usize>,
    /// Rules of the free texts and of repeated parts.
    text_rules: String,
}

impl GbnfWriter<'_> {
    /// Right side of a rule.
    fn alternatives(&mut self, node: &Node) -> String {
        match node {
            Node::Choice(parts) if !parts.is_empty() => {
                let parts: Vec<String> = parts.iter().map(|part| self.part(part)).collect();
                parts.join(" | ")
            }
            Node::Token(inner) | Node::Json { node: inner, .. } => self.alternatives(inner),
            node => self.part(node),
        }
    }

    fn part(&mut self, node: &Node) -> String {
        match node {
            Node::Literal(text) => literal(text),
            Node::Class(class) => class_text(class),
            Node::Sequence(parts) => {
                let parts: Vec<String> =
                    parts.iter().map(|part| self.part(part)).filter(|part| part != "\"\"").collect();
                if parts.is_empty() { "\"\"".to_owned() } else { parts.join(" ") }
            }
            // A reference to a rule that only leads to itself.
            Node::Choice(parts) if parts.is_empty() => "[^\\u0000-\\U0010FFFF]".to_owned(),
            Node::Choice(_) => format!("({})", self.alternatives(node)),
            Node::Repeat { node, min, max } => self.repetition(node, *min, *max),
            Node::Text(text) => self.free_text(text),
            Node::Token(node) | Node::Json { node, .. } => match **node {
                Node::Choice(_) => format!("({})", self.alternatives(node)),
                _ => self.part(node),
            },
            Node::Rule(index) => {
                if !std::mem::replace(&mut self.is_used[*index], true) {
                    self.pending.push(*index);
                }
                self.grammar.rules[*index].0.clone()
            }
        }
    }

    /// A part that is repeated. llama.cpp refuses one whose rules, times its count, are 2000 or more, and makes a
    /// rule of each group: parts and bounded repetitions are rules of their own, so that a part is one rule.
    fn repetition(&mut self, node: &Node, min: u32, max: Option<u32>) -> String {
        if max == Some(0) {
            return "\"\"".to_owned();
        }
        let is_counted = min > 1 || max.is_some_and(|max| max > 1);
        let part = self.part(node);
        // One text or set needs no parentheses.
        let part = match node {
            Node::Literal(_) | Node::Class(_) | Node::Rule(_) => part,
            _ if is_counted || part.len() > MAX_GROUP => self.shared_part(part),
            _ => format!("({part})"),
        };
        match (min, max) {
            (0, Some(1)) => format!("{part}?"),
            (1, Some(1)) => part,
            (0, None) => format!("{part}*"),
            (1, None) => format!("{part}+"),
            (min, None) => self.shared_part(format!("{part}{{{min},}}")),
            (min, Some(max)) if max - min > MAX_COUNT => {
                let start = if min == 0 { String::new() } else { format!("{part}{{{min}}} ") };
                let rest = self.counted(&part, max - min);
                self.shared_part(start + &rest)
            }
            (min, Some(max)) => self.shared_part(format!("{part}{{{min},{max}}}")),
        }
    }

    /// At most `max` of a part, in blocks: llama.cpp bounds a repetition.
    fn counted(&mut self, part: &str, max: u32) -> String {
        let block = self.shared_part(format!("{part}{{{BLOCK}}}"));
        let (blocks, rest) = (max / BLOCK, max % BLOCK);
        let (fewer, tail) = (blocks - 1, BLOCK - 1);
        self.shared_part(format!(
            "{block}{{0,{fewer}}} {part}{{0,{tail}}} | {block}{{{blocks}}} {part}{{0,{rest}}}"
        ))
    }

    /// Name of the rule of a part; the rule is added once.
    fn shared_part(&mut self, body: String) -> String {
        let number = match self.parts.get(&body) {
            Some(number) => *number,
            None => {
                let number = self.parts.len() + 1;
                let _ = writeln!(self.text_rules, "part-{number} ::= {body}");
                self.parts.insert(body, number);
                number
            }
        };
        format!("part-{number}")
    }

    /// Name of the first rule of a free text; its rules are added once.
    fn free_text(&mut self, text: &FreeText) -> String {
        let automaton = text.automaton();
        let mut bodies = Vec::with_capacity(automaton.states.len());
        for state in &automaton.states {
            let end = state.may_end.then(|| literal(&text.end));
            let steps =
                state.transitions.iter().map(|(class, next)| format!("{} text-@-{next}", class_text(class)));
            let parts: Vec<String> = end.into_iter().chain(steps).collect();
            bodies.push(parts.join(" | "));
        }
        let key = bodies.join("\n");
        let number = match self.texts.get(&key) {
            Some(number) => *number,
            None => {
                let number = self.texts.len() + 1;
                self.texts.insert(key, number);
                for (index, body) in bodies.iter().enumerate() {
                    let body = body.replace("text-@-", &format!("text-{number}-"));
                    let _ = writeln!(self.text_rules, "text-{number}-{index} ::= {body}");
                }
                number
            }
        };
        format!("text-{number}-0")
    }
}

/// An escape of four or eight digits: the number of digits after `\x` differs between engines.
fn escape(c: char) -> String {
    match c {
        c if c.is_ascii_alphanumeric() => c.to_string(),
        c if u32::from(c) < 0x10000 => format!("\\u{:04X}", u32::from(c)),
        c => format!("\\U{:08X}", u32::from(c)),
    }
}

fn class_text(class: &CharClass) -> String {
    class.write(escape)
}

fn literal(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c.is_control() => escape(c),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}
