//! Bounds on the texts and lists of a grammar, so that a model that repeats itself ends its reply
//! (`grammar.text`).

use super::builder::{MAX_NODES, remove_never};
use super::free_text::{TextAutomaton, TextState};
use super::{CharClass, FreeText, Grammar, GrammarNote, Node, NoteKind};
use crate::error::{Error, Result};

/// Maximum number of items of a list after the first, and of other parts that repeat without a bound.
const MAX_MORE_ITEMS: u32 = 15;

/// Maximum nesting of rules that refer to themselves, through others too.
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
        self.unroll_rules(chars)?;
        let bounds = Bounds { chars, more_items: MAX_MORE_ITEMS };
        self.root.bound(bounds, false);
        self.rules.iter_mut().for_each(|(_, node)| node.bound(bounds, false));
        self.notes.push(GrammarNote {
            kind: NoteKind::Restriction,
            subject: String::new(),
            text: format!(
                "a text has at most {chars} characters, a list without `maxItems` {} items, and a value \
                 that contains itself {MAX_LEVELS} levels, each with half the bounds of the one before; \
                 strings with a `maxLength` and JSON of a schema in structural tags have no such bound",
                MAX_MORE_ITEMS + 1
            ),
        });
        self.check_size(0)
    }

    /// Checks the number of nodes, `more` included.
    fn check_size(&self, more: usize) -> Result<()> {
        let sizes = self.rules.iter().map(|(_, node)| node.size());
        if sizes.fold(self.root.size().saturating_add(more), usize::saturating_add) > MAX_NODES {
            return Err(Error::invalid(format!(
                "the grammar takes more than {MAX_NODES} parts under `grammar.text`: use fewer tools or texts"
            )));
        }
        Ok(())
    }

    /// Replaces rules that refer to themselves, through others too, by copies for each level. A reference to a rule
    /// that is before it on the way leads to the next level. A text or list has half the bound of the level before,
    /// so that all texts on a way have twice the bound together.
    fn unroll_rules(&mut self, chars: u32) -> Result<()> {
        let places = self.circular_rules();
        let circular: Vec<usize> = (0..places.len()).filter(|index| places[*index].is_some()).collect();
        if circular.is_empty() {
            return Ok(());
        }
        let sizes = circular.iter().map(|index| self.rules[*index].1.size());
        self.check_size(sizes.sum::<usize>().saturating_mul(MAX_LEVELS - 1))?;
        let (count, first_copy) = (circular.len(), self.rules.len());
        let mut ordinals = vec![0; places.len()];
        circular.iter().enumerate().for_each(|(ordinal, index)| ordinals[*index] = ordinal);
        let copy_of = |rule: usize, level: usize| match level {
            0 => Some(rule),
            MAX_LEVELS.. => None,
            level => Some(first_copy + (level - 1) * count + ordinals[rule]),
        };
        let bodies: Vec<(String, Node)> = circular.iter().map(|index| self.rules[*index].clone()).collect();
        for level in 0..MAX_LEVELS {
            for (rule, (name, body)) in circular.iter().zip(&bodies) {
                let mut node = body.clone();
                node.map_rules(&|other| match (places[*rule], places[other]) {
                    (Some(own), Some(place)) if own.component == place.component => {
                        copy_of(other, level + usize::from(place.order <= own.order))
                    }
                    // A component behind this one begins with its first level.
                    _ => Some(other),
                });
                let level_chars = (chars >> level).max(MIN_LEVEL_CHARS.min(chars));
                node.bound(
                    Bounds { chars: level_chars, more_items: (MAX_MORE_ITEMS >> level).max(1) },
                    false,
                );
                match level {
                    0 => self.rules[*rule].1 = node,
                    _ => self.rules.push((format!("{name}-level-{}", self.rules.len()), node)),
                }
            }
        }
        remove_never(&mut self.rules, &mut self.root);
        match self.root.is_never() {
            true => Err(Error::invalid(format!(
                "no reply of at most {MAX_LEVELS} levels satisfies the contract under `grammar.text`"
            ))),
            false => Ok(()),
        }
    }

    /// Finds the rules that lead back to themselves: for each rule its component, and its place in an order in which
    /// only references back close a circle.
    fn circular_rules(&self) -> Vec<Option<RulePlace>> {
        let references: Vec<Vec<usize>> = self
            .rules
            .iter()
            .map(|(_, node)| {
                let mut found = Vec::new();
                node.collect_references(&mut found);
                found
            })
            .collect();
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); references.len()];
        for (rule, found) in references.iter().enumerate() {
            found.iter().for_each(|other| users[*other].push(rule));
        }
        // Rules after those that they lead to, from the root on; then components in the opposite direction.
        let mut roots = Vec::new();
        self.root.collect_references(&mut roots);
        let mut is_seen = vec![false; references.len()];
        let mut finished = Vec::with_capacity(references.len());
        for start in roots.into_iter().chain(0..references.len()) {
            visit(start, &references, &mut is_seen, &mut finished);
        }
        let mut orders = vec![0; references.len()];
        finished.iter().rev().enumerate().for_each(|(order, rule)| orders[*rule] = order);
        let mut places = vec![None; references.len()];
        let mut is_assigned = vec![false; references.len()];
        for start in finished.iter().rev() {
            let mut members = Vec::new();
            visit(*start, &users, &mut is_assigned, &mut members);
            if members.len() > 1 || members.iter().any(|rule| references[*rule].contains(rule)) {
                for rule in members {
                    places[rule] = Some(RulePlace { component: *start, order: orders[rule] });
                }
            }
        }
        places
    }
}

