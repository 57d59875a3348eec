//! Macros in an expression position: one expression that prints like them.

use std::borrow::Cow;

use super::super::args::{branches, choices, decoded, dedent, divided, offset, quoted, unquote};
use super::super::node::{Form, Macro, Node, shorten, trim};
use super::super::table::{self, Target};
use super::{Writer, still};

/// Most operands of `~`; more become arguments of one call, which nests less.
const JOINED: usize = 20;

/// Most copies that `{{newline::n}}` and `{{space::n}}` print.
const COPIES: usize = 1_000;

impl<'s> Writer<'s> {
    /// Returns nodes as one expression that prints like them.
    pub(super) fn join(&mut self, nodes: Vec<Node<'s>>) -> String {
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
                Node::Verbatim(written) | Node::Rest(written) => {
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
                Node::Bare { name, written } if self.is_text(name) => {
                    self.left(name, written);
                    text.push_str(written);
                    continue;
                }
                Node::Bare { name, written } => self.bare(name, written).unwrap_or_else(|| name.to_owned()),
                Node::Macro(one) => match self.inner(*one) {
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

    /// Returns a macro inside an argument as an expression; empty if it neither prints nor does anything.
    pub(super) fn inner(&mut self, mut one: Macro<'s>) -> Result<String, Left<'s>> {
        match one.rule.target {
            Target::Else => {
                self.count(one.rule.row);
                Ok(String::new())
            }
            Target::Comment => {
                self.count(one.rule.row);
                Ok(self.done_in(&mut one).unwrap_or_default())
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
                let body = self.body(&mut one);
                let text = self.join(body);
                Ok(if one.keep { format!("({text})") } else { format!("({text}) | trim") })
            }
            _ => self.expression(one),
        }
    }

    /// Returns a macro as an expression, or its parts as an unknown macro if the arguments do not fit.
    pub(super) fn expression(&mut self, mut one: Macro<'s>) -> Result<String, Left<'s>> {
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
            Target::Time => match first.as_deref().and_then(offset) {
                Some(offset) => ("M-049", format!("now | utc_offset({offset}) | time_format")),
                None => {
                    if first.as_deref() != Some("") {
                        let message = "the time of a zone is written `UTC+2`; this is the time of the clock";
                        self.warn("time_zone_unknown", &one.name, one.at, message.to_owned());
                    }
                    ("M-049", "now | time_format('LT')".to_owned())
                }
            },
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
                if first.as_deref().is_some_and(|number| number.parse::<i64>().is_err())
                    && !one.args.is_empty()
                {
                    return Err(left(&one));
                }
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

    /// Returns the side effects of macros inside a comment as an expression that prints nothing.
    pub(super) fn done_in(&mut self, one: &mut Macro<'s>) -> Option<String> {
        let inside = one.args.drain(..).flatten().chain(one.body.take().into_iter().flatten());
        let doing: Vec<Node<'s>> = inside.filter(does).collect();
        (!doing.is_empty()).then(|| format!("st_comment({})", self.join(doing)))
    }

    pub(super) fn call_of(&mut self, name: &str, args: Vec<Vec<Node<'s>>>) -> String {
        let args: Vec<String> = args.into_iter().map(|arg| self.join(arg)).collect();
        format!("{name}({})", args.join(", "))
    }

    /// Returns the expression for `.name`, `.name = value` and the other short forms.
    pub(super) fn short(&mut self, mut nodes: Vec<Node<'s>>, global: bool) -> Option<String> {
        const SIGNS: &[&str] =
            &["++", "--", "||=", "??=", "||", "??", "+=", "-=", "==", "!=", ">=", "<=", ">", "<", "="];
        let Some(Node::Text(text)) = nodes.first_mut() else { return None };
        shorten(text, str::trim_start);
        let name = short_name(text).to_owned();
        if name.is_empty() {
            return None;
        }
        let rest = text[name.len()..].trim_start().to_owned();
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).copied();
        let takes_none = sign.is_none_or(|sign| matches!(sign, "++" | "--"));
        if takes_none && !(rest[sign.map_or(0, str::len)..].trim().is_empty() && nodes.len() == 1) {
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

/// Returns true if a node has side effects.
fn does(node: &Node<'_>) -> bool {
    match node {
        Node::Macro(one) => {
            let own = match one.rule.target {
                Target::Set | Target::SetGlobal | Target::Short | Target::Banned => true,
                Target::Call(name) => {
                    !name.contains("_get") && !name.contains("_has") && name.starts_with("st_")
                }
                _ => false,
            };
            own || one.args.iter().chain(&one.body).flatten().any(does)
        }
        Node::Unknown { inside, .. } => inside.iter().any(does),
        _ => false,
    }
}

/// Returns the name at the beginning of a short form: ASCII letters, digits, `_` and inner `-`.
pub(super) fn short_name(text: &str) -> &str {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = text.bytes().take_while(inner).count();
    let name = text[..length].trim_end_matches('-');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { "" }
}

/// Name, offset and content of a macro that is left as text.
type Left<'s> = (Cow<'s, str>, usize, Vec<Node<'s>>);
