//! Text with macros, read into nodes in one pass: nesting to a bounded depth, escapes, scoped forms, old markers, and Jinja that
//! stands there already.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use minijinja::Environment;

use super::header::{Header, read_macro};
use super::markers::markers;
use super::node::{Form, Macro, Node, holds_jinja};
use super::scoped::scoped;
use super::table;
use crate::jinja::source::{Kind, Token, TokenKind, piece, tokens};
use crate::jinja::{is_context, is_filter, is_test};

/// Macros within macros.
pub(super) const DEPTH: usize = 32;

/// Tokens of Jinja in a row that are looked at.
const CHAIN: usize = 500;

/// Macros and escapes of one text. One with more stays as it was written: they take many times the bytes they are read from.
pub(super) const NODES: usize = 50_000;

/// A text that was read.
pub(super) struct Parsed<'s> {
    pub(super) nodes: Vec<Node<'s>>,
    /// Names that its Jinja sets.
    pub(super) names: HashSet<&'s str>,
    /// Whether nothing in it is Jinja.
    pub(super) foreign: bool,
    /// Where it has more macros than are read; it is left alone then.
    pub(super) over: Option<usize>,
}

impl Parsed<'_> {
    /// Whether there is Jinja in it that was there before.
    pub(super) fn has_jinja(&self) -> bool {
        holds_jinja(&self.nodes)
    }
}

/// Reads `source`. Without `jinja` all of Jinja in it is text.
pub(super) fn parse(source: &str, jinja: bool) -> Parsed<'_> {
    let parser = Parser {
        source,
        jinja,
        frames: Vec::new(),
        nodes: Vec::new(),
        text: 0,
        names: HashSet::new(),
        markers: markers(source),
        env: Environment::empty(),
        budget: 8 * source.len() + (64 << 10),
        count: 0,
    };
    parser.run()
}

struct Frame<'s> {
    open: usize,
    nodes: Vec<Node<'s>>,
}

struct Parser<'s> {
    source: &'s str,
    jinja: bool,
    frames: Vec<Frame<'s>>,
    nodes: Vec<Node<'s>>,
    /// Where the text begins that is no node yet.
    text: usize,
    names: HashSet<&'s str>,
    /// Old markers: place, end, name of their macro.
    markers: HashMap<usize, (usize, &'static str)>,
    env: Environment<'static>,
    /// Bytes that may still be looked at in vain for Jinja.
    budget: usize,
    /// Macros and escapes so far.
    count: usize,
}

