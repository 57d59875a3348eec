//! Macros in an expression position: one expression that prints like them.

use std::borrow::Cow;

use super::super::args::{
    decode_entities, dedent, has_double_colon, parse_utc_offset, quote_literal, split_branches,
    split_choices, unquote,
};
use super::super::node::{ArgumentSeparator, KnownMacro, MacroNode, shorten, trim_nodes};
use super::super::table::{self, MacroTarget};
use super::{JinjaWriter, literal_text};

/// Most operands of `~`; more become arguments of one call, which nests less.
const MAX_JOINED: usize = 20;

/// Most copies that `{{newline::n}}` and `{{space::n}}` print.
const MAX_COPIES: usize = 1_000;

impl<'s> JinjaWriter<'s> {
    /// Returns nodes as one expression that prints like them.
    pub(super) fn join_expression(&mut self, nodes: Vec<MacroNode<'s>>) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut text = String::new();
        self.collect_operands(nodes, &mut parts, &mut text);
        if !text.is_empty() || parts.is_empty() {
            parts.push(quote_literal(&text, '\''));
        }
        if parts.len() <= MAX_JOINED { parts.join(" ~ ") } else { format!("st_text({})", parts.join(", ")) }
    }

    fn collect_operands(&mut self, nodes: Vec<MacroNode<'s>>, parts: &mut Vec<String>, text: &mut String) {
        for node in nodes {
            let part = match node {
                MacroNode::Text(piece) => {
                    text.push_str(&piece);
                    continue;
                }
                MacroNode::Verbatim(written) | MacroNode::Unparsed(written) => {
                    text.push_str(written);
                    continue;
                }
                MacroNode::Unknown { name, at, inside } => {
                    self.report_unknown(&name, at);
                    text.push_str("{{");
                    self.collect_operands(inside, parts, text);
                    text.push_str("}}");
                    continue;
                }
                MacroNode::Jinja(_, "_body") => "_body".to_owned(),
                MacroNode::Jinja(_, inside) => format!("({})", inside.trim()),
                MacroNode::BareName { name, written } if self.is_plain_name(name) => {
                    self.report_plain_name(name, written);
                    text.push_str(written);
                    continue;
                }
                MacroNode::BareName { name, written } => {
                    self.bare_expression(name, written).unwrap_or_else(|| name.to_owned())
                }
                MacroNode::Macro(one) => match self.inner_expression(*one) {
                    Ok(part) => part,
                    Err((name, at, inside)) => {
                        self.report_unknown(&name, at);
                        text.push_str("{{");
                        self.collect_operands(inside, parts, text);
                        text.push_str("}}");
                        continue;
                    }
                },
            };
            if part.is_empty() {
                continue;
            }
            if !text.is_empty() {
                parts.push(quote_literal(text, '\''));
                text.clear();
            }
            parts.push(part);
        }
    }

