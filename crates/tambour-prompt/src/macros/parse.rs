//! Parses a text with macros into nodes in one pass: bounded nesting, escapes, scoped forms, legacy markers
//! and existing Jinja.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use minijinja::Environment;

use super::header::{MacroHeader, read_macro};
use super::node::{ArgumentSeparator, KnownMacro, MacroNode, has_jinja};
use super::table;
use super::tag_pairs::match_tags;
use crate::jinja::source::{ExpressionToken, PartKind, TokenKind, read_part, tokenize};
use crate::jinja::{is_context_name, is_filter_name, is_test_name};

/// Deepest nesting of macros.
pub(super) const MAX_MACRO_DEPTH: usize = 32;

/// Most consecutive Jinja tokens that are examined.
const MAX_CHAIN_TOKENS: usize = 500;

/// Most macros and escapes of one text. A text with more is left unchanged, because nodes take many times the
/// bytes of their source.
pub(super) const MAX_NODES: usize = 50_000;

/// A parsed text.
pub(super) struct ParsedText<'s> {
    pub(super) nodes: Vec<MacroNode<'s>>,
    /// Names that its Jinja sets.
    pub(super) jinja_names: HashSet<&'s str>,
    /// True if nothing in the text is treated as Jinja.
    pub(super) is_foreign: bool,
    /// Offset at which the text exceeded [`MAX_NODES`]; the text is left unchanged then.
    pub(super) limit_offset: Option<usize>,
}

impl ParsedText<'_> {
    /// Returns true if the source text contains Jinja.
    pub(super) fn has_jinja(&self) -> bool {
        has_jinja(&self.nodes)
    }
}

/// Parses `source`. Without `jinja`, all Jinja in it is text.
pub(super) fn parse(source: &str, reads_jinja: bool) -> ParsedText<'_> {
    let parser = MacroParser {
        source,
        reads_jinja,
        frames: Vec::new(),
        nodes: Vec::new(),
        text_start: 0,
        names: HashSet::new(),
        markers: find_markers(source),
        env: Environment::empty(),
        jinja_budget: 8 * source.len() + (64 << 10),
        node_count: 0,
    };
    parser.run()
}

struct OpenMacro<'s> {
    offset: usize,
    nodes: Vec<MacroNode<'s>>,
}

struct MacroParser<'s> {
    source: &'s str,
    reads_jinja: bool,
    frames: Vec<OpenMacro<'s>>,
    nodes: Vec<MacroNode<'s>>,
    /// Start of the text that is not yet part of a node.
    text_start: usize,
    names: HashSet<&'s str>,
    /// Legacy markers by offset: end offset and macro name.
    markers: HashMap<usize, (usize, &'static str)>,
    env: Environment<'static>,
    /// Bytes that may still be spent on failed attempts to read Jinja.
    jinja_budget: usize,
    /// Number of macros and escapes so far.
    node_count: usize,
}

