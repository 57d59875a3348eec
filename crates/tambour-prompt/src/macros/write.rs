//! Writes nodes as Jinja.

mod condition;
mod expression;

use std::collections::HashSet;

use super::args::{dedent, ends_raw, quoted};
use super::node::{Macro, Node};
use super::parse::{NODES, Parsed};
use super::table::{self, Target};
use super::{MacroWarning, Report};
use crate::jinja::{is_context, is_filter, is_function};
use tambour::finding::clip;
use tambour::span::Place;

/// Writes the nodes of `parsed` as Jinja. Returns the template, warnings and counts.
pub(super) fn write(source: &str, parsed: Parsed<'_>) -> (String, Vec<MacroWarning>, Report) {
    let mut dynamic = HashSet::new();
    changed_by_calls(&parsed.nodes, false, &mut dynamic);
    let mut writer = Writer {
        source,
        foreign: parsed.foreign,
        out: String::with_capacity(source.len() + source.len() / 2),
        literal: Vec::new(),
        names: parsed.names,
        dynamic,
        defined: HashSet::new(),
        branches: 0,
        warnings: Vec::new(),
        place: Place::START,
        report: Report::default(),
    };
    writer.nodes(parsed.nodes, false);
    if let Some(at) = parsed.over {
        let message =
            format!("the text has more than {NODES} macros and escapes, and stays as it was written");
        writer.warn("macro_limit", "", at, message);
    }
    writer.flush(false);
    (writer.out, writer.warnings, writer.report)
}