    /// Returns a macro inside an argument as an expression; empty if it neither prints nor does anything.
    pub(super) fn inner_expression(&mut self, mut one: KnownMacro<'s>) -> Result<String, UnknownMacro<'s>> {
        match one.rule.target {
            MacroTarget::Else => {
                self.count_rule(one.rule.row);
                Ok(String::new())
            }
            MacroTarget::Comment => {
                self.count_rule(one.rule.row);
                Ok(self.side_effects(&mut one).unwrap_or_default())
            }
            MacroTarget::Noop => {
                self.count_rule(one.rule.row);
                Ok("st_noop()".to_owned())
            }
            MacroTarget::If => {
                self.count_rule(if one.keeps_white_space { "M-015" } else { "M-006" });
                let keep = one.keeps_white_space;
                let (mut then, mut otherwise) = split_branches(&mut one);
                let test = self.test_expression(&mut one);
                if !keep {
                    dedent(&mut then);
                    otherwise.iter_mut().for_each(dedent);
                }
                let then = self.join_expression(then);
                let otherwise = self.join_expression(otherwise.unwrap_or_default());
                Ok(format!("({then} if {test} else {otherwise})"))
            }
            MacroTarget::Trim if one.body.is_some() => {
                self.count_rule(one.rule.row);
                let body = self.take_body(&mut one);
                let text = self.join_expression(body);
                Ok(if one.keeps_white_space { format!("({text})") } else { format!("({text}) | trim") })
            }
            _ => self.macro_expression(one),
        }
    }

    /// Returns a macro as an expression, or its parts as an unknown macro if the arguments do not fit.
    pub(super) fn macro_expression(&mut self, mut one: KnownMacro<'s>) -> Result<String, UnknownMacro<'s>> {
        if one.body.is_some() {
            let body = self.take_body(&mut one);
            one.args.push(body);
        }
        let left = |one: &KnownMacro<'s>| -> UnknownMacro<'s> {
            let inside = one.written.get(2..one.written.len().saturating_sub(2)).unwrap_or_default();
            (one.name.clone(), one.offset, vec![MacroNode::Text(Cow::Borrowed(inside))])
        };
        let first = one.args.first().and_then(|nodes| literal_text(nodes));
        let (row, expression) = match one.rule.target {
            MacroTarget::Expression(expression) => (one.rule.row, expression.to_owned()),
            MacroTarget::Call("st_get_global") if first.as_deref().is_some_and(table::is_name) => {
                (one.rule.row, format!("global_state.{}", first.unwrap_or_default()))
            }
            MacroTarget::Call(name) => {
                (one.rule.row, self.call_expression(name, std::mem::take(&mut one.args)))
            }
            MacroTarget::Set => (one.rule.row, self.call_expression("st_set", std::mem::take(&mut one.args))),
            MacroTarget::SetGlobal => {
                (one.rule.row, self.call_expression("st_set_global", std::mem::take(&mut one.args)))
            }
            MacroTarget::Time if one.args.is_empty() => ("M-043", "now | time_format('LT')".to_owned()),
            MacroTarget::Time => match first.as_deref().and_then(parse_utc_offset) {
                Some(offset) => ("M-049", format!("now | utc_offset({offset}) | time_format")),
                None => {
                    if first.as_deref() != Some("") {
                        let message = "the time of a zone is written `UTC+2`; this is the time of the clock";
                        self.warn("time_zone_unknown", &one.name, one.offset, message.to_owned());
                    }
                    ("M-049", "now | time_format('LT')".to_owned())
                }
            },
            MacroTarget::Format => {
                let pattern = self.join_expression(one.args.pop().unwrap_or_default());
                (one.rule.row, format!("now | date_format({pattern})"))
            }
            MacroTarget::Newline | MacroTarget::Space => {
                let count = match &first {
                    None => Some(1),
                    Some(count) => count.parse::<usize>().ok().filter(|count| *count <= MAX_COPIES),
                };
                let unit = if one.rule.target == MacroTarget::Newline { "\n" } else { " " };
                let count = count
                    .filter(|_| one.args.len() == usize::from(first.is_some()))
                    .ok_or_else(|| left(&one))?;
                (one.rule.row, quote_literal(&unit.repeat(count), '\''))
            }
            MacroTarget::Trim => (one.rule.row, "st_trim()".to_owned()),
            MacroTarget::Reverse => {
                let text = self.join_expression(one.args.pop().unwrap_or_default());
                let simple = text.starts_with('\'') && !text.contains(" ~ ");
                (
                    one.rule.row,
                    if simple { format!("{text} | reverse") } else { format!("({text}) | reverse") },
                )
            }
            MacroTarget::Banned => {
                let mut word = one.args.pop().unwrap_or_default();
                unquote(&mut word);
                (one.rule.row, format!("st_banned({})", self.join_expression(word)))
            }
            MacroTarget::Greeting => {
                if first.as_deref().is_some_and(|number| number.parse::<i64>().is_err())
                    && !one.args.is_empty()
                {
                    return Err(left(&one));
                }
                let number = match one.args.pop() {
                    Some(number) => self.join_expression(number),
                    None => "'0'".to_owned(),
                };
                (one.rule.row, format!("st_greeting(char, {number})"))
            }
            MacroTarget::Scoped { scope, yaml } => {
                let path = self.join_expression(one.args.pop().map(decode_entities).unwrap_or_default());
                let name = if yaml { "st_yaml" } else { "st_scope" };
                (one.rule.row, format!("{name}('{scope}', {path})"))
            }
            MacroTarget::Random | MacroTarget::Pick => {
                let comma = one.form == ArgumentSeparator::Single && !has_double_colon(&one.args)
                    || one.args.len() == 1 && !has_double_colon(&one.args);
                let args = std::mem::take(&mut one.args);
                let items = split_choices(args, comma);
                let items: Vec<String> = items.into_iter().map(|item| self.join_expression(item)).collect();
                let (name, row) = match one.rule.target {
                    MacroTarget::Pick => ("pick", "M-068"),
                    _ if comma => ("random", "M-066"),
                    _ => ("random", "M-067"),
                };
                (row, format!("{name}([{}])", items.join(", ")))
            }
            MacroTarget::Short => {
                let global = one.name == "$";
                let args = one.args.pop().unwrap_or_default();
                let written = one.clone();
                (one.rule.row, self.short_expression(args, global).ok_or_else(|| left(&written))?)
            }
            MacroTarget::If | MacroTarget::Else | MacroTarget::Comment | MacroTarget::Noop => {
                return Err(left(&one));
            }
        };
        self.count_rule(row);
        Ok(expression)
    }

    /// Returns the side effects of macros inside a comment as an expression that prints nothing.
    pub(super) fn side_effects(&mut self, one: &mut KnownMacro<'s>) -> Option<String> {
        let inside = one.args.drain(..).flatten().chain(one.body.take().into_iter().flatten());
        let doing: Vec<MacroNode<'s>> = inside.filter(has_side_effects).collect();
        (!doing.is_empty()).then(|| format!("st_comment({})", self.join_expression(doing)))
    }

    pub(super) fn call_expression(&mut self, name: &str, args: Vec<Vec<MacroNode<'s>>>) -> String {
        let args: Vec<String> = args.into_iter().map(|arg| self.join_expression(arg)).collect();
        format!("{name}({})", args.join(", "))
    }

    /// Returns the expression for `.name`, `.name = value` and the other short forms.
    pub(super) fn short_expression(&mut self, mut nodes: Vec<MacroNode<'s>>, global: bool) -> Option<String> {
        const SIGNS: &[&str] =
            &["++", "--", "||=", "??=", "||", "??", "+=", "-=", "==", "!=", ">=", "<=", ">", "<", "="];
        let Some(MacroNode::Text(text)) = nodes.first_mut() else { return None };
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
        nodes[0] = MacroNode::Text(Cow::Owned(rest[sign.map_or(0, str::len)..].to_owned()));
        trim_nodes(&mut nodes);
        let ending = if global { "_global" } else { "" };
        let quoted_name = quote_literal(&name, '\'');
        let get = format!("st_get{ending}({quoted_name})");
        let has = format!("st_has{ending}({quoted_name})");
        let value = |writer: &mut Self, nodes| writer.join_expression(nodes);
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
fn has_side_effects(node: &MacroNode<'_>) -> bool {
    match node {
        MacroNode::Macro(one) => {
            let own = match one.rule.target {
                MacroTarget::Set | MacroTarget::SetGlobal | MacroTarget::Short | MacroTarget::Banned => true,
                MacroTarget::Call(name) => {
                    !name.contains("_get") && !name.contains("_has") && name.starts_with("st_")
                }
                _ => false,
            };
            own || one.args.iter().chain(&one.body).flatten().any(has_side_effects)
        }
        MacroNode::Unknown { inside, .. } => inside.iter().any(has_side_effects),
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
type UnknownMacro<'s> = (Cow<'s, str>, usize, Vec<MacroNode<'s>>);