impl<'s> MacroParser<'s> {
    fn run(mut self) -> ParsedText<'s> {
        let bytes = self.source.as_bytes();
        let mut at = 0;
        while at < bytes.len() && self.node_count < MAX_NODES {
            let next = bytes.get(at + 1).copied();
            at = match bytes[at] {
                // A backslash before two braces is an escape only if no macro follows; `unescaped` decides.
                b'\\' if next == Some(b'{') && opens_two(&bytes[at + 1..]) => {
                    self.flush(at);
                    self.push(MacroNode::Text(Cow::Borrowed(BACKSLASH)));
                    self.text_start = at + 1;
                    self.node_count += 1;
                    self.read_braces(at + 1)
                }
                b'\\' if matches!(next, Some(b'{' | b'}')) => {
                    self.flush(at);
                    self.push(MacroNode::Text(Cow::Borrowed(&self.source[at + 1..at + 2])));
                    self.text_start = at + 2;
                    self.node_count += 1;
                    at + 2
                }
                b'<' => self.read_marker(at),
                b'{' if next == Some(b'{') => self.read_braces(at),
                b'{' if matches!(next, Some(b'%' | b'#')) && self.reads_jinja && self.frames.is_empty() => {
                    self.read_verbatim(at)
                }
                b'}' if next == Some(b'}') && !self.frames.is_empty() => {
                    self.close_macro(at);
                    at + 2
                }
                _ => at + 1,
            };
        }
        if self.node_count >= MAX_NODES {
            let (nodes, limit_offset) = (vec![MacroNode::Unparsed(self.source)], Some(at.min(bytes.len())));
            return ParsedText {
                nodes,
                jinja_names: HashSet::new(),
                is_foreign: !self.reads_jinja,
                limit_offset,
            };
        }
        self.flush(bytes.len());
        // An unclosed macro is text; complete macros inside it are kept.
        let mut nodes = remove_escapes(self.nodes);
        for frame in self.frames {
            nodes.push(MacroNode::Text(Cow::Borrowed("{{")));
            nodes.extend(remove_escapes(frame.nodes));
        }
        ParsedText {
            nodes: match_tags(nodes),
            jinja_names: self.names,
            is_foreign: !self.reads_jinja,
            limit_offset: None,
        }
    }

    fn push(&mut self, node: MacroNode<'s>) {
        self.frames.last_mut().map_or(&mut self.nodes, |frame| &mut frame.nodes).push(node);
    }

    /// Turns the text up to `at` into a node.
    fn flush(&mut self, at: usize) {
        if at > self.text_start {
            self.push(MacroNode::Text(Cow::Borrowed(&self.source[self.text_start..at])));
        }
        self.text_start = at;
    }

    /// Reads a legacy marker such as `<USER>`.
    fn read_marker(&mut self, offset: usize) -> usize {
        let Some(&(end, name)) = self.markers.get(&offset) else { return offset + 1 };
        let Some(rule) = table::find_rule(name) else { return offset + 1 };
        self.flush(offset);
        self.node_count += 1;
        let source = &self.source[offset..end];
        let args = Vec::new();
        let name = Cow::Borrowed(name);
        let form = ArgumentSeparator::None;
        self.push(MacroNode::from(KnownMacro {
            rule,
            name,
            keeps_white_space: false,
            form,
            args,
            body: None,
            source,
            offset,
            is_closing: false,
        }));
        self.text_start = end;
        end
    }

    /// Reads a run of opening braces; the first of an odd number is text.
    fn read_braces(&mut self, at: usize) -> usize {
        let run = self.source.as_bytes()[at..].iter().take_while(|byte| **byte == b'{').count();
        // `{{{` may also begin a Jinja map.
        if run == 3
            && self.reads_jinja
            && let Some(end) = self.read_jinja_output(at)
        {
            return end;
        }
        // Only the innermost pair can be Jinja or a macro; outer pairs just open.
        let last = at + run - 2;
        let mut open = at + run % 2;
        while open < last && self.frames.len() < MAX_MACRO_DEPTH {
            self.open_macro(open);
            open += 2;
        }
        let header = MacroHeader::read(&self.source[last + 2..]);
        if !header.is_macro()
            && self.reads_jinja
            && let Some(end) = self.read_jinja_output(last)
        {
            return end;
        }
        if self.frames.len() < MAX_MACRO_DEPTH {
            self.open_macro(last);
        }
        last + 2
    }

    fn open_macro(&mut self, at: usize) {
        self.flush(at);
        self.frames.push(OpenMacro { offset: at, nodes: Vec::new() });
        self.text_start = at + 2;
    }

    /// Reads a Jinja output tag at `at`; returns its end, or `None` if there is none.
    fn read_jinja_output(&mut self, at: usize) -> Option<usize> {
        if self.jinja_budget == 0 {
            return None;
        }
        let found = read_part(self.source, at);
        let content = &self.source[found.content.clone()];
        let is_output = found.kind == PartKind::Output
            && is_bounded(content)
            && self.is_jinja_expression(content, found.content.clone());
        if !is_output {
            self.jinja_budget = self.jinja_budget.saturating_sub(found.range.len());
            return None;
        }
        self.flush(at);
        let source = &self.source[found.range.clone()];
        let name = content.trim();
        let is_plain_name =
            table::is_name(name) && !matches!(name, "true" | "false" | "none" | "loop" | "self");
        self.push(match is_plain_name && !source.contains(['-', '+']) {
            true => MacroNode::BareName { name, source },
            false => MacroNode::Jinja(source, content),
        });
        self.text_start = found.range.end;
        Some(found.range.end)
    }

    /// Returns true if the engine accepts an expression and it is not a foreign macro that merely looks like
    /// one.
    fn is_jinja_expression(&self, content: &str, range: Range<usize>) -> bool {
        let name = content.trim();
        if name.contains('-') && table::name_len(name) == name.len() {
            // A macro name may contain `-`; a difference has blanks or known names as operands.
            let is_known = |part: &str| {
                is_context_name(part)
                    || self.names.contains(part)
                    || part.bytes().all(|byte| byte.is_ascii_digit())
            };
            if !name.split('-').all(is_known) {
                return false;
            }
        }
        let words = tokenize(self.source, range);
        let word = |at: usize| words.get(at).map(|token: &ExpressionToken| &self.source[token.range.clone()]);
        let is_known = |at: usize| {
            let name = word(at).unwrap_or_default();
            match at.checked_sub(1).and_then(word) {
                Some("|") => is_filter_name(name),
                Some("is") if name != "not" => is_test_name(name),
                Some("not") if at > 1 && word(at - 2) == Some("is") => is_test_name(name),
                _ => true,
            }
        };
        (0..words.len()).all(|at| words[at].kind != TokenKind::Name || is_known(at))
            && self.env.compile_expression(content).is_ok()
    }

    /// Reads a Jinja statement, comment or raw block.
    fn read_verbatim(&mut self, at: usize) -> usize {
        if self.jinja_budget == 0 {
            return at + 2;
        }
        let found = read_part(self.source, at);
        let content = &self.source[found.content.clone()];
        let is_verbatim = match found.kind {
            PartKind::Raw => true,
            // `{#id}` is a Markdown anchor.
            PartKind::Comment => {
                content.starts_with(char::is_whitespace) && content.ends_with(char::is_whitespace)
            }
            PartKind::Statement => is_statement(content),
            _ => false,
        };
        if !is_verbatim {
            self.jinja_budget = self.jinja_budget.saturating_sub(found.range.len());
            return at + 2;
        }
        if found.kind == PartKind::Statement {
            let read = tokenize(self.source, found.content.clone());
            let names = read.iter().filter(|token| token.kind == TokenKind::Name);
            let words = names.map(|token| &self.source[token.range.clone()]);
            let mut words = words.peekable();
            if matches!(words.peek(), Some(&"set" | &"for" | &"macro" | &"with" | &"call")) {
                self.names.extend(words.skip(1).take_while(|word| *word != "in"));
            }
        }
        self.flush(at);
        self.push(MacroNode::Verbatim(&self.source[found.range.clone()]));
        self.text_start = found.range.end;
        found.range.end
    }

    /// Closes the macro that ends with `}}` at `at`.
    fn close_macro(&mut self, at: usize) {
        self.flush(at);
        let Some(frame) = self.frames.pop() else { return };
        self.node_count += 1;
        let source = &self.source[frame.offset..at + 2];
        self.push(read_macro(remove_escapes(frame.nodes), source, frame.offset));
        self.text_start = at + 2;
    }
}