impl<'s> Parser<'s> {
    fn run(mut self) -> Parsed<'s> {
        let bytes = self.source.as_bytes();
        let mut at = 0;
        while at < bytes.len() && self.count < NODES {
            let next = bytes.get(at + 1).copied();
            at = match bytes[at] {
                // Before a macro it is text.
                b'\\' if next == Some(b'{') && opens_two(&bytes[at + 1..]) => {
                    self.flush(at);
                    self.push(Node::Text(Cow::Borrowed(BACKSLASH)));
                    self.text = at + 1;
                    self.count += 1;
                    self.braces(at + 1)
                }
                b'\\' if matches!(next, Some(b'{' | b'}')) => {
                    self.flush(at);
                    self.push(Node::Text(Cow::Borrowed(&self.source[at + 1..at + 2])));
                    self.text = at + 2;
                    self.count += 1;
                    at + 2
                }
                b'<' => self.marker(at),
                b'{' if next == Some(b'{') => self.braces(at),
                b'{' if matches!(next, Some(b'%' | b'#')) && self.jinja && self.frames.is_empty() => {
                    self.verbatim(at)
                }
                b'}' if next == Some(b'}') && !self.frames.is_empty() => {
                    self.close(at);
                    at + 2
                }
                _ => at + 1,
            };
        }
        if self.count >= NODES {
            let (nodes, over) = (vec![Node::Rest(self.source)], Some(at.min(bytes.len())));
            return Parsed { nodes, names: HashSet::new(), foreign: !self.jinja, over };
        }
        self.flush(bytes.len());
        // What is open to the end is text; what is complete within it is not.
        let mut nodes = unescaped(self.nodes);
        for frame in self.frames {
            nodes.push(Node::Text(Cow::Borrowed("{{")));
            nodes.extend(unescaped(frame.nodes));
        }
        Parsed { nodes: scoped(nodes), names: self.names, foreign: !self.jinja, over: None }
    }

    fn push(&mut self, node: Node<'s>) {
        self.frames.last_mut().map_or(&mut self.nodes, |frame| &mut frame.nodes).push(node);
    }

    /// The text up to `at` is a node.
    fn flush(&mut self, at: usize) {
        if at > self.text {
            self.push(Node::Text(Cow::Borrowed(&self.source[self.text..at])));
        }
        self.text = at;
    }

    /// `<USER>` and its like.
    fn marker(&mut self, at: usize) -> usize {
        let Some(&(end, name)) = self.markers.get(&at) else { return at + 1 };
        let Some(rule) = table::find(name) else { return at + 1 };
        self.flush(at);
        self.count += 1;
        let written = &self.source[at..end];
        let args = Vec::new();
        let name = Cow::Borrowed(name);
        let form = Form::None;
        self.push(Node::from(Macro {
            rule,
            name,
            keep: false,
            form,
            args,
            body: None,
            written,
            at,
            closes: false,
        }));
        self.text = end;
        end
    }

    /// Opening braces: of an odd number the first is text.
    fn braces(&mut self, at: usize) -> usize {
        let run = self.source.as_bytes()[at..].iter().take_while(|byte| **byte == b'{').count();
        // `{{{` may also begin a map of Jinja.
        if run == 3
            && self.jinja
            && let Some(end) = self.jinja_output(at)
        {
            return end;
        }
        // Only the innermost pair can be more than an opening.
        let last = at + run - 2;
        let mut open = at + run % 2;
        while open < last && self.frames.len() < DEPTH {
            self.open(open);
            open += 2;
        }
        let header = Header::read(&self.source[last + 2..]);
        if !header.is_macro()
            && self.jinja
            && let Some(end) = self.jinja_output(last)
        {
            return end;
        }
        if self.frames.len() < DEPTH {
            self.open(last);
        }
        last + 2
    }

    fn open(&mut self, at: usize) {
        self.flush(at);
        self.frames.push(Frame { open: at, nodes: Vec::new() });
        self.text = at + 2;
    }

    /// An output of Jinja at `at`, if there is one.
    fn jinja_output(&mut self, at: usize) -> Option<usize> {
        if self.budget == 0 {
            return None;
        }
        let found = piece(self.source, at);
        let inside = &self.source[found.inside.clone()];
        let good = found.kind == Kind::Output && bounded(inside) && self.reads(inside, found.inside.clone());
        if !good {
            self.budget = self.budget.saturating_sub(found.range.len());
            return None;
        }
        self.flush(at);
        let written = &self.source[found.range.clone()];
        let name = inside.trim();
        let plain = table::is_name(name) && !matches!(name, "true" | "false" | "none" | "loop" | "self");
        self.push(match plain && !written.contains(['-', '+']) {
            true => Node::Bare { name, written },
            false => Node::Jinja(written, inside),
        });
        self.text = found.range.end;
        Some(found.range.end)
    }

    /// Whether an expression is one of the engine, and not a macro of somebody that looks like one.
    fn reads(&self, inside: &str, range: Range<usize>) -> bool {
        let name = inside.trim();
        if name.contains('-') && table::name_length(name) == name.len() {
            // A macro may be called so; a difference has blanks, or names that are known.
            let known = |part: &str| {
                is_context(part)
                    || self.names.contains(part)
                    || part.bytes().all(|byte| byte.is_ascii_digit())
            };
            if !name.split('-').all(known) {
                return false;
            }
        }
        let words = tokens(self.source, range);
        let word = |at: usize| words.get(at).map(|token: &Token| &self.source[token.range.clone()]);
        let known = |at: usize| {
            let name = word(at).unwrap_or_default();
            match at.checked_sub(1).and_then(word) {
                Some("|") => is_filter(name),
                Some("is") if name != "not" => is_test(name),
                Some("not") if at > 1 && word(at - 2) == Some("is") => is_test(name),
                _ => true,
            }
        };
        (0..words.len()).all(|at| words[at].kind != TokenKind::Name || known(at))
            && self.env.compile_expression(inside).is_ok()
    }

    /// A statement, a comment or a raw block of Jinja.
    fn verbatim(&mut self, at: usize) -> usize {
        if self.budget == 0 {
            return at + 2;
        }
        let found = piece(self.source, at);
        let inside = &self.source[found.inside.clone()];
        let good = match found.kind {
            Kind::Raw => true,
            // `{#id}` is an anchor of Markdown.
            Kind::Comment => inside.starts_with(char::is_whitespace) && inside.ends_with(char::is_whitespace),
            Kind::Statement => statement(inside),
            _ => false,
        };
        if !good {
            self.budget = self.budget.saturating_sub(found.range.len());
            return at + 2;
        }
        if found.kind == Kind::Statement {
            let read = tokens(self.source, found.inside.clone());
            let names = read.iter().filter(|token| token.kind == TokenKind::Name);
            let words = names.map(|token| &self.source[token.range.clone()]);
            let mut words = words.peekable();
            if matches!(words.peek(), Some(&"set" | &"for" | &"macro" | &"with" | &"call")) {
                self.names.extend(words.skip(1).take_while(|word| *word != "in"));
            }
        }
        self.flush(at);
        self.push(Node::Verbatim(&self.source[found.range.clone()]));
        self.text = found.range.end;
        found.range.end
    }

    /// The macro that `}}` at `at` closes.
    fn close(&mut self, at: usize) {
        self.flush(at);
        let Some(frame) = self.frames.pop() else { return };
        self.count += 1;
        let written = &self.source[frame.open..at + 2];
        self.push(read_macro(unescaped(frame.nodes), written, frame.open));
        self.text = at + 2;
    }
}

