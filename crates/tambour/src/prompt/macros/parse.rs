//! Text with macros, read into nodes in one pass: nesting to a bounded depth, escapes, scoped forms, old markers, and Jinja that
//! stands there already.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use minijinja::Environment;

use super::markers::markers;
use super::scoped::scoped;
use super::table::{self, Rule};
use crate::prompt::jinja::source::{Kind, TokenKind, piece, tokens};

/// Macros within macros.
pub(super) const DEPTH: usize = 32;

/// Tokens of Jinja in a row that are looked at.
const CHAIN: usize = 500;

/// A part of a text.
#[derive(Clone, Debug)]
pub(super) enum Node<'s> {
    /// Text as it is printed.
    Text(Cow<'s, str>),
    /// `{{ … }}` of Jinja: all of it, and the expression.
    Jinja(&'s str, &'s str),
    /// A statement, a comment or a raw block of Jinja.
    Verbatim(&'s str),
    /// A name alone: the name, and how it was written.
    Bare {
        name: &'s str,
        written: &'s str,
    },
    Macro(Macro<'s>),
    /// A macro that is none: its marks are text, what stands between them is not.
    Unknown {
        name: Cow<'s, str>,
        at: usize,
        inside: Vec<Node<'s>>,
    },
}

/// A macro that the table has.
#[derive(Clone, Debug)]
pub(super) struct Macro<'s> {
    pub(super) rule: &'static Rule,
    pub(super) name: Cow<'s, str>,
    /// `{{#name}}`: white space stays.
    pub(super) keep: bool,
    pub(super) form: Form,
    pub(super) args: Vec<Vec<Node<'s>>>,
    /// What stands before its closing tag.
    pub(super) body: Option<Vec<Node<'s>>>,
    /// All of it, as it was written; the opening tag of a scoped one.
    pub(super) written: &'s str,
    pub(super) at: usize,
    /// Whether it is `{{/name}}`.
    pub(super) closes: bool,
}

/// What stands between the name of a macro and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// There are none.
    None,
    /// `::`
    Double,
    /// `:`, a blank or nothing: one argument.
    Single,
}

/// A text that was read.
pub(super) struct Parsed<'s> {
    pub(super) nodes: Vec<Node<'s>>,
    /// Names that its Jinja sets.
    pub(super) names: HashSet<&'s str>,
}

impl Parsed<'_> {
    /// Whether there is Jinja in it that was there before.
    pub(super) fn has_jinja(&self) -> bool {
        holds_jinja(&self.nodes)
    }
}

fn holds_jinja(nodes: &[Node<'_>]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Jinja(..) | Node::Verbatim(_) => true,
        Node::Macro(one) => one.args.iter().chain(&one.body).any(|nodes| holds_jinja(nodes)),
        Node::Unknown { inside, .. } => holds_jinja(inside),
        _ => false,
    })
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
}