/// Place of a rule that leads back to itself.
#[derive(Clone, Copy)]
struct RulePlace {
    /// First rule of those that lead to each other.
    component: usize,
    order: usize,
}

/// Adds the rules that `start` leads to and that are not seen yet, each after those that it leads to.
fn visit(start: usize, edges: &[Vec<usize>], is_seen: &mut [bool], finished: &mut Vec<usize>) {
    if std::mem::replace(&mut is_seen[start], true) {
        return;
    }
    let mut path = vec![(start, edges[start].iter())];
    while let Some((rule, next)) = path.last_mut() {
        match next.next() {
            Some(other) => {
                if !std::mem::replace(&mut is_seen[*other], true) {
                    path.push((*other, edges[*other].iter()));
                }
            }
            None => {
                finished.push(*rule);
                path.pop();
            }
        }
    }
}

/// Bounds of what has none.
#[derive(Clone, Copy)]
struct Bounds {
    /// Maximum number of characters of a text.
    chars: u32,
    /// Maximum number of items of a list after the first.
    more_items: u32,
}

impl Node {
    /// Bounds texts and repetitions. What repeats in a token is characters.
    fn bound(&mut self, bounds: Bounds, is_in_token: bool) {
        let Bounds { chars, more_items } = bounds;
        match self {
            Node::Text(text) => *self = bounded_text(text, text.max.map_or(chars, |max| max.min(chars))),
            Node::Repeat { node, min, max } => {
                let limit = if is_in_token { chars } else { more_items };
                max.get_or_insert(limit.max(*min));
                node.bound(bounds, is_in_token);
            }
            Node::Sequence(parts) | Node::Choice(parts) => {
                parts.iter_mut().for_each(|part| part.bound(bounds, is_in_token));
            }
            Node::Token(node) => node.bound(bounds, true),
            Node::Json { node, .. } => node.bound(bounds, is_in_token),
            Node::Literal(_) | Node::Class(_) | Node::Rule(_) => {}
        }
    }

    /// Replaces the rules that the node refers to; what is replaced by `None` is satisfied by no text.
    fn map_rules(&mut self, map: &impl Fn(usize) -> Option<usize>) {
        match self {
            Node::Rule(rule) => *self = map(*rule).map_or_else(Node::never, Node::Rule),
            Node::Sequence(parts) | Node::Choice(parts) => {
                parts.iter_mut().for_each(|part| part.map_rules(map));
            }
            Node::Repeat { node, .. } | Node::Token(node) | Node::Json { node, .. } => node.map_rules(map),
            Node::Literal(_) | Node::Class(_) | Node::Text(_) => {}
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