/// A backslash before two braces.
static BACKSLASH: &str = "\\";

/// Whether exactly two braces open there.
fn opens_two(bytes: &[u8]) -> bool {
    bytes.iter().take(3).take_while(|byte| **byte == b'{').count() == 2
}

/// Takes backslashes away that stand before braces which are no macro.
fn unescaped(mut nodes: Vec<Node<'_>>) -> Vec<Node<'_>> {
    let is_mark =
        |node: &Node<'_>| matches!(node, Node::Text(Cow::Borrowed(text)) if std::ptr::eq(*text, BACKSLASH));
    if nodes.iter().any(is_mark) {
        let keep = |pair: &[Node<'_>]| {
            !is_mark(&pair[0]) || matches!(pair.get(1), Some(Node::Macro(_) | Node::Jinja(..)))
        };
        let kept: Vec<bool> =
            (0..nodes.len()).map(|at| keep(&nodes[at..(at + 2).min(nodes.len())])).collect();
        let mut kept = kept.into_iter();
        nodes.retain(|_| kept.next().unwrap_or(true));
    }
    nodes
}

/// Whether a statement of Jinja begins like this.
fn statement(inside: &str) -> bool {
    const WORDS: &[&str] = &[
        "if",
        "elif",
        "else",
        "endif",
        "for",
        "endfor",
        "set",
        "endset",
        "set_global",
        "macro",
        "endmacro",
        "call",
        "endcall",
        "filter",
        "endfilter",
        "with",
        "endwith",
        "do",
        "break",
        "continue",
    ];
    let inside = inside.trim_start();
    let word = inside.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    WORDS.contains(&word) && bounded(inside)
}

/// Whether the engine reads it without nesting too deeply.
fn bounded(inside: &str) -> bool {
    let mut chains: Vec<usize> = Vec::new();
    tokens(inside, 0..inside.len()).iter().all(|token| {
        chains.truncate(token.depth + 1);
        chains.resize(token.depth + 1, 0);
        let chain = &mut chains[token.depth];
        *chain = if &inside[token.range.clone()] == "," { 0 } else { *chain + 1 };
        *chain <= CHAIN
    })
}
