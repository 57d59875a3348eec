//! Replies generated from a grammar.

use tambour::grammar::{CharClass, FreeText, Grammar, Node};
use tambour_fixtures::random::RandomSource;

/// Pieces of free text.
const PIECES: [&str; 32] = [
    "a",
    " ",
    "\n",
    "word ",
    "罗勒",
    "`",
    "``",
    "```\n",
    "<",
    "< b",
    "&lt;b&gt;",
    "&amp;",
    "**bold**",
    "- item\n",
    "1. one\n",
    "## Head\n",
    "a < b",
    "{",
    "}",
    "\"",
    "'",
    "[1]",
    "=\"x\"",
    "-->",
    "--",
    ">",
    "x>y",
    "\t",
    "\\",
    "http://a.b/c?d=e&f",
    "😀",
    "  ",
];

/// Generator of texts.
pub(super) struct Generator<'a> {
    pub(super) grammar: &'a Grammar,
    pub(super) random: RandomSource,
    /// Parts left until only the shortest are chosen.
    pub(super) budget: usize,
}

impl Generator<'_> {
    /// Generates a whole reply.
    pub(super) fn reply(&mut self) -> String {
        let mut out = String::new();
        self.write(&self.grammar.root.clone(), &mut out);
        out
    }

    fn write(&mut self, node: &Node, out: &mut String) {
        self.budget = self.budget.saturating_sub(1);
        match node {
            Node::Literal(text) => out.push_str(text),
            Node::Class(class) => out.push(self.character(class)),
            Node::Sequence(parts) => parts.iter().for_each(|part| self.write(part, out)),
            Node::Choice(parts) => {
                let parts: Vec<&Node> = parts.iter().filter(|part| !part.is_never()).collect();
                let index = if self.budget == 0 { 0 } else { self.random.below(parts.len()) };
                self.write(parts[index], out);
            }
            Node::Repeat { node, min, max } => {
                let spread = max.map_or(6, |max| (max - min).min(6)) as usize;
                let more = if self.budget == 0 { 0 } else { self.random.below(spread + 1) };
                // The largest number is worth a try.
                let count = match max {
                    Some(max) if self.budget > 0 && *max < 100 && self.random.below(20) == 0 => *max as usize,
                    _ => *min as usize + more,
                };
                (0..count).for_each(|_| self.write(node, out));
            }
            Node::Text(text) => self.free_text(text, out),
            Node::Token(node) | Node::Json { node, .. } => self.write(node, out),
            Node::Rule(index) => {
                let node = self.grammar.rules[*index].1.clone();
                self.write(&node, out);
            }
        }
    }

    fn character(&mut self, class: &CharClass) -> char {
        const USUAL: &str = "abz09 .,-_<>&/'`\"\n\t{}[]:;!?|\\罗😀é\u{3000}\u{7f}";
        let usual: Vec<char> = USUAL.chars().filter(|c| class.contains(*c)).collect();
        let ranges = class.ranges();
        let (start, end) = ranges[self.random.below(ranges.len())];
        match usual.is_empty() || self.random.below(30) == 0 {
            true if self.random.below(2) == 0 => end,
            true => start,
            false => *self.random.pick(&usual),
        }
    }

    fn free_text(&mut self, text: &FreeText, out: &mut String) {
        let automaton = text.automaton();
        for _ in 0..20 {
            let count = self.random.below(if self.budget == 0 { 3 } else { 9 });
            let mut body = String::new();
            for _ in 0..count {
                body.push_str(PIECES[self.random.below(PIECES.len())]);
                if self.random.below(12) == 0 {
                    body.push(self.character(&CharClass::any()));
                }
            }
            if automaton.accepts(&body) {
                out.push_str(&body);
                out.push_str(&text.end);
                return;
            }
        }
        out.push_str("text");
        out.push_str(&text.end);
    }
}
