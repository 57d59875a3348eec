//! Writing of macros in an expression position, as one expression that prints the same.

use std::borrow::Cow;

use super::super::args::{
    decode_entities, has_double_colon, parse_utc_offset, quote_literal, split_branches, split_choices,
    trim_body, unquote,
};
use super::super::node::{ArgumentSeparator, KnownMacro, MacroNode, shorten, trim_nodes};
use super::super::table::{self, MacroTarget};
use super::{JinjaWriter, literal_text};

/// Maximum number of operands that `~` joins; more become arguments of one call, which nests less.
const MAX_JOINED: usize = 20;

/// Maximum number of copies that `{{newline::n}}` and `{{space::n}}` print.
const MAX_COPIES: usize = 1_000;

impl<'s> JinjaWriter<'s> {
    /// Returns nodes as one expression that prints the same as they do.
    pub(super) fn join_expression(&mut self, nodes: Vec<MacroNode<'s>>) -> String {
        let mut operands: Vec<String> = Vec::new();
        let mut text = String::new();
        self.collect_operands(nodes, &mut operands, &mut text);
        if !text.is_empty() || operands.is_empty() {
            operands.push(quote_literal(&text, '\''));
        }
        if operands.len() <= MAX_JOINED {
            operands.join(" ~ ")
        } else {
            format!("st_text({})", operands.join(", "))
        }
    }

    /// Adds the operands of nodes to `operands`. `text` is the literal text after the last of them.
    fn collect_operands(&mut self, nodes: Vec<MacroNode<'s>>, operands: &mut Vec<String>, text: &mut String) {
        for node in nodes {
            let operand = match node {
                MacroNode::Text(piece) => {
                    text.push_str(&piece);
                    continue;
                }
                MacroNode::Verbatim(source) | MacroNode::Unparsed(source) => {
                    text.push_str(source);
                    continue;
                }
                MacroNode::Unknown { name, at, inner_nodes } => {
                    self.report_unknown(&name, at);
                    text.push_str("{{");
                    self.collect_operands(inner_nodes, operands, text);
                    text.push_str("}}");
                    continue;
                }
                // The variable in which a body was captured.
                MacroNode::Jinja(_, "_body") => "_body".to_owned(),
                MacroNode::Jinja(_, expression) => format!("({})", expression.trim()),
                MacroNode::BareName { name, source } if self.is_engine_name(name) => {
                    self.report_engine_name(name, source);
                    text.push_str(source);
                    continue;
                }
                MacroNode::BareName { name, source } => {
                    self.bare_expression(name, source).unwrap_or_else(|| name.to_owned())
                }
                MacroNode::Macro(known_macro) => match self.inner_expression(*known_macro) {
                    Ok(operand) => operand,
                    Err((name, at, inner_nodes)) => {
                        self.report_unknown(&name, at);
                        text.push_str("{{");
                        self.collect_operands(inner_nodes, operands, text);
                        text.push_str("}}");
                        continue;
                    }
                },
            };
            if operand.is_empty() {
                continue;
            }
            if !text.is_empty() {
                operands.push(quote_literal(text, '\''));
                text.clear();
            }
            operands.push(operand);
        }
    }