/// Text node for a backslash before two braces, recognized by its address.
static BACKSLASH: &str = "\\";

/// Returns true if exactly two braces open here.
fn opens_two(bytes: &[u8]) -> bool {
    bytes.iter().take(3).take_while(|byte| **byte == b'{').count() == 2
}

/// Removes backslash nodes unless a macro or Jinja follows.
fn remove_escapes(mut nodes: Vec<MacroNode<'_>>) -> Vec<MacroNode<'_>> {
    let is_mark = |node: &MacroNode<'_>| matches!(node, MacroNode::Text(Cow::Borrowed(text)) if std::ptr::eq(*text, BACKSLASH));
    if nodes.iter().any(is_mark) {
        let must_keep = |pair: &[MacroNode<'_>]| {
            !is_mark(&pair[0]) || matches!(pair.get(1), Some(MacroNode::Macro(_) | MacroNode::Jinja(..)))
        };
        let keep_flags: Vec<bool> =
            (0..nodes.len()).map(|at| must_keep(&nodes[at..(at + 2).min(nodes.len())])).collect();
        let mut keep_flags = keep_flags.into_iter();
        nodes.retain(|_| keep_flags.next().unwrap_or(true));
    }
    nodes
}

/// Returns true if the content of a tag begins like a Jinja statement.
fn is_statement(content: &str) -> bool {
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
    let content = content.trim_start();
    let word = content.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    WORDS.contains(&word) && is_bounded(content)
}

/// Returns true if the engine can parse the code without nesting too deeply.
fn is_bounded(content: &str) -> bool {
    let mut chains: Vec<usize> = Vec::new();
    tokenize(content, 0..content.len()).iter().all(|token| {
        chains.truncate(token.depth + 1);
        chains.resize(token.depth + 1, 0);
        let chain = &mut chains[token.depth];
        *chain = if &content[token.range.clone()] == "," { 0 } else { *chain + 1 };
        *chain <= MAX_CHAIN_TOKENS
    })
}

/// Finds the legacy markers of a text, which predate macros: `<USER>`, `<BOT>` and the like. Those with a matching closing tag are markup and left out (M-011).
/// Maps the offset of each marker to its end and the name of the macro.
fn find_markers(source: &str) -> HashMap<usize, (usize, &'static str)> {
    const NAMES: &[(&str, &str)] = &[
        ("user", "user"),
        ("bot", "char"),
        ("char", "char"),
        ("group", "group"),
        ("charifnotgroup", "group"),
    ];
    let mut found = HashMap::new();
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for at in memchr::memchr_iter(b'<', source.as_bytes()) {
        let rest = &source[at + 1..];
        let is_closing = rest.starts_with('/');
        let rest = &rest[usize::from(is_closing)..];
        let length = rest.bytes().take(16).take_while(u8::is_ascii_alphabetic).count();
        let name = &rest[..length];
        if !rest[length..].starts_with('>') {
            continue;
        }
        let Some((tag, target)) = NAMES.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(name)) else {
            continue;
        };
        if is_closing {
            if let Some(partner) = open.get_mut(tag).and_then(Vec::pop) {
                found.remove(&partner);
            }
        } else {
            open.entry(tag).or_default().push(at);
            found.insert(at, (at + length + 2, *target));
        }
    }
    found
}