impl<'s> Parser<'s> {
    fn run(mut self) -> Parsed<'s> {
        let bytes = self.source.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let next = bytes.get(at + 1).copied();
            at = match bytes[at] {
                b'\\' if matches!(next, Some(b'{' | b'}')) => {
                    self.flush(at);
                    self.push(Node::Text(Cow::Borrowed(&self.source[at + 1..at + 2])));
                    self.text = at + 2;
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
        self.flush(bytes.len());
        // What is open to the end is text; what is complete within it is not.
        let mut nodes = self.nodes;
        for frame in self.frames {
            nodes.push(Node::Text(Cow::Borrowed("{{")));
            nodes.extend(frame.nodes);
        }
        Parsed { nodes: scoped(nodes), names: self.names }
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
        let written = &self.source[at..end];
        let args = Vec::new();
        let name = Cow::Borrowed(name);
        let form = Form::None;
        self.push(Node::Macro(Macro {
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
        let good =
            found.kind == Kind::Output && bounded(inside) && self.env.compile_expression(inside).is_ok();
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
        let written = &self.source[frame.open..at + 2];
        self.push(read_macro(frame.nodes, written, frame.open));
        self.text = at + 2;
    }
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

/// The beginning of a macro: flags, name, and what follows it.
struct Header<'t> {
    closes: bool,
    keep: bool,
    name: &'t str,
    rest: &'t str,
}

impl<'t> Header<'t> {
    fn read(text: &'t str) -> Header<'t> {
        let mut rest = text.trim_start();
        let (mut closes, mut keep) = (false, false);
        let comment = |rest: &str| rest.starts_with("//");
        while !comment(rest) {
            let Some(flag) = rest.chars().next().filter(|c| matches!(c, '/' | '#' | '!' | '?' | '~' | '>'))
            else {
                break;
            };
            closes |= flag == '/';
            keep |= flag == '#';
            rest = rest[1..].trim_start();
        }
        let length = if comment(rest) {
            2
        } else if rest.starts_with(['.', '$']) {
            1
        } else if rest.get(..8).is_some_and(|name| table::utc(name, &rest[8..]).is_some()) {
            // `time_UTC-5`: the sign is no part of the name.
            8
        } else {
            table::name_length(rest)
        };
        let (name, behind) = rest.split_at(length);
        Header { closes, keep, name, rest: behind }
    }

    /// Whether what is known of it makes it a macro of the table, and no expression of Jinja.
    fn is_macro(&self) -> bool {
        let short =
            matches!(self.name, "." | "$") && self.rest.starts_with(|c: char| c.is_ascii_alphabetic());
        let follows = |text: &str| text.is_empty() || text.starts_with("}}") || text.starts_with(':');
        let behind = self.rest.trim_start();
        let spaced = behind.len() < self.rest.len();
        let known = match table::find(self.name) {
            // A filter or an operator makes it an expression.
            Some(rule) => {
                follows(behind) || spaced && rule.most > 0 && !behind.starts_with(['|', '~', '=', '+', '*'])
            }
            None => table::utc(self.name, self.rest).is_some() || self.closes,
        };
        short || self.name == "//" || known
    }
}

/// A macro from what stands between its braces.
fn read_macro<'s>(mut nodes: Vec<Node<'s>>, written: &'s str, at: usize) -> Node<'s> {
    let first = match nodes.first() {
        Some(Node::Text(Cow::Borrowed(text))) => *text,
        _ => return Node::Unknown { name: Cow::Borrowed(""), at, inside: nodes },
    };
    let header = Header::read(first);
    let unknown = |nodes| Node::Unknown { name: Cow::Owned(header.name.to_owned()), at, inside: nodes };
    if let Some(offset) = table::utc(header.name, header.rest).filter(|_| nodes.len() == 1) {
        let args = vec![vec![Node::Text(Cow::Owned(format!("UTC{offset}")))]];
        let Some(rule) = table::find("time") else { return unknown(nodes) };
        let name = Cow::Borrowed(header.name);
        return Node::Macro(Macro {
            rule,
            name,
            keep: false,
            form: Form::Double,
            args,
            body: None,
            written,
            at,
            closes: false,
        });
    }
    let name = header.name;
    let Some(rule) = table::find(name) else {
        let alone =
            nodes.len() == 1 && !header.closes && header.rest.trim().is_empty() && table::is_name(name);
        return if alone { Node::Bare { name, written } } else { unknown(nodes) };
    };
    let (rest, form) = match header.rest {
        rest if rule.raw => (rest, Form::Single),
        rest => {
            let trimmed = rest.trim_start();
            match (trimmed.strip_prefix("::"), trimmed.strip_prefix(':')) {
                (Some(rest), _) => (rest, Form::Double),
                (None, Some(rest)) => (rest, Form::Single),
                _ if trimmed.is_empty() && nodes.len() == 1 => ("", Form::None),
                // Letters right behind the name would be part of it; a blank or a quote divides.
                _ if trimmed.len() < rest.len() || rest.is_empty() || rest.starts_with(['"', '\'']) => {
                    (trimmed, Form::Single)
                }
                _ => return unknown(nodes),
            }
        }
    };
    let count = match form {
        Form::None => 0,
        Form::Single => 1,
        Form::Double => {
            let texts = nodes.iter().skip(1).map(|node| match node {
                Node::Text(text) => text.matches("::").count(),
                _ => 0,
            });
            1 + rest.matches("::").count() + texts.sum::<usize>()
        }
    };
    let fits = header.closes && count == 0
        || !header.closes && (rule.least..=rule.most).contains(&count)
        || !header.closes && rule.scoped && count + 1 == rule.least;
    if !fits {
        return unknown(nodes);
    }
    let (closes, keep) = (header.closes, header.keep);
    let name = Cow::Borrowed(name);
    nodes[0] = Node::Text(Cow::Borrowed(rest));
    let mut args = match form {
        Form::None => Vec::new(),
        Form::Single => vec![nodes],
        Form::Double => split(nodes, "::"),
    };
    if !rule.raw {
        args.iter_mut().for_each(trim);
    }
    Node::Macro(Macro { rule, name, keep, form, args, body: None, written, at, closes })
}

/// Divides nodes at each `separator` in their texts.
pub(super) fn split<'s>(nodes: Vec<Node<'s>>, separator: &str) -> Vec<Vec<Node<'s>>> {
    let mut parts = vec![Vec::new()];
    for node in nodes {
        let Node::Text(text) = node else {
            parts.last_mut().expect("there is always one").push(node);
            continue;
        };
        let pieces: Vec<Cow<'s, str>> = match text {
            Cow::Borrowed(text) => text.split(separator).map(Cow::Borrowed).collect(),
            Cow::Owned(text) => text.split(separator).map(|piece| Cow::Owned(piece.to_owned())).collect(),
        };
        for (at, piece) in pieces.into_iter().enumerate() {
            if at > 0 {
                parts.push(Vec::new());
            }
            if !piece.is_empty() {
                parts.last_mut().expect("there is always one").push(Node::Text(piece));
            }
        }
    }
    parts
}

/// Takes white space from both ends.
pub(super) fn trim(nodes: &mut Vec<Node<'_>>) {
    while let Some(Node::Text(text)) = nodes.first_mut() {
        shorten(text, |text| text.trim_start());
        if !text.is_empty() {
            break;
        }
        nodes.remove(0);
    }
    while let Some(Node::Text(text)) = nodes.last_mut() {
        shorten(text, |text| text.trim_end());
        if !text.is_empty() {
            break;
        }
        nodes.pop();
    }
}

/// Makes a text a part of itself.
pub(super) fn shorten<'s>(text: &mut Cow<'s, str>, part: impl Fn(&str) -> &str) {
    match text {
        Cow::Borrowed(whole) => {
            let (start, kept) = within(whole, part(whole));
            *text = Cow::Borrowed(&whole[start..start + kept]);
        }
        Cow::Owned(whole) => *whole = part(whole).to_owned(),
    }
}

/// Offset and length of a part of a text.
fn within(whole: &str, part: &str) -> (usize, usize) {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    if part.is_empty() { (0, 0) } else { (start, part.len()) }
}
