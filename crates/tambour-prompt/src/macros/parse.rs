//! Parses a text with macros into nodes in one pass. Handles nesting up to a limit, escapes, scoped forms
//! (`{{if x}}…{{/if}}`), legacy markers (`<USER>`) and Jinja that the text contains.

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

/// Maximum nesting depth of macros.
pub(super) const MAX_MACRO_DEPTH: usize = 32;

/// Maximum number of tokens between two commas of Jinja code, counted per bracket level; longer code is text.
/// For a chain of operators, the engine nests one call per operator.
const MAX_CHAIN_TOKENS: usize = 500;

/// Maximum number of macros and escapes of one text. A text with more is left unchanged, because nodes take
/// many times the bytes of their source.
pub(super) const MAX_NODES: usize = 50_000;

/// Text parsed into nodes.
pub(super) struct ParsedText<'s> {
    pub(super) nodes: Vec<MacroNode<'s>>,
    /// Names in those Jinja statements of the text that set variables: for `{% set a = b %}`, `a` and `b`.
    pub(super) jinja_names: HashSet<&'s str>,
    /// True if Jinja in the text is treated as plain text.
    pub(super) ignores_jinja: bool,
    /// Offset at which the text exceeded [`MAX_NODES`]; the text is left unchanged then.
    pub(super) limit_offset: Option<usize>,
}

impl ParsedText<'_> {
    /// Returns true if the source text contains Jinja.
    pub(super) fn has_jinja(&self) -> bool {
        has_jinja(&self.nodes)
    }
}

/// Parses `source`. Unless `reads_jinja` is set, Jinja in it is text.
pub(super) fn parse(source: &str, reads_jinja: bool) -> ParsedText<'_> {
    let parser = MacroParser {
        source,
        reads_jinja,
        open_macros: Vec::new(),
        nodes: Vec::new(),
        text_start: 0,
        jinja_names: HashSet::new(),
        markers: find_markers(source),
        env: Environment::empty(),
        // A multiple of the length, so that parsing stays linear; the constant is for short texts.
        jinja_budget: 8 * source.len() + (64 << 10),
        node_count: 0,
    };
    parser.run()
}

/// Macro whose closing braces have not come yet.
struct OpenMacro<'s> {
    /// Offset of its opening braces.
    offset: usize,
    nodes: Vec<MacroNode<'s>>,
}

/// Parser of a text with macros.
struct MacroParser<'s> {
    source: &'s str,
    reads_jinja: bool,
    /// Macros that are open, outermost first.
    open_macros: Vec<OpenMacro<'s>>,
    /// Nodes outside of open macros.
    nodes: Vec<MacroNode<'s>>,
    /// Start of the text that is not yet part of a node.
    text_start: usize,
    /// Names found so far in Jinja statements that set variables ([`ParsedText::jinja_names`]).
    jinja_names: HashSet<&'s str>,
    /// Legacy markers by offset: end offset and macro name.
    markers: HashMap<usize, (usize, &'static str)>,
    /// Engine that tells whether an expression is valid.
    env: Environment<'static>,
    /// Bytes that may still be spent on failed attempts to read Jinja.
    jinja_budget: usize,
    /// Number of macros and escapes so far.
    node_count: usize,
}

impl<'s> MacroParser<'s> {
    /// Parses the whole text.
    fn run(mut self) -> ParsedText<'s> {
        let bytes = self.source.as_bytes();
        let mut at = 0;
        while at < bytes.len() && self.node_count < MAX_NODES {
            let next_byte = bytes.get(at + 1).copied();
            at = match bytes[at] {
                // A backslash before two braces is an escape only if no macro follows; `remove_escapes`
                // decides when that is known.
                b'\\' if next_byte == Some(b'{') && opens_two(&bytes[at + 1..]) => {
                    self.flush(at);
                    self.push(MacroNode::Text(Cow::Borrowed(BACKSLASH)));
                    self.text_start = at + 1;
                    self.node_count += 1;
                    self.read_braces(at + 1)
                }
                b'\\' if matches!(next_byte, Some(b'{' | b'}')) => {
                    self.flush(at);
                    self.push(MacroNode::Text(Cow::Borrowed(&self.source[at + 1..at + 2])));
                    self.text_start = at + 2;
                    self.node_count += 1;
                    at + 2
                }
                b'<' => self.read_marker(at),
                b'{' if next_byte == Some(b'{') => self.read_braces(at),
                b'{' if matches!(next_byte, Some(b'%' | b'#'))
                    && self.reads_jinja
                    && self.open_macros.is_empty() =>
                {
                    self.read_verbatim(at)
                }
                b'}' if next_byte == Some(b'}') && !self.open_macros.is_empty() => {
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
                ignores_jinja: !self.reads_jinja,
                limit_offset,
            };
        }
        self.flush(bytes.len());
        // An unclosed macro is text; complete macros inside it are kept.
        let mut nodes = remove_escapes(self.nodes);
        for unclosed in self.open_macros {
            nodes.push(MacroNode::Text(Cow::Borrowed("{{")));
            nodes.extend(remove_escapes(unclosed.nodes));
        }
        ParsedText {
            nodes: match_tags(nodes),
            jinja_names: self.jinja_names,
            ignores_jinja: !self.reads_jinja,
            limit_offset: None,
        }
    }