/// Collects the variables that a call changes anywhere in the text. A `set` statement would hide their value.
fn changed_by_calls(nodes: &[Node<'_>], inner: bool, names: &mut HashSet<String>) {
    for node in nodes {
        match node {
            Node::Macro(one) => {
                let target = one.rule.target;
                let calls = match target {
                    Target::Call(call) => {
                        matches!(call, "st_add" | "st_inc" | "st_dec" | "st_delete" | "st_set_key")
                    }
                    Target::Set => inner,
                    _ => false,
                };
                let written = match target {
                    Target::Short => one
                        .args
                        .first()
                        .and_then(|nodes| still(nodes))
                        .map(|text| expression::short_name(text.trim_start()).to_owned()),
                    _ if calls => one.args.first().and_then(|nodes| still(nodes)),
                    _ => None,
                };
                names.extend(written);
                one.args.iter().for_each(|arg| changed_by_calls(arg, true, names));
                if let Some(body) = &one.body {
                    changed_by_calls(body, inner || target != Target::If, names);
                }
            }
            Node::Unknown { inside, .. } => changed_by_calls(inside, true, names),
            _ => {}
        }
    }
}

/// Returns the text of nodes that consist only of text.
fn still(nodes: &[Node<'_>]) -> Option<String> {
    nodes.iter().try_fold(String::new(), |all, node| match node {
        Node::Text(text) => Some(all + text),
        _ => None,
    })
}

struct Writer<'s> {
    source: &'s str,
    /// True if nothing in the text is Jinja.
    foreign: bool,
    out: String,
    /// Pending text, each part with whether it must be hidden from the engine.
    literal: Vec<(String, bool)>,
    names: HashSet<&'s str>,
    dynamic: HashSet<String>,
    /// Variables that earlier statements have set.
    defined: HashSet<String>,
    /// Number of conditions around the current place.
    branches: usize,
    warnings: Vec<MacroWarning>,
    /// Position of the last warning.
    place: Place,
    report: Report,
}

impl<'s> Writer<'s> {
    fn text(&mut self, text: &str, protect: bool) {
        match self.literal.last_mut() {
            Some((last, same)) if *same == protect => last.push_str(text),
            _ => self.literal.push((text.to_owned(), protect)),
        }
    }

    fn tag(&mut self, tag: &str) {
        self.flush(true);
        self.out.push_str(tag);
    }

    fn output(&mut self, expression: &str) {
        self.tag(&format!("{{{{ {expression} }}}}"));
    }

    /// Writes the pending text. Parts that the engine would interpret, or that a second migration would
    /// change, go into raw blocks.
    fn flush(&mut self, tag_follows: bool) {
        let mut text = String::new();
        let mut guarded: Vec<(usize, usize)> = Vec::new();
        for (piece, protect) in std::mem::take(&mut self.literal) {
            if protect {
                guarded.push((text.len(), text.len() + piece.len()));
            }
            text.push_str(&piece);
        }
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'{', b'\\', rest)) {
            let start = at + found;
            let next = bytes.get(start + 1);
            let end = match (bytes[start], next) {
                (b'\\', Some(b'{' | b'}')) => start + 2,
                (b'{', Some(b'{' | b'%' | b'#')) => {
                    let run = start + bytes[start..].iter().take_while(|byte| **byte == b'{').count();
                    run + usize::from(matches!(bytes.get(run), Some(b'%' | b'#')))
                }
                (b'{' | b'\\', None) if tag_follows => start + 1,
                _ => {
                    at = start + 1;
                    continue;
                }
            };
            guarded.push((start, end));
            at = end;
        }
        guarded.sort_unstable();
        let mut done = 0;
        let mut ranges = guarded.into_iter().peekable();
        while let Some((start, mut end)) = ranges.next() {
            while let Some((_, more)) = ranges.next_if(|(next, _)| *next <= end) {
                end = end.max(more);
            }
            // Before the brace of a tag, these characters would form a delimiter.
            let start = done + text[done..start].trim_end_matches(['\\', '{']).len();
            self.out.push_str(&text[done..start]);
            let kept = &text[start..end];
            if ends_raw(kept) {
                self.out.push_str(&format!("{{{{ {} }}}}", quoted(kept, '"')));
            } else {
                self.out.push_str(&format!("{{% raw %}}{kept}{{% endraw %}}"));
            }
            done = end;
        }
        self.out.push_str(&text[done..]);
    }

    fn count(&mut self, row: &'static str) {
        self.report.translated += 1;
        *self.report.rules.entry(row).or_default() += 1;
    }

    fn warn(&mut self, code: &'static str, name: &str, at: usize, message: String) {
        if self.warnings.len() >= super::WARNINGS {
            return;
        }
        // Warnings come in order, except for macros that turn out to be unknown.
        if at < self.place.offset {
            self.place = Place::START;
        }
        self.place.advance(&self.source[self.place.offset..at]);
        let place = self.place;
        let name = clip(name, 60).into_owned();
        self.warnings.push(MacroWarning { code, name, line: place.line, column: place.column, message });
    }

    fn unknown(&mut self, name: &str, at: usize) {
        self.report.left += 1;
        let message = match self.filter_at(at) {
            Some(filter) => {
                let all = clip(name, 60);
                format!(
                    "`{}` is no filter that is known; `{{{{ {all} | … }}}}` stays as text",
                    clip(filter, 60)
                )
            }
            None => format!("`{}` is no macro that is known; it stays as text", clip(name, 60)),
        };
        self.warn("macro_unknown", name, at, message);
    }

    /// Returns the first unknown filter in text that looks like a Jinja output.
    fn filter_at(&self, at: usize) -> Option<&'s str> {
        let inside = self.source[at..].strip_prefix("{{").filter(|_| !self.foreign)?;
        let inside = &inside[..inside.find("}}")?];
        let mut filters = inside.split('|').skip(1).map(|part| {
            let part = part.trim_start();
            let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
            &part[..end]
        });
        filters.find(|name| !name.is_empty() && !is_filter(name))
    }

    /// Writes nodes in a text position.
    fn nodes(&mut self, nodes: Vec<Node<'s>>, protect: bool) {
        for node in nodes {
            match node {
                Node::Text(text) => self.text(&text, protect),
                Node::Rest(text) => self.text(text, true),
                Node::Jinja(written, _) | Node::Verbatim(written) => self.tag(written),
                Node::Bare { name, written } if self.is_text(name) => {
                    self.left(name, written);
                    self.text(written, true);
                }
                Node::Bare { name, written } => match self.bare(name, written) {
                    Some(expression) => self.output(&expression),
                    None => self.tag(written),
                },
                Node::Unknown { name, at, inside } => {
                    self.unknown(&name, at);
                    self.text("{{", true);
                    self.nodes(inside, true);
                    self.text("}}", true);
                }
                Node::Macro(one) => self.one(*one),
            }
        }
    }

    /// Returns true if a bare name means something to the engine but not to the program that the text comes
    /// from.
    fn is_text(&self, name: &str) -> bool {
        self.foreign && (is_context(name) || is_function(name))
    }

    /// Reports a bare name that is left as text.
    fn left(&mut self, name: &str, written: &'s str) {
        let at = (written.as_ptr() as usize).saturating_sub(self.source.as_ptr() as usize);
        self.unknown(name, if at < self.source.len() { at } else { 0 });
    }

    /// Returns the expression for a bare name; `None` if it is a Jinja variable, which is left unchanged.
    fn bare(&mut self, name: &str, written: &str) -> Option<String> {
        if self.names.contains(name) || is_context(name) || is_function(name) {
            return None;
        }
        self.count("M-062");
        if self.defined.contains(name) {
            return Some(name.to_owned());
        }
        let simple = written.len() == name.len() + 4;
        let quoted_name = quoted(name, '\'');
        Some(match simple {
            true => format!("st_bare({quoted_name})"),
            false => format!("st_bare({quoted_name}, {})", quoted(written, '\'')),
        })
    }

    /// Writes a macro in a text position.
    fn one(&mut self, mut one: Macro<'s>) {
        let row = one.rule.row;
        match one.rule.target {
            Target::If => self.condition(one),
            Target::Else => {
                // An `else` outside of a condition prints nothing.
                self.count(row);
                self.warn(
                    "macro_unknown",
                    "else",
                    one.at,
                    "`else` stands in no condition; it prints nothing".to_owned(),
                );
            }
            Target::Comment => {
                self.count(row);
                let text = one.args.first().or(one.body.as_ref()).map(Vec::as_slice).unwrap_or_default();
                let text = still(text).unwrap_or_default();
                if let Some(doing) = self.done_in(&mut one) {
                    return self.output(&doing);
                }
                let text: Vec<&str> = text.split_whitespace().collect();
                let text = text.join(" ");
                let safe =
                    !text.contains("#}") && !text.contains("{#") && !text.is_empty() && text != "no-op";
                self.tag(&if safe { format!("{{# {text} #}}") } else { "{# #}".to_owned() });
            }
            Target::Noop => {
                self.count(row);
                self.tag("{# no-op #}");
            }
            Target::Trim if one.body.is_some() => {
                self.count(row);
                let body = self.body(&mut one);
                if one.keep {
                    return self.nodes(body, false);
                }
                self.tag("{% filter trim %}");
                self.inside(body);
                self.tag("{% endfilter %}");
            }
            Target::Set => self.set(one),
            Target::SetGlobal => {
                let name = one.args.first().and_then(|name| still(name)).filter(|name| table::is_name(name));
                let Some(name) = name else { return self.call(one) };
                self.count(row);
                let value = self.last_argument(&mut one, 1);
                self.tag(&format!("{{% set_global {name} = {value} %}}"));
            }
            _ => self.call(one),
        }
    }

    /// Writes a macro that is an expression.
    fn call(&mut self, mut one: Macro<'s>) {
        if one.body.as_ref().is_some_and(|body| body.iter().any(|node| matches!(node, Node::Verbatim(_)))) {
            // A body with statements is captured into a variable first.
            let body = self.body(&mut one);
            self.tag("{% set _body %}");
            self.inside(body);
            self.tag("{% endset %}");
            one.args.push(vec![Node::Jinja("", "_body")]);
        }
        match self.expression(one) {
            Ok(expression) => self.output(&expression),
            Err((name, at, inside)) => self.nodes(vec![Node::Unknown { name, at, inside }], false),
        }
    }

    /// Writes nodes within a statement. Variables set there may not exist afterwards.
    fn inside(&mut self, nodes: Vec<Node<'s>>) {
        self.branches += 1;
        self.nodes(nodes, false);
        self.branches -= 1;
    }

    /// Takes the body of a scoped macro, without surrounding white space and indentation unless `#` preserves
    /// them.
    fn body(&self, one: &mut Macro<'s>) -> Vec<Node<'s>> {
        let mut body = one.body.take().unwrap_or_default();
        if !one.keep {
            dedent(&mut body);
        }
        body
    }

    /// Writes `setvar`, as a statement where possible.
    fn set(&mut self, mut one: Macro<'s>) {
        let name = one.args.first().and_then(|name| still(name));
        let plain = name.filter(|name| {
            let taken =
                is_context(name) || is_function(name) || table::find(name).is_some() || name.starts_with('_');
            let word =
                matches!(&**name, "true" | "false" | "none" | "True" | "False" | "None" | "loop" | "self");
            let keyword =
                matches!(&**name, "and" | "or" | "not" | "in" | "is" | "if" | "else" | "elif" | "recursive");
            table::is_name(name) && !taken && !word && !keyword && !self.dynamic.contains(name)
        });
        let Some(name) = plain else { return self.call(one) };
        self.count(one.rule.row);
        let scoped = one.body.is_some();
        let value = if scoped { self.body(&mut one) } else { one.args.pop().unwrap_or_default() };
        let lines = value.iter().any(|node| match node {
            Node::Text(text) => text.contains('\n'),
            node => matches!(node, Node::Verbatim(_)),
        });
        if lines {
            self.tag(&format!("{{% set {name} %}}"));
            self.inside(value);
            self.tag("{% endset %}");
        } else {
            let value = match still(&value) {
                Some(text) => quoted(&text, '"'),
                None => self.as_text(value),
            };
            self.tag(&format!("{{% set {name} = {value} %}}"));
        }
        if self.branches == 0 {
            self.defined.insert(name);
        }
    }

    /// Returns an expression whose value is the nodes as text.
    fn as_text(&mut self, nodes: Vec<Node<'s>>) -> String {
        let single = nodes.len() == 1;
        let joined = self.join(nodes);
        if single { format!("st_text({joined})") } else { joined }
    }

    /// Returns an argument, or the body in its place, as a text expression.
    fn last_argument(&mut self, one: &mut Macro<'s>, at: usize) -> String {
        let nodes = match one.body {
            Some(_) => self.body(one),
            None => one.args.get_mut(at).map(std::mem::take).unwrap_or_default(),
        };
        match still(&nodes) {
            Some(text) => quoted(&text, '"'),
            None => self.as_text(nodes),
        }
    }
}
