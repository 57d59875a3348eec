//! A recogniser of GBNF as llama.cpp reads it: sets of stacks, one step for each character.

use std::collections::{BTreeMap, BTreeSet};

use super::engine::Judgement;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    /// One character of the ranges, or of none of them.
    Set {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
    Rule(usize),
}

/// Alternatives of a rule.
type Alternatives = Vec<Vec<Item>>;

/// Place in a rule: its index, the alternative, the item.
type Position = (usize, usize, usize);

/// A parsed grammar.
pub(super) struct GbnfEngine {
    rules: Vec<Alternatives>,
    root: usize,
}

struct GbnfParser<'a> {
    rest: &'a str,
    names: BTreeMap<String, usize>,
    rules: Vec<Alternatives>,
    /// Symbols that llama.cpp has for the rules so far.
    symbol_count: u32,
}

impl GbnfParser<'_> {
    fn rule_index(&mut self, name: &str) -> usize {
        if let Some(index) = self.names.get(name) {
            return *index;
        }
        self.symbol_count += 1;
        self.rules.push(Vec::new());
        self.names.insert(name.to_owned(), self.rules.len() - 1);
        self.rules.len() - 1
    }

    fn new_rule(&mut self, alternatives: Alternatives) -> usize {
        self.rules.push(alternatives);
        self.rules.len() - 1
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn plain_character(&mut self) -> char {
        let mut chars = self.rest.chars();
        let c = chars.next().expect("a character");
        self.rest = chars.as_str();
        c
    }

    fn character(&mut self) -> char {
        let c = self.plain_character();
        if c != '\\' {
            return c;
        }
        let c = self.plain_character();
        let len = match c {
            // llama.cpp reads two digits, xgrammar all that follow.
            'x' => {
                let len = self.rest.bytes().take_while(u8::is_ascii_hexdigit).count();
                assert_eq!(len, 2, "engines read different digits at {:.10}", self.rest);
                len
            }
            'u' => 4,
            'U' => 8,
            'n' => return '\n',
            'r' => return '\r',
            't' => return '\t',
            '"' | '\\' | '[' | ']' => return c,
            c => panic!("llama.cpp knows no escape of `{c}`"),
        };
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).expect("a character's code")
    }

    fn number(&mut self) -> Option<u32> {
        let len = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        digits.parse().ok()
    }

    fn alternatives(&mut self) -> Alternatives {
        let mut alternatives = vec![self.sequence()];
        while self.take("|") {
            self.skip_space();
            alternatives.push(self.sequence());
        }
        alternatives
    }

    fn sequence(&mut self) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        loop {
            let start = items.len();
            let mut inner_symbols = 1;
            if self.take("\"") {
                while !self.take("\"") {
                    let c = self.character();
                    items.push(Item::Set { ranges: vec![(c, c)], is_negated: false });
                }
            } else if self.take("[") {
                let is_negated = self.take("^");
                let mut ranges = Vec::new();
                while !self.take("]") {
                    let first = self.character();
                    let last = if self.take("-") { self.character() } else { first };
                    ranges.push((first, last));
                }
                items.push(Item::Set { ranges, is_negated });
            } else if self.take("(") {
                self.skip_space();
                let count_before = self.symbol_count;
                self.symbol_count += 1;
                let alternatives = self.alternatives();
                inner_symbols = self.symbol_count - count_before;
                assert!(self.take(")"), "expected `)` at {:.40}", self.rest);
                let rule = self.new_rule(alternatives);
                items.push(Item::Rule(rule));
            } else {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
                let name: String = self.rest.chars().take_while(|c| is_name(*c)).collect();
                if name.is_empty() {
                    return items;
                }
                self.rest = &self.rest[name.len()..];
                let rule = self.rule_index(&name);
                items.push(Item::Rule(rule));
            }
            let repetition = match self.rest.chars().next() {
                Some('?') => Some((0, Some(1))),
                Some('*') => Some((0, None)),
                Some('+') => Some((1, None)),
                Some('{') => {
                    self.rest = &self.rest[1..];
                    let min = self.number().expect("a number");
                    let max = if self.take(",") { self.number() } else { Some(min) };
                    Some((min, max))
                }
                _ => None,
            };
            if let Some((min, max)) = repetition {
                self.rest = &self.rest[1..];
                assert!(max.is_none_or(|max| min <= max), "from {min} to {max:?}");
                let times = max.filter(|max| *max > 0).unwrap_or(min.max(1));
                assert!(
                    inner_symbols * times < 2000,
                    "llama.cpp refuses {inner_symbols} rules {times} times"
                );
                self.symbol_count += max.map_or(1, |max| max - min);
                let part = items.split_off(start);
                let part = self.new_rule(vec![part]);
                items.extend((0..min).map(|_| Item::Rule(part)));
                let rest = match max {
                    None => {
                        let rest = self.new_rule(Vec::new());
                        self.rules[rest] = vec![vec![Item::Rule(part), Item::Rule(rest)], Vec::new()];
                        Some(rest)
                    }
                    Some(max) => (min..max).fold(None, |rest, _| {
                        let items = [Item::Rule(part)].into_iter().chain(rest.map(Item::Rule)).collect();
                        Some(self.new_rule(vec![items, Vec::new()]))
                    }),
                };
                items.extend(rest.map(Item::Rule));
            }
            self.skip_space();
        }
    }
}