    /// Adds a node to the innermost open macro, or to the text.
    fn push(&mut self, node: MacroNode<'s>) {
        self.open_macros.last_mut().map_or(&mut self.nodes, |innermost| &mut innermost.nodes).push(node);
    }

    /// Turns the text up to `at` into a node.
    fn flush(&mut self, at: usize) {
        if at > self.text_start {
            self.push(MacroNode::Text(Cow::Borrowed(&self.source[self.text_start..at])));
        }
        self.text_start = at;
    }

    /// Reads a legacy marker such as `<USER>`, if there is one at `offset`. Returns the offset at which
    /// parsing continues.
    fn read_marker(&mut self, offset: usize) -> usize {
        let Some(&(end, name)) = self.markers.get(&offset) else { return offset + 1 };
        let Some(rule) = table::find_rule(name) else { return offset + 1 };
        self.flush(offset);
        self.node_count += 1;
        let source = &self.source[offset..end];
        let args = Vec::new();
        let name = Cow::Borrowed(name);
        let separator = ArgumentSeparator::None;
        self.push(MacroNode::from(KnownMacro {
            rule,
            name,
            keeps_white_space: false,
            separator,
            args,
            body: None,
            source,
            offset,
            is_closing: false,
        }));
        self.text_start = end;
        end
    }

    /// Reads a run of opening braces; the first of an odd number is text. Returns the offset at which parsing
    /// continues.
    fn read_braces(&mut self, at: usize) -> usize {
        let brace_count = self.source.as_bytes()[at..].iter().take_while(|byte| **byte == b'{').count();
        // `{{{` may also begin a Jinja output whose expression is a map.
        if brace_count == 3
            && self.reads_jinja
            && let Some(end) = self.read_jinja_output(at)
        {
            return end;
        }
        // Only the innermost pair can begin Jinja. The pairs around it open macros.
        let innermost = at + brace_count - 2;
        let mut outer = at + brace_count % 2;
        while outer < innermost && self.open_macros.len() < MAX_MACRO_DEPTH {
            self.open_macro(outer);
            outer += 2;
        }
        let header = MacroHeader::read(&self.source[innermost + 2..]);
        if !header.is_macro()
            && self.reads_jinja
            && let Some(end) = self.read_jinja_output(innermost)
        {
            return end;
        }
        if self.open_macros.len() < MAX_MACRO_DEPTH {
            self.open_macro(innermost);
        }
        innermost + 2
    }

    /// Opens a macro whose braces are at `at`.
    fn open_macro(&mut self, at: usize) {
        self.flush(at);
        self.open_macros.push(OpenMacro { offset: at, nodes: Vec::new() });
        self.text_start = at + 2;
    }

    /// Reads a Jinja output tag at `at`; returns its end, or `None` if there is none.
    fn read_jinja_output(&mut self, at: usize) -> Option<usize> {
        if self.jinja_budget == 0 {
            return None;
        }
        let part = read_part(self.source, at);
        let content = &self.source[part.content.clone()];
        let is_output = part.kind == PartKind::Output
            && is_bounded(content)
            && self.is_jinja_expression(content, part.content.clone());
        if !is_output {
            self.jinja_budget = self.jinja_budget.saturating_sub(part.range.len());
            return None;
        }
        self.flush(at);
        let source = &self.source[part.range.clone()];
        let name = content.trim();
        let is_plain_name =
            table::is_name(name) && !matches!(name, "true" | "false" | "none" | "loop" | "self");
        self.push(match is_plain_name && !source.contains(['-', '+']) {
            true => MacroNode::BareName { name, source },
            false => MacroNode::Jinja(source, content),
        });
        self.text_start = part.range.end;
        Some(part.range.end)
    }

    /// Returns true if the engine accepts the content of a tag as an expression, and it is not an unknown
    /// macro that merely looks like an expression.
    fn is_jinja_expression(&self, content: &str, range: Range<usize>) -> bool {
        let name = content.trim();
        if name.contains('-') && table::name_len(name) == name.len() {
            // The name of an unknown macro may contain `-`. A subtraction has blanks around `-`, or its
            // operands are numbers or known names.
            let is_operand = |operand: &str| {
                is_context_name(operand)
                    || self.jinja_names.contains(operand)
                    || operand.bytes().all(|byte| byte.is_ascii_digit())
            };
            if !name.split('-').all(is_operand) {
                return false;
            }
        }
        let tokens = tokenize(self.source, range);
        let text_of =
            |at: usize| tokens.get(at).map(|token: &ExpressionToken| &self.source[token.range.clone()]);
        // A name in the position of a filter or test must be the name of one.
        let is_known = |at: usize| {
            let name = text_of(at).unwrap_or_default();
            match at.checked_sub(1).and_then(text_of) {
                Some("|") => is_filter_name(name),
                Some("is") if name != "not" => is_test_name(name),
                Some("not") if at > 1 && text_of(at - 2) == Some("is") => is_test_name(name),
                _ => true,
            }
        };
        (0..tokens.len()).all(|at| tokens[at].kind != TokenKind::Name || is_known(at))
            && self.env.compile_expression(content).is_ok()
    }

