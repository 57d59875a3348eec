//! Preparation of macro arguments and bodies before they are written as Jinja.

use std::borrow::Cow;

use super::node::{Macro, Node, shorten, split, trim};
use super::table::Target;

/// Splits a condition into its two branches.
pub(super) fn branches<'s>(one: &mut Macro<'s>) -> (Vec<Node<'s>>, Option<Vec<Node<'s>>>) {
    let body = one.body.take().or_else(|| (one.args.len() > 1).then(|| one.args.pop().unwrap_or_default()));
    let mut then = body.unwrap_or_default();
    let is_else = |node: &Node<'_>| matches!(node, Node::Macro(one) if one.rule.target == Target::Else);
    let otherwise = then.iter().position(is_else).map(|at| {
        let behind = then.split_off(at);
        behind.into_iter().filter(|node| !is_else(node)).collect()
    });
    (then, otherwise)
}

/// Removes the white space around nodes, and the indentation of their first line from all lines.
pub(super) fn dedent(nodes: &mut Vec<Node<'_>>) {
    unindent(nodes);
    edges(nodes);
}

/// Trims white space at both ends, past macros that print nothing and including macros that print only white
/// space.
fn edges(nodes: &mut Vec<Node<'_>>) {
    let mut gone = vec![false; nodes.len()];
    for forwards in [true, false] {
        for step in 0..nodes.len() {
            let at = if forwards { step } else { nodes.len() - 1 - step };
            match &mut nodes[at] {
                Node::Text(text) => {
                    shorten(text, if forwards { str::trim_start } else { str::trim_end });
                    gone[at] = text.is_empty();
                    if !text.is_empty() {
                        break;
                    }
                }
                Node::Macro(one) if matches!(one.rule.target, Target::Newline | Target::Space) => {
                    gone[at] = true;
                }
                Node::Macro(one) if prints_nothing(one.rule.target) => {}
                _ => break,
            }
        }
    }
    let mut gone = gone.into_iter();
    nodes.retain(|_| !gone.next().unwrap_or(false));
}

fn prints_nothing(target: Target) -> bool {
    match target {
        Target::Set | Target::SetGlobal | Target::Comment | Target::Noop | Target::Banned => true,
        Target::Call(name) => {
            name.starts_with("st_add") || name.starts_with("st_delete") || name.starts_with("st_set")
        }
        _ => false,
    }
}

/// Removes the white space around nodes, and the indentation of their first line from all lines.
fn unindent(nodes: &mut Vec<Node<'_>>) {
    let Some(Node::Text(first)) = nodes.first() else {
        return trim(nodes);
    };
    let blank = first.len() - first.trim_start().len();
    let start = first[..blank].rfind('\n').map_or(0, |at| at + 1);
    let indent = first[start..blank].to_owned();
    trim(nodes);
    if indent.is_empty() {
        return;
    }
    for node in nodes {
        let Node::Text(text) = node else { continue };
        if !text.contains('\n') {
            continue;
        }
        let mut lines = text.split('\n');
        let mut out = lines.next().unwrap_or_default().to_owned();
        for line in lines {
            let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
            out.push('\n');
            out.push_str(&line[blank.min(indent.len())..]);
        }
        *text = Cow::Owned(out);
    }
}

/// Returns true if the arguments of a choice are separated by `::`.
pub(super) fn divided(args: &[Vec<Node<'_>>]) -> bool {
    args.iter().flatten().any(|node| matches!(node, Node::Text(text) if text.contains("::")))
        || args.len() > 1
}

/// Returns the items of a choice, trimmed.
pub(super) fn choices(mut args: Vec<Vec<Node<'_>>>, comma: bool) -> Vec<Vec<Node<'_>>> {
    if args.len() == 1 {
        let one = args.pop().unwrap_or_default();
        args = if comma { by_commas(one) } else { split(one, "::") };
    }
    args.iter_mut().for_each(trim);
    args
}

/// Splits at commas; `\,` is a literal comma.
pub(super) fn by_commas(nodes: Vec<Node<'_>>) -> Vec<Vec<Node<'_>>> {
    const COMMA: &str = "\u{1}";
    let hidden = nodes.into_iter().map(|node| match node {
        Node::Text(text) if text.contains("\\,") => Node::Text(Cow::Owned(text.replace("\\,", COMMA))),
        node => node,
    });
    let mut items = split(hidden.collect(), ",");
    for node in items.iter_mut().flatten() {
        if let Node::Text(Cow::Owned(text)) = node {
            *text = text.replace(COMMA, ",");
        }
    }
    items
}

/// Returns the hour offset in `UTC+2`.
pub(super) fn offset(text: &str) -> Option<i32> {
    let behind = text.get(..3).filter(|utc| utc.eq_ignore_ascii_case("utc")).map(|_| &text[3..])?;
    let sign = behind.starts_with(['+', '-']);
    let digits = &behind[usize::from(sign)..];
    (sign && digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| behind.parse().ok())?
}

/// Removes the quotes around a word.
pub(super) fn unquote(nodes: &mut [Node<'_>]) {
    let last = nodes.len();
    if let Some(Node::Text(text)) = nodes.first_mut()
        && text.starts_with('"')
    {
        let whole = last == 1 && text.len() > 1 && text.ends_with('"');
        shorten(text, |text| if whole { &text[1..text.len() - 1] } else { &text[1..] });
        if whole {
            return;
        }
    }
    if let Some(Node::Text(text)) = nodes.last_mut().filter(|_| last > 1) {
        shorten(text, |text| text.strip_suffix('"').unwrap_or(text));
    }
}

/// Decodes HTML entities in the path of a variable.
pub(super) fn decoded(mut nodes: Vec<Node<'_>>) -> Vec<Node<'_>> {
    for node in &mut nodes {
        if let Node::Text(text) = node
            && text.contains('&')
        {
            let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            *text = Cow::Owned(plain.replace("&#39;", "'").replace("&apos;", "'").replace("&amp;", "&"));
        }
    }
    nodes
}

/// Returns true if a text would end a raw block.
pub(super) fn ends_raw(text: &str) -> bool {
    text.match_indices("{%").any(|(at, _)| {
        let rest = text[at + 2..].trim_start_matches(['-', '+']).trim_start();
        rest.starts_with("endraw")
    })
}

/// Returns a text as a Jinja string literal.
pub(super) fn quoted(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}
