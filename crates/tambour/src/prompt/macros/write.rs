//! Nodes to Jinja.

use std::borrow::Cow;
use std::collections::HashSet;

use super::args::{branches, choices, decoded, dedent, divided, ends_raw, offset, quoted, unquote};
use super::parse::{Form, Macro, Node, Parsed, shorten, trim};
use super::table::{self, Target};
use super::{MacroWarning, Report};
use crate::finding::clip;
use crate::prompt::jinja::{is_context, is_function};
use crate::span::Place;

/// Parts that `~` joins; more are the arguments of a call, which nest less.
const JOINED: usize = 20;

/// Copies that `{{newline::n}}` and `{{space::n}}` make at most.
const COPIES: usize = 1_000;

/// Writes what was read from `source`.
pub(super) fn write(source: &str, parsed: Parsed<'_>) -> (String, Vec<MacroWarning>, Report) {
    let mut dynamic = HashSet::new();
    changed_by_calls(&parsed.nodes, false, &mut dynamic);
    let mut writer = Writer {
        source,
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
    writer.flush(false);
    (writer.out, writer.warnings, writer.report)
}

/// Names of variables that a call changes anywhere in the text: what is set by a statement would hide their value.
fn changed_by_calls(nodes: &[Node<'_>], inner: bool, names: &mut HashSet<String>) {
    for node in nodes {
        match node {
            Node::Macro(one) => {
                let target = one.rule.target;
                let calls = match target {
                    Target::Call(call) => matches!(call, "st_add" | "st_inc" | "st_dec" | "st_delete"),
                    Target::Set => inner,
                    _ => false,
                };
                let written = match target {
                    Target::Short => one
                        .args
                        .first()
                        .and_then(|nodes| still(nodes))
                        .map(|text| text[..table::name_length(&text)].to_owned()),
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

/// The text of nodes that are nothing but text.
fn still(nodes: &[Node<'_>]) -> Option<String> {
    nodes.iter().try_fold(String::new(), |all, node| match node {
        Node::Text(text) => Some(all + text),
        _ => None,
    })
}

struct Writer<'s> {
    source: &'s str,
    out: String,
    /// Text that is not written yet, and whether it must be kept from the engine.
    literal: Vec<(String, bool)>,
    names: HashSet<&'s str>,
    dynamic: HashSet<String>,
    /// Variables that statements before have set.
    defined: HashSet<String>,
    /// Conditions around the present place.
    branches: usize,
    warnings: Vec<MacroWarning>,
    /// Where the last warning stood.
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

    /// Writes the text that waits. What the engine would read, or a second migration change, goes into raw blocks.
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
            // Before the brace of a tag these would be marks of their own.
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
        // Macros come in order, but for those that turn out to be none.
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
        if self.warnings.len() < super::WARNINGS {
            self.warn(
                "macro_unknown",
                name,
                at,
                format!("`{}` is no macro that is known; it stays as text", clip(name, 60)),
            );
        }
    }

    /// Nodes where text is written.
    fn nodes(&mut self, nodes: Vec<Node<'s>>, protect: bool) {
        for node in nodes {
            match node {
                Node::Text(text) => self.text(&text, protect),
                Node::Jinja(written, _) | Node::Verbatim(written) => self.tag(written),
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
                Node::Macro(one) => self.one(one),
            }
        }
    }

    /// The expression for a bare name; nothing if it is a variable of Jinja and stays.
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

    /// A macro where text is written.
    fn one(&mut self, mut one: Macro<'s>) {
        let row = one.rule.row;
        match one.rule.target {
            Target::If => self.condition(one),
            Target::Else => {
                // It divides nothing.
                self.unknown("else", one.at);
                self.text(one.written, true);
            }
            Target::Comment => {
                self.count(row);
                let text = still(one.args.first().map(Vec::as_slice).unwrap_or_default()).unwrap_or_default();
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
                self.tag("{% filter trim %}");
                let body = one.body.take().unwrap_or_default();
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

    /// A macro that is an expression.
    fn call(&mut self, mut one: Macro<'s>) {
        if one.body.as_ref().is_some_and(|body| body.iter().any(|node| matches!(node, Node::Verbatim(_)))) {
            // A body with statements is captured first.
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

    /// Nodes within a statement: what is set there need not have been.
    fn inside(&mut self, nodes: Vec<Node<'s>>) {
        self.branches += 1;
        self.nodes(nodes, false);
        self.branches -= 1;
    }

    /// The body of a scoped macro, as it counts: without the white space around it and its indentation, unless `#` keeps it.
    fn body(&self, one: &mut Macro<'s>) -> Vec<Node<'s>> {
        let mut body = one.body.take().unwrap_or_default();
        if !one.keep {
            dedent(&mut body);
        }
        body
    }

    fn condition(&mut self, mut one: Macro<'s>) {
        self.count(if one.keep { "M-015" } else { "M-006" });
        let keep = one.keep;
        let (mut then, mut otherwise) = branches(&mut one);
        let test = self.test(&mut one);
        if !keep {
            dedent(&mut then);
            otherwise.iter_mut().for_each(dedent);
        }
        self.tag(&format!("{{% if {test} %}}"));
        self.inside(then);
        if let Some(otherwise) = otherwise {
            self.tag("{% else %}");
            self.inside(otherwise);
        }
        self.tag("{% endif %}");
    }

    /// The test of a condition.
    fn test(&mut self, one: &mut Macro<'s>) -> String {
        let mut test = std::mem::take(&mut one.args[0]);
        let mut negated = false;
        if let Some(Node::Text(text)) = test.first_mut() {
            while text.starts_with('!') {
                negated = !negated;
                shorten(text, |text| text[1..].trim_start());
            }
        }
        trim(&mut test);
        let word = still(&test);
        let holds = match word {
            Some(word) => self.word(&word, one),
            None => format!("st_if({})", self.join(test)),
        };
        if negated { format!("not {holds}") } else { holds }
    }

    /// The test of a word without braces: a short form, a macro, a variable, else the word itself.
    fn word(&mut self, word: &str, one: &Macro<'_>) -> String {
        let call = |prefix: &str, name: &str| format!("st_if({prefix}({}))", quoted(name, '\''));
        if let Some(name) = word.strip_prefix('.').filter(|name| table::name_length(name) == name.len()) {
            return call("st_get", name);
        }
        if let Some(name) = word.strip_prefix('$').filter(|name| table::name_length(name) == name.len()) {
            return call("st_get_global", name);
        }
        if let Some(Target::Expression(expression)) = table::find(word).map(|rule| rule.target) {
            return format!("st_if({expression})");
        }
        if one.keep {
            return format!("st_test({})", quoted(word, '\''));
        }
        let full = self.warnings.len() >= super::WARNINGS;
        let constant =
            full || ["", "true", "false", "on", "off"].iter().any(|known| word.eq_ignore_ascii_case(known));
        if table::is_name(word) && !constant {
            let message =
                format!("`{}` in a condition is a word, not a variable, and always true", clip(word, 60));
            self.warn("condition_literal", word, one.at, message);
        }
        format!("st_if({})", quoted(word, '\''))
    }

    /// `setvar`: a statement where it can be one.
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

    /// An expression that gives nodes as text, whatever they are.
    fn as_text(&mut self, nodes: Vec<Node<'s>>) -> String {
        let single = nodes.len() == 1;
        let joined = self.join(nodes);
        if single { format!("st_text({joined})") } else { joined }
    }

    /// The argument at a place, or the body in its stead, as a text.
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

    /// Nodes as one expression whose value prints as they do.
    fn join(&mut self, nodes: Vec<Node<'s>>) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut text = String::new();
        self.parts(nodes, &mut parts, &mut text);
        if !text.is_empty() || parts.is_empty() {
            parts.push(quoted(&text, '\''));
        }
        if parts.len() <= JOINED { parts.join(" ~ ") } else { format!("st_text({})", parts.join(", ")) }
    }

    fn parts(&mut self, nodes: Vec<Node<'s>>, parts: &mut Vec<String>, text: &mut String) {
        for node in nodes {
            let part = match node {
                Node::Text(piece) => {
                    text.push_str(&piece);
                    continue;
                }
                Node::Verbatim(written) => {
                    text.push_str(written);
                    continue;
                }
                Node::Unknown { name, at, inside } => {
                    self.unknown(&name, at);
                    text.push_str("{{");
                    self.parts(inside, parts, text);
                    text.push_str("}}");
                    continue;
                }
                Node::Jinja(_, "_body") => "_body".to_owned(),
                Node::Jinja(_, inside) => format!("({})", inside.trim()),
                Node::Bare { name, written } => self.bare(name, written).unwrap_or_else(|| name.to_owned()),
                Node::Macro(one) => match self.inner(one) {
                    Ok(part) => part,
                    Err((name, at, inside)) => {
                        self.unknown(&name, at);
                        text.push_str("{{");
                        self.parts(inside, parts, text);
                        text.push_str("}}");
                        continue;
                    }
                },
            };
            if part.is_empty() {
                continue;
            }
            if !text.is_empty() {
                parts.push(quoted(text, '\''));
                text.clear();
            }
            parts.push(part);
        }
    }

    /// A macro within an argument, as an expression; nothing for those that print nothing and do nothing.
    fn inner(&mut self, mut one: Macro<'s>) -> Result<String, Left<'s>> {
        match one.rule.target {
            Target::Else | Target::Comment => {
                self.count(one.rule.row);
                Ok(String::new())
            }
            Target::Noop => {
                self.count(one.rule.row);
                Ok("st_noop()".to_owned())
            }
            Target::If => {
                self.count(if one.keep { "M-015" } else { "M-006" });
                let keep = one.keep;
                let (mut then, mut otherwise) = branches(&mut one);
                let test = self.test(&mut one);
                if !keep {
                    dedent(&mut then);
                    otherwise.iter_mut().for_each(dedent);
                }
                let then = self.join(then);
                let otherwise = self.join(otherwise.unwrap_or_default());
                Ok(format!("({then} if {test} else {otherwise})"))
            }
            Target::Trim if one.body.is_some() => {
                self.count(one.rule.row);
                let body = one.body.take().unwrap_or_default();
                Ok(format!("({}) | trim", self.join(body)))
            }
            _ => self.expression(one),
        }
    }

    /// A macro as an expression; what it consists of if it is none after all.
    fn expression(&mut self, mut one: Macro<'s>) -> Result<String, Left<'s>> {
        if one.body.is_some() {
            let body = self.body(&mut one);
            one.args.push(body);
        }
        let left = |one: &Macro<'s>| -> Left<'s> {
            let inside = one.written.get(2..one.written.len().saturating_sub(2)).unwrap_or_default();
            (one.name.clone(), one.at, vec![Node::Text(Cow::Borrowed(inside))])
        };
        let first = one.args.first().and_then(|nodes| still(nodes));
        let (row, expression) = match one.rule.target {
            Target::Expression(expression) => (one.rule.row, expression.to_owned()),
            Target::Call("st_get_global") if first.as_deref().is_some_and(table::is_name) => {
                (one.rule.row, format!("global_state.{}", first.unwrap_or_default()))
            }
            Target::Call(name) => (one.rule.row, self.call_of(name, std::mem::take(&mut one.args))),
            Target::Set => (one.rule.row, self.call_of("st_set", std::mem::take(&mut one.args))),
            Target::SetGlobal => (one.rule.row, self.call_of("st_set_global", std::mem::take(&mut one.args))),
            Target::Time if one.args.is_empty() => ("M-043", "now | time_format('LT')".to_owned()),
            Target::Time => {
                let offset = first.as_deref().and_then(offset).ok_or_else(|| left(&one))?;
                ("M-049", format!("now | utc_offset({offset}) | time_format"))
            }
            Target::Format => {
                let pattern = self.join(one.args.pop().unwrap_or_default());
                (one.rule.row, format!("now | date_format({pattern})"))
            }
            Target::Newline | Target::Space => {
                let count = match &first {
                    None => Some(1),
                    Some(count) => count.parse::<usize>().ok().filter(|count| *count <= COPIES),
                };
                let unit = if one.rule.target == Target::Newline { "\n" } else { " " };
                let count = count
                    .filter(|_| one.args.len() == usize::from(first.is_some()))
                    .ok_or_else(|| left(&one))?;
                (one.rule.row, quoted(&unit.repeat(count), '\''))
            }
            Target::Trim => (one.rule.row, "st_trim()".to_owned()),
            Target::Reverse => {
                let text = self.join(one.args.pop().unwrap_or_default());
                let simple = text.starts_with('\'') && !text.contains(" ~ ");
                (
                    one.rule.row,
                    if simple { format!("{text} | reverse") } else { format!("({text}) | reverse") },
                )
            }
            Target::Banned => {
                let mut word = one.args.pop().unwrap_or_default();
                unquote(&mut word);
                (one.rule.row, format!("st_banned({})", self.join(word)))
            }
            Target::Greeting => {
                let number = match one.args.pop() {
                    Some(number) => self.join(number),
                    None => "'0'".to_owned(),
                };
                (one.rule.row, format!("st_greeting(char, {number})"))
            }
            Target::Scoped { scope, yaml } => {
                let path = self.join(one.args.pop().map(decoded).unwrap_or_default());
                let name = if yaml { "st_yaml" } else { "st_scope" };
                (one.rule.row, format!("{name}('{scope}', {path})"))
            }
            Target::Random | Target::Pick => {
                let comma = one.form == Form::Single && !divided(&one.args)
                    || one.args.len() == 1 && !divided(&one.args);
                let args = std::mem::take(&mut one.args);
                let items = choices(args, comma);
                let items: Vec<String> = items.into_iter().map(|item| self.join(item)).collect();
                let (name, row) = match one.rule.target {
                    Target::Pick => ("pick", "M-068"),
                    _ if comma => ("random", "M-066"),
                    _ => ("random", "M-067"),
                };
                (row, format!("{name}([{}])", items.join(", ")))
            }
            Target::Short => {
                let global = one.name == "$";
                let args = one.args.pop().unwrap_or_default();
                let written = one.clone();
                (one.rule.row, self.short(args, global).ok_or_else(|| left(&written))?)
            }
            Target::If | Target::Else | Target::Comment | Target::Noop => return Err(left(&one)),
        };
        self.count(row);
        Ok(expression)
    }

    fn call_of(&mut self, name: &str, args: Vec<Vec<Node<'s>>>) -> String {
        let args: Vec<String> = args.into_iter().map(|arg| self.join(arg)).collect();
        format!("{name}({})", args.join(", "))
    }

    /// `.name`, `.name = value` and the other short forms.
    fn short(&mut self, mut nodes: Vec<Node<'s>>, global: bool) -> Option<String> {
        const SIGNS: &[&str] =
            &["++", "--", "||=", "??=", "||", "??", "+=", "-=", "==", "!=", ">=", "<=", ">", "<", "="];
        let Some(Node::Text(text)) = nodes.first_mut() else { return None };
        let ascii = text
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            .count();
        // Two of them are a sign, and one at the end is no part of a name.
        let length = text[..ascii].find("--").unwrap_or(ascii);
        let name = text[..length].trim_end_matches('-').to_owned();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let rest = text[name.len()..].trim_start().to_owned();
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).copied();
        if sign.is_none() && !(rest.is_empty() && nodes.len() == 1) {
            return None;
        }
        nodes[0] = Node::Text(Cow::Owned(rest[sign.map_or(0, str::len)..].to_owned()));
        trim(&mut nodes);
        let ending = if global { "_global" } else { "" };
        let quoted_name = quoted(&name, '\'');
        let get = format!("st_get{ending}({quoted_name})");
        let has = format!("st_has{ending}({quoted_name})");
        let value = |writer: &mut Self, nodes| writer.join(nodes);
        Some(match sign {
            None => get,
            Some("++") => format!("st_inc{ending}({quoted_name})"),
            Some("--") => format!("st_dec{ending}({quoted_name})"),
            Some("=") => format!("st_set{ending}({quoted_name}, {})", value(self, nodes)),
            Some("+=") => format!("st_add{ending}({quoted_name}, {})", value(self, nodes)),
            Some("-=") => format!("st_add{ending}({quoted_name}, {}, -1)", value(self, nodes)),
            Some("||") => format!("({get} if st_if({get}) else {})", value(self, nodes)),
            Some("??") => format!("({get} if {has} else {})", value(self, nodes)),
            Some(sign @ ("||=" | "??=")) => {
                let test = if sign == "||=" { format!("st_if({get})") } else { has };
                let set = format!("st_set{ending}({quoted_name}, {})", value(self, nodes));
                format!("({get} if {test} else {set} ~ {get})")
            }
            Some(sign) => format!("st_compare({get}, '{sign}', {})", value(self, nodes)),
        })
    }
}

/// Name, place and inside of a macro that is none.
type Left<'s> = (Cow<'s, str>, usize, Vec<Node<'s>>);