    /// Reads a Jinja statement, comment or raw block. Returns the offset at which parsing continues.
    fn read_verbatim(&mut self, at: usize) -> usize {
        if self.jinja_budget == 0 {
            return at + 2;
        }
        let part = read_part(self.source, at);
        let content = &self.source[part.content.clone()];
        let is_verbatim = match part.kind {
            PartKind::Raw => true,
            // `{#id}` is a Markdown anchor.
            PartKind::Comment => {
                content.starts_with(char::is_whitespace) && content.ends_with(char::is_whitespace)
            }
            PartKind::Statement => is_statement(content),
            _ => false,
        };
        if !is_verbatim {
            self.jinja_budget = self.jinja_budget.saturating_sub(part.range.len());
            return at + 2;
        }
        if part.kind == PartKind::Statement {
            let tokens = tokenize(self.source, part.content.clone());
            let names = tokens.iter().filter(|token| token.kind == TokenKind::Name);
            let words = names.map(|token| &self.source[token.range.clone()]);
            let mut words = words.peekable();
            if matches!(words.peek(), Some(&"set" | &"for" | &"macro" | &"with" | &"call")) {
                self.jinja_names.extend(words.skip(1).take_while(|word| *word != "in"));
            }
        }
        self.flush(at);
        self.push(MacroNode::Verbatim(&self.source[part.range.clone()]));
        self.text_start = part.range.end;
        part.range.end
    }

    /// Closes the macro that ends with `}}` at `at`.
    fn close_macro(&mut self, at: usize) {
        self.flush(at);
        let Some(innermost) = self.open_macros.pop() else { return };
        self.node_count += 1;
        let source = &self.source[innermost.offset..at + 2];
        self.push(read_macro(remove_escapes(innermost.nodes), source, innermost.offset));
        self.text_start = at + 2;
    }
}

/// Text of the nodes for a backslash before two braces. These nodes are recognized by the address of this
/// text, because other nodes may contain just a backslash, too.
static BACKSLASH: &str = "\\";

/// Returns true if exactly two braces open here.
fn opens_two(bytes: &[u8]) -> bool {
    bytes.iter().take(3).take_while(|byte| **byte == b'{').count() == 2
}

/// Removes the nodes with [`BACKSLASH`], except those before a known macro or a Jinja output.
fn remove_escapes(mut nodes: Vec<MacroNode<'_>>) -> Vec<MacroNode<'_>> {
    let is_escape = |node: &MacroNode<'_>| matches!(node, MacroNode::Text(Cow::Borrowed(text)) if std::ptr::eq(*text, BACKSLASH));
    if nodes.iter().any(is_escape) {
        let must_keep = |pair: &[MacroNode<'_>]| {
            !is_escape(&pair[0]) || matches!(pair.get(1), Some(MacroNode::Macro(_) | MacroNode::Jinja(..)))
        };
        let keep_flags: Vec<bool> =
            (0..nodes.len()).map(|at| must_keep(&nodes[at..(at + 2).min(nodes.len())])).collect();
        let mut keep_flags = keep_flags.into_iter();
        nodes.retain(|_| keep_flags.next().unwrap_or(true));
    }
    nodes
}

/// Returns true if the content of a tag begins like a Jinja statement, and the chains of tokens in it are not
/// too long.
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

/// Returns true if the engine can parse the code without nesting too deeply: it nests one call for each
/// operator of a chain.
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

/// Finds the legacy markers of a text, which predate macros: `<USER>`, `<BOT>` and others. A marker with a
/// matching closing tag is markup and left out (M-011). Maps the offset of each marker to its end and the
/// name of the macro.
fn find_markers(source: &str) -> HashMap<usize, (usize, &'static str)> {
    // Names of markers, with the macros that they stand for.
    const NAMES: &[(&str, &str)] = &[
        ("user", "user"),
        ("bot", "char"),
        ("char", "char"),
        ("group", "group"),
        ("charifnotgroup", "group"),
    ];
    let mut markers = HashMap::new();
    // Offsets of the markers without a closing tag so far.
    let mut open_offsets: HashMap<&str, Vec<usize>> = HashMap::new();
    for at in memchr::memchr_iter(b'<', source.as_bytes()) {
        let after_bracket = &source[at + 1..];
        let is_closing = after_bracket.starts_with('/');
        let tag_content = &after_bracket[usize::from(is_closing)..];
        // No name has more than 16 bytes.
        let length = tag_content.bytes().take(16).take_while(u8::is_ascii_alphabetic).count();
        let name = &tag_content[..length];
        if !tag_content[length..].starts_with('>') {
            continue;
        }
        let Some((tag, target)) = NAMES.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(name)) else {
            continue;
        };
        if is_closing {
            if let Some(partner) = open_offsets.get_mut(tag).and_then(Vec::pop) {
                markers.remove(&partner);
            }
        } else {
            open_offsets.entry(tag).or_default().push(at);
            markers.insert(at, (at + length + 2, *target));
        }
    }
    markers
}