impl GbnfEngine {
    /// Parses a grammar.
    pub(super) fn new(gbnf: &str) -> GbnfEngine {
        let mut parser = GbnfParser { rest: "", names: BTreeMap::new(), rules: Vec::new(), symbol_count: 0 };
        let mut defined = BTreeSet::new();
        for line in gbnf.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (name, body) = line.split_once(" ::= ").expect("a rule on one line");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "`{name}` is no name");
            assert!(defined.insert(name), "`{name}` is defined twice");
            let index = parser.rule_index(name);
            parser.rest = body;
            let alternatives = parser.alternatives();
            assert_eq!(parser.rest, "", "in the rule `{name}`");
            parser.rules[index] = alternatives;
        }
        for name in parser.names.keys() {
            assert!(defined.contains(name.as_str()), "`{name}` is not defined");
        }
        GbnfEngine { root: parser.names["root"], rules: parser.rules }
    }

    /// Judges a text. A refusal names the first byte of the refused character.
    pub(super) fn judge(&self, text: &str) -> Judgement {
        let mut stacks = BTreeSet::new();
        self.expand(&[], &mut stacks, self.root);
        for (at, c) in text.char_indices() {
            let mut next = BTreeSet::new();
            for stack in &stacks {
                let Some(&(rule, alternative, item)) = stack.last() else { continue };
                let Item::Set { ranges, is_negated } = &self.rules[rule][alternative][item] else { continue };
                if ranges.iter().any(|(start, end)| (*start..=*end).contains(&c)) != *is_negated {
                    let mut stack = stack.clone();
                    stack.pop();
                    if item + 1 < self.rules[rule][alternative].len() {
                        stack.push((rule, alternative, item + 1));
                    }
                    self.settle(stack, &mut next);
                }
            }
            if next.is_empty() {
                return Judgement::Refused(at);
            }
            stacks = next;
        }
        if stacks.contains(&Vec::new()) { Judgement::Complete } else { Judgement::Unfinished }
    }

    /// Adds the stacks of each alternative of a rule on top of `stack`.
    fn expand(&self, stack: &[Position], stacks: &mut BTreeSet<Vec<Position>>, rule: usize) {
        for (alternative, items) in self.rules[rule].iter().enumerate() {
            let mut stack = stack.to_vec();
            if !items.is_empty() {
                stack.push((rule, alternative, 0));
            }
            self.settle(stack, stacks);
        }
    }

    /// Follows the rule at the top of a stack, until a set of characters is at the top.
    fn settle(&self, mut stack: Vec<Position>, stacks: &mut BTreeSet<Vec<Position>>) {
        let Some(&(rule, alternative, item)) = stack.last() else {
            stacks.insert(stack);
            return;
        };
        let items = &self.rules[rule][alternative];
        match &items[item] {
            Item::Set { .. } => {
                stacks.insert(stack);
            }
            Item::Rule(next) => {
                stack.pop();
                if item + 1 < items.len() {
                    stack.push((rule, alternative, item + 1));
                }
                self.expand(&stack, stacks, *next);
            }
        }
    }
}