    /// Returns a macro inside an argument as an expression; empty if it neither prints nor does anything.
    pub(super) fn inner_expression(
        &mut self,
        mut known_macro: KnownMacro<'s>,
    ) -> Result<String, UnknownMacro<'s>> {
        match known_macro.rule.target {
            MacroTarget::Else => {
                self.count_rule(known_macro.rule.row);
                Ok(String::new())
            }
            MacroTarget::Comment => {
                self.count_rule(known_macro.rule.row);
                Ok(self.side_effects(&mut known_macro).unwrap_or_default())
            }
            MacroTarget::Noop => {
                self.count_rule(known_macro.rule.row);
                Ok("st_noop()".to_owned())
            }
            MacroTarget::If => {
                self.count_rule(if known_macro.keeps_white_space { "M-015" } else { "M-006" });
                let keeps_white_space = known_macro.keeps_white_space;
                let (mut then_branch, mut else_branch) = split_branches(&mut known_macro);
                let test = self.test_expression(&mut known_macro);
                if !keeps_white_space {
                    trim_body(&mut then_branch);
                    else_branch.iter_mut().for_each(trim_body);
                }
                let then_branch = self.join_expression(then_branch);
                let else_branch = self.join_expression(else_branch.unwrap_or_default());
                Ok(format!("({then_branch} if {test} else {else_branch})"))
            }
            MacroTarget::Trim if known_macro.body.is_some() => {
                self.count_rule(known_macro.rule.row);
                let body = self.take_body(&mut known_macro);
                let text = self.join_expression(body);
                Ok(if known_macro.keeps_white_space {
                    format!("({text})")
                } else {
                    format!("({text}) | trim")
                })
            }
            _ => self.macro_expression(known_macro),
        }
    }

    /// Returns a macro as an expression, or its parts as an unknown macro if the arguments do not fit.
    pub(super) fn macro_expression(
        &mut self,
        mut known_macro: KnownMacro<'s>,
    ) -> Result<String, UnknownMacro<'s>> {
        if known_macro.body.is_some() {
            let body = self.take_body(&mut known_macro);
            known_macro.args.push(body);
        }
        let to_unknown = |known_macro: &KnownMacro<'s>| -> UnknownMacro<'s> {
            let content =
                known_macro.source.get(2..known_macro.source.len().saturating_sub(2)).unwrap_or_default();
            (known_macro.name.clone(), known_macro.offset, vec![MacroNode::Text(Cow::Borrowed(content))])
        };
        let first_text = known_macro.args.first().and_then(|nodes| literal_text(nodes));
        let (row, expression) = match known_macro.rule.target {
            MacroTarget::Expression(expression) => (known_macro.rule.row, expression.to_owned()),
            MacroTarget::Call("st_get_global") if first_text.as_deref().is_some_and(table::is_name) => {
                (known_macro.rule.row, format!("global_state.{}", first_text.unwrap_or_default()))
            }
            MacroTarget::Call(name) => {
                (known_macro.rule.row, self.call_expression(name, std::mem::take(&mut known_macro.args)))
            }
            MacroTarget::Set => {
                (known_macro.rule.row, self.call_expression("st_set", std::mem::take(&mut known_macro.args)))
            }
            MacroTarget::SetGlobal => (
                known_macro.rule.row,
                self.call_expression("st_set_global", std::mem::take(&mut known_macro.args)),
            ),
            MacroTarget::Time if known_macro.args.is_empty() => {
                ("M-043", "now | time_format('LT')".to_owned())
            }
            MacroTarget::Time => match first_text.as_deref().and_then(parse_utc_offset) {
                Some(offset) => ("M-049", format!("now | utc_offset({offset}) | time_format")),
                None => {
                    if first_text.as_deref() != Some("") {
                        let message = "the time of a zone is written `UTC+2`; this is the time of the clock";
                        self.warn(
                            "time_zone_unknown",
                            &known_macro.name,
                            known_macro.offset,
                            message.to_owned(),
                        );
                    }
                    ("M-049", "now | time_format('LT')".to_owned())
                }
            },
            MacroTarget::Format => {
                let pattern = self.join_expression(known_macro.args.pop().unwrap_or_default());
                (known_macro.rule.row, format!("now | date_format({pattern})"))
            }
            MacroTarget::Newline | MacroTarget::Space => {
                let count = match &first_text {
                    None => Some(1),
                    Some(count) => count.parse::<usize>().ok().filter(|count| *count <= MAX_COPIES),
                };
                let unit = if known_macro.rule.target == MacroTarget::Newline { "\n" } else { " " };
                // An argument that is not literal text has no count either.
                let count = count
                    .filter(|_| known_macro.args.len() == usize::from(first_text.is_some()))
                    .ok_or_else(|| to_unknown(&known_macro))?;
                (known_macro.rule.row, quote_literal(&unit.repeat(count), '\''))
            }
            MacroTarget::Trim => (known_macro.rule.row, "st_trim()".to_owned()),
            MacroTarget::Reverse => {
                let text = self.join_expression(known_macro.args.pop().unwrap_or_default());
                let is_single_literal = text.starts_with('\'') && !text.contains(" ~ ");
                (
                    known_macro.rule.row,
                    if is_single_literal {
                        format!("{text} | reverse")
                    } else {
                        format!("({text}) | reverse")
                    },
                )
            }
            MacroTarget::Banned => {
                let mut word = known_macro.args.pop().unwrap_or_default();
                unquote(&mut word);
                (known_macro.rule.row, format!("st_banned({})", self.join_expression(word)))
            }
            MacroTarget::Greeting => {
                if first_text.as_deref().is_some_and(|number| number.parse::<i64>().is_err())
                    && !known_macro.args.is_empty()
                {
                    return Err(to_unknown(&known_macro));
                }
                let number = match known_macro.args.pop() {
                    Some(number) => self.join_expression(number),
                    None => "'0'".to_owned(),
                };
                (known_macro.rule.row, format!("st_greeting(char, {number})"))
            }
            MacroTarget::ScopeVariable { scope, is_yaml } => {
                let path =
                    self.join_expression(known_macro.args.pop().map(decode_entities).unwrap_or_default());
                let name = if is_yaml { "st_yaml" } else { "st_scope" };
                (known_macro.rule.row, format!("{name}('{scope}', {path})"))
            }
            MacroTarget::Random | MacroTarget::Pick => {
                // Commas separate the choices only where no `::` does.
                let has_commas = known_macro.separator == ArgumentSeparator::Single
                    && !has_double_colon(&known_macro.args)
                    || known_macro.args.len() == 1 && !has_double_colon(&known_macro.args);
                let args = std::mem::take(&mut known_macro.args);
                let items = split_choices(args, has_commas);
                let items: Vec<String> = items.into_iter().map(|item| self.join_expression(item)).collect();
                let (name, row) = match known_macro.rule.target {
                    MacroTarget::Pick => ("pick", "M-068"),
                    _ if has_commas => ("random", "M-066"),
                    _ => ("random", "M-067"),
                };
                (row, format!("{name}([{}])", items.join(", ")))
            }
            MacroTarget::Short => {
                let is_global = known_macro.name == "$";
                let args = known_macro.args.pop().unwrap_or_default();
                let original = known_macro.clone();
                (
                    known_macro.rule.row,
                    self.short_expression(args, is_global).ok_or_else(|| to_unknown(&original))?,
                )
            }
            MacroTarget::If | MacroTarget::Else | MacroTarget::Comment | MacroTarget::Noop => {
                return Err(to_unknown(&known_macro));
            }
        };
        self.count_rule(row);
        Ok(expression)
    }

    /// Returns the side effects of macros inside a comment as an expression that prints nothing; `None` if
    /// there are none. Takes the arguments and the body.
    pub(super) fn side_effects(&mut self, known_macro: &mut KnownMacro<'s>) -> Option<String> {
        let nodes = known_macro.args.drain(..).flatten().chain(known_macro.body.take().into_iter().flatten());
        let effect_nodes: Vec<MacroNode<'s>> = nodes.filter(has_side_effects).collect();
        (!effect_nodes.is_empty()).then(|| format!("st_comment({})", self.join_expression(effect_nodes)))
    }

    /// Returns a call of a function with arguments as texts.
    pub(super) fn call_expression(&mut self, name: &str, args: Vec<Vec<MacroNode<'s>>>) -> String {
        let args: Vec<String> = args.into_iter().map(|arg| self.join_expression(arg)).collect();
        format!("{name}({})", args.join(", "))
    }

    /// Returns the expression for `.name`, `.name = value` and the other short forms, from the nodes after
    /// the `.` or `$`; `None` if these are not a valid short form.
    pub(super) fn short_expression(
        &mut self,
        mut nodes: Vec<MacroNode<'s>>,
        is_global: bool,
    ) -> Option<String> {
        // Longer operators come before those with which they begin.
        const OPERATORS: &[&str] =
            &["++", "--", "||=", "??=", "||", "??", "+=", "-=", "==", "!=", ">=", "<=", ">", "<", "="];
        let Some(MacroNode::Text(text)) = nodes.first_mut() else { return None };
        shorten(text, str::trim_start);
        let name = short_name(text).to_owned();
        if name.is_empty() {
            return None;
        }
        let after_name = text[name.len()..].trim_start().to_owned();
        let operator = OPERATORS.iter().find(|operator| after_name.starts_with(**operator)).copied();
        let after_operator = after_name[operator.map_or(0, str::len)..].to_owned();
        let has_no_operand = operator.is_none_or(|operator| matches!(operator, "++" | "--"));
        if has_no_operand && !(after_operator.trim().is_empty() && nodes.len() == 1) {
            return None;
        }
        nodes[0] = MacroNode::Text(Cow::Owned(after_operator));
        trim_nodes(&mut nodes);
        let suffix = if is_global { "_global" } else { "" };
        let quoted_name = quote_literal(&name, '\'');
        let get_call = format!("st_get{suffix}({quoted_name})");
        let has_call = format!("st_has{suffix}({quoted_name})");
        let value = |writer: &mut Self, nodes| writer.join_expression(nodes);
        Some(match operator {
            None => get_call,
            Some("++") => format!("st_inc{suffix}({quoted_name})"),
            Some("--") => format!("st_dec{suffix}({quoted_name})"),
            Some("=") => format!("st_set{suffix}({quoted_name}, {})", value(self, nodes)),
            Some("+=") => format!("st_add{suffix}({quoted_name}, {})", value(self, nodes)),
            Some("-=") => format!("st_add{suffix}({quoted_name}, {}, -1)", value(self, nodes)),
            Some("||") => format!("({get_call} if st_if({get_call}) else {})", value(self, nodes)),
            Some("??") => format!("({get_call} if {has_call} else {})", value(self, nodes)),
            Some(operator @ ("||=" | "??=")) => {
                let test = if operator == "||=" { format!("st_if({get_call})") } else { has_call };
                let set = format!("st_set{suffix}({quoted_name}, {})", value(self, nodes));
                format!("({get_call} if {test} else {set} ~ {get_call})")
            }
            Some(operator) => format!("st_compare({get_call}, '{operator}', {})", value(self, nodes)),
        })
    }
}

/// Returns true if a node, or a macro inside it, changes something.
fn has_side_effects(node: &MacroNode<'_>) -> bool {
    match node {
        MacroNode::Macro(known_macro) => {
            let is_effect = match known_macro.rule.target {
                MacroTarget::Set | MacroTarget::SetGlobal | MacroTarget::Short | MacroTarget::Banned => true,
                MacroTarget::Call(name) => {
                    !name.contains("_get") && !name.contains("_has") && name.starts_with("st_")
                }
                _ => false,
            };
            is_effect || known_macro.args.iter().chain(&known_macro.body).flatten().any(has_side_effects)
        }
        MacroNode::Unknown { inner_nodes, .. } => inner_nodes.iter().any(has_side_effects),
        _ => false,
    }
}

/// Returns the name at the beginning of a short form: ASCII letters, digits, `_` and inner `-`.
pub(super) fn short_name(text: &str) -> &str {
    let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = text.bytes().take_while(is_name_byte).count();
    let name = text[..length].trim_end_matches('-');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { "" }
}

/// Name, byte offset and content of a macro that is left as text.
type UnknownMacro<'s> = (Cow<'s, str>, usize, Vec<MacroNode<'s>>);
