//! Bounds on the texts and lists of a grammar, so that a model that repeats itself ends its reply
//! (`grammar.text`).

use super::builder::MAX_NODES;
use super::free_text::{TextAutomaton, TextState};
use super::{CharClass, FreeText, Grammar, GrammarNote, Node, NoteKind};
use crate::error::{Error, Result};

/// Maximum number of items of a list after the first, and of other parts that repeat without a bound.
const MAX_MORE_ITEMS: u32 = 15;

/// Maximum nesting of a rule that refers to itself.
const MAX_LEVELS: usize = 8;

/// Maximum number of characters in a row that look like the beginning of a delimiter, such as line breaks.
const MAX_STEP: usize = 4;

/// Maximum number of blanks before a text.
const MAX_BLANKS: u32 = 8;

/// Bound in characters of a text on the last levels of such a rule.
const MIN_LEVEL_CHARS: u32 = 40;

impl Grammar {
    /// Bounds each text to `chars` characters, and each part that repeats without a bound.
    ///
    /// # Errors
    /// The grammar is too large then.
    pub(crate) fn bound(&mut self, chars: u32) -> Result<()> {
        self.unroll_rules(chars);
        self.root.bound(chars, false);
        self.rules.iter_mut().for_each(|(_, node)| node.bound(chars, false));
        self.notes.push(GrammarNote {
            kind: NoteKind::Restriction,
            subject: String::new(),
            text: format!(
                "a text has at most {chars} characters, a list without `maxItems` {} items, and a rule \
                 that refers to itself {MAX_LEVELS} levels; strings with a `maxLength`, values that contain \
                 themselves through others, and JSON of a schema in structural tags have no such bound",
                MAX_MORE_ITEMS + 1
            ),
        });
        let sizes = self.rules.iter().map(|(_, node)| node.size());
        if sizes.fold(self.root.size(), usize::saturating_add) > MAX_NODES {
            return Err(Error::invalid(format!(
                "the grammar takes more than {MAX_NODES} parts under `grammar.text`: use fewer tools or texts"
            )));
        }
        Ok(())
    }

    /// Replaces rules that refer to themselves by copies, each of which refers to the next one. A text has
    /// half the bound of the level before, so that all together have twice the bound.
    fn unroll_rules(&mut self, chars: u32) {
        for index in 0..self.rules.len() {
            let mut references = Vec::new();
            self.rules[index].1.collect_references(&mut references);
            if !references.contains(&index) {
                continue;
            }
            let (name, body) = self.rules[index].clone();
            let first_copy = self.rules.len();
            let last_copy = first_copy + MAX_LEVELS - 2;
            self.rules[index].1.replace_rule(index, &Node::Rule(first_copy));
            for (level, copy) in (first_copy..=last_copy).enumerate() {
                let next = if copy == last_copy { Node::never() } else { Node::Rule(copy + 1) };
                let mut node = body.clone();
                node.replace_rule(index, &next);
                node.bound((chars >> level).max(MIN_LEVEL_CHARS.min(chars)), false);
                self.rules.push((format!("{name}-level-{copy}"), node));
            }
            let is_satisfiable = vec![true; self.rules.len()];
            self.rules[last_copy].1.remove_never(&is_satisfiable);
        }
    }
}

impl Node {
    /// Bounds texts and repetitions. What repeats in a token is characters.
    fn bound(&mut self, chars: u32, is_in_token: bool) {
        match self {
            Node::Text(text) => *self = bounded_text(text, text.max.map_or(chars, |max| max.min(chars))),
            Node::Repeat { node, min, max } => {
                let limit = if is_in_token { chars } else { MAX_MORE_ITEMS };
                max.get_or_insert(limit.max(*min));
                node.bound(chars, is_in_token);
            }
            Node::Sequence(parts) | Node::Choice(parts) => {
                parts.iter_mut().for_each(|part| part.bound(chars, is_in_token));
            }
            Node::Token(node) => node.bound(chars, true),
            Node::Json { node, .. } => node.bound(chars, is_in_token),
            Node::Literal(_) | Node::Class(_) | Node::Rule(_) => {}
        }
    }

