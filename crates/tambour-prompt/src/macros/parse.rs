//! Parses a text with macros into nodes in one pass: bounded nesting, escapes, scoped forms, legacy markers
//! and existing Jinja.

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

/// Deepest nesting of macros.
pub(super) const DEPTH: usize = 32;

/// Most consecutive Jinja tokens that are examined.
const CHAIN: usize = 500;

/// Most macros and escapes of one text. A text with more is left unchanged, because nodes take many times the
/// bytes of their source.
pub(super) const NODES: usize = 50_000;

/// A parsed text.
pub(super) struct Parsed<'s> {
    pub(super) nodes: Vec<Node<'s>>,
    /// Names that its Jinja sets.
    pub(super) names: HashSet<&'s str>,
    /// True if nothing in the text is treated as Jinja.
    pub(super) foreign: bool,
    /// Offset at which the text exceeded [`NODES`]; the text is left unchanged then.
    pub(super) over: Option<usize>,
}

impl Parsed<'_> {
    /// Returns true if the source text contains Jinja.
    pub(super) fn has_jinja(&self) -> bool {
        holds_jinja(&self.nodes)
    }
}

/// Parses `source`. Without `jinja`, all Jinja in it is text.
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
    /// Start of the text that is not yet part of a node.
    text: usize,
    names: HashSet<&'s str>,
    /// Legacy markers by offset: end offset and macro name.
    markers: HashMap<usize, (usize, &'static str)>,
    env: Environment<'static>,
    /// Bytes that may still be spent on failed attempts to read Jinja.
    budget: usize,
    /// Number of macros and escapes so far.
    count: usize,
}

impl<'s> Parser<'s> {
    fn run(mut self) -> Parsed<'s> {
        let bytes = self.source.as_bytes();
        let mut at = 0;
        while at < bytes.len() && self.count < NODES {
            let next = bytes.get(at + 1).copied();
            at = match bytes[at] {
                // A backslash before two braces is an escape only if no macro follows; `unescaped` decides.
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
        // An unclosed macro is text; complete macros inside it are kept.
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

    /// Turns the text up to `at` into a node.
    fn flush(&mut self, at: usize) {
        if at > self.text {
            self.push(Node::Text(Cow::Borrowed(&self.source[self.text..at])));
        }
        self.text = at;
    }

    /// Reads a legacy marker such as `<USER>`.
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

    /// Reads a run of opening braces; the first of an odd number is text.
    fn braces(&mut self, at: usize) -> usize {
        let run = self.source.as_bytes()[at..].iter().take_while(|byte| **byte == b'{').count();
        // `{{{` may also begin a Jinja map.
        if run == 3
            && self.jinja
            && let Some(end) = self.jinja_output(at)
        {
            return end;
        }
        // Only the innermost pair can be Jinja or a macro; outer pairs just open.
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

    /// Reads a Jinja output tag at `at`; returns its end, or `None` if there is none.
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

    /// Returns true if the engine accepts an expression and it is not a foreign macro that merely looks like
    /// one.
    fn reads(&self, inside: &str, range: Range<usize>) -> bool {
        let name = inside.trim();
        if name.contains('-') && table::name_length(name) == name.len() {
            // A macro name may contain `-`; a difference has blanks or known names as operands.
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

    /// Reads a Jinja statement, comment or raw block.
    fn verbatim(&mut self, at: usize) -> usize {
        if self.budget == 0 {
            return at + 2;
        }
        let found = piece(self.source, at);
        let inside = &self.source[found.inside.clone()];
        let good = match found.kind {
            Kind::Raw => true,
            // `{#id}` is a Markdown anchor.
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

    /// Closes the macro that ends with `}}` at `at`.
    fn close(&mut self, at: usize) {
        self.flush(at);
        let Some(frame) = self.frames.pop() else { return };
        self.count += 1;
        let written = &self.source[frame.open..at + 2];
        self.push(read_macro(unescaped(frame.nodes), written, frame.open));
        self.text = at + 2;
    }
}

/// Text node for a backslash before two braces, recognized by its address.
static BACKSLASH: &str = "\\";

/// Returns true if exactly two braces open here.
fn opens_two(bytes: &[u8]) -> bool {
    bytes.iter().take(3).take_while(|byte| **byte == b'{').count() == 2
}

/// Removes backslash nodes unless a macro or Jinja follows.
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

/// Returns true if the content of a tag begins like a Jinja statement.
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

/// Returns true if the engine can parse the code without nesting too deeply.
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