    fn replace_rule(&mut self, index: usize, replacement: &Node) {
        match self {
            Node::Rule(rule) if *rule == index => *self = replacement.clone(),
            Node::Sequence(parts) | Node::Choice(parts) => {
                parts.iter_mut().for_each(|part| part.replace_rule(index, replacement));
            }
            Node::Repeat { node, .. } | Node::Token(node) | Node::Json { node, .. } => {
                node.replace_rule(index, replacement);
            }
            Node::Literal(_) | Node::Class(_) | Node::Text(_) | Node::Rule(_) => {}
        }
    }

    /// Adds the indexes of the rules that the node refers to.
    pub(super) fn collect_references(&self, found: &mut Vec<usize>) {
        match self {
            Node::Sequence(parts) | Node::Choice(parts) => {
                parts.iter().for_each(|part| part.collect_references(found));
            }
            Node::Repeat { node, .. } | Node::Token(node) | Node::Json { node, .. } => {
                node.collect_references(found);
            }
            Node::Rule(index) => found.push(*index),
            Node::Literal(_) | Node::Class(_) | Node::Text(_) => {}
        }
    }
}

/// Free text of at most `max` steps, and its delimiter. A step leads from a home state of the automaton to the
/// next one; at a home state no sequence has begun: one is that of blank text, the other that of filled text.
fn bounded_text(text: &FreeText, max: u32) -> Node {
    let automaton = &text.automaton();
    let is_ordinary = |class: &CharClass| class.contains('\u{1}');
    let first_steps = &automaton.states[0].transitions;
    let filled = first_steps.iter().find(|(class, _)| is_ordinary(class)).map_or(0, |(_, next)| *next);
    let end = Node::literal(text.end.clone());
    let paths =
        |from: usize, to: PathEnd<'_>| Paths { automaton, homes: [0, filled], to }.from(from, MAX_STEP);
    let step = paths(filled, PathEnd::State(filled));
    let rest = |max: u32| {
        Node::sequence([step.clone().repeat(0, Some(max)), paths(filled, PathEnd::Delimiter(&end))])
    };
    if filled == 0 {
        return Node::token([rest(max)]);
    }
    let blanks = paths(0, PathEnd::State(0)).repeat(0, Some(MAX_BLANKS));
    let text = Node::sequence([paths(0, PathEnd::State(filled)), rest(max.saturating_sub(1))]);
    let only = paths(0, PathEnd::Delimiter(&end));
    Node::token([blanks, Node::choice([text, only])])
}

/// End of the paths through an automaton.
#[derive(Clone, Copy)]
enum PathEnd<'a> {
    /// A home state.
    State(usize),
    /// The delimiter, which this node is.
    Delimiter(&'a Node),
}

/// Paths through an automaton that visit no home state on the way.
struct Paths<'a> {
    automaton: &'a TextAutomaton,
    homes: [usize; 2],
    to: PathEnd<'a>,
}

impl Paths<'_> {
    /// Paths from `state` of at most `left` characters; a node that no text satisfies if there are none.
    fn from(&self, state: usize, left: usize) -> Node {
        let TextState { transitions, may_end } = &self.automaton.states[state];
        let mut parts = Vec::new();
        if let PathEnd::Delimiter(end) = self.to
            && *may_end
        {
            parts.push(end.clone());
        }
        for (class, next) in transitions.iter().filter(|_| left > 0) {
            let class = Node::Class(class.clone());
            if matches!(self.to, PathEnd::State(state) if state == *next) {
                parts.push(class);
            } else if !self.homes.contains(next) {
                parts.push(Node::sequence([class, self.from(*next, left - 1)]));
            }
        }
        Node::choice(parts)
    }
}
