//! Preparation of macro arguments and bodies before they are written as Jinja.

use std::borrow::Cow;

use super::node::{KnownMacro, MacroNode, shorten, split_nodes, trim_nodes};
use super::table::MacroTarget;

/// Takes the two branches of a condition: the nodes before the first `else`, and those after it if there is
/// an `else`.
pub(super) fn split_branches<'s>(
    known_macro: &mut KnownMacro<'s>,
) -> (Vec<MacroNode<'s>>, Option<Vec<MacroNode<'s>>>) {
    let body = known_macro
        .body
        .take()
        .or_else(|| (known_macro.args.len() > 1).then(|| known_macro.args.pop().unwrap_or_default()));
    let mut then_branch = body.unwrap_or_default();
    let is_else = |node: &MacroNode<'_>| matches!(node, MacroNode::Macro(known_macro) if known_macro.rule.target == MacroTarget::Else);
    let else_branch = then_branch.iter().position(is_else).map(|at| {
        let from_else = then_branch.split_off(at);
        from_else.into_iter().filter(|node| !is_else(node)).collect()
    });
    (then_branch, else_branch)
}

/// Prepares the body of a scoped macro: removes the indentation of its first line from all lines, and the
/// white space at both ends, also beyond macros that print nothing.
pub(super) fn trim_body(nodes: &mut Vec<MacroNode<'_>>) {
    dedent(nodes);
    trim_edges(nodes);
}

/// Removes white space at both ends, whether texts or macros print it. Macros that print nothing are kept,
/// and the white space beyond them is removed too.
fn trim_edges(nodes: &mut Vec<MacroNode<'_>>) {
    let mut removed_flags = vec![false; nodes.len()];
    for is_forward in [true, false] {
        for step in 0..nodes.len() {
            let at = if is_forward { step } else { nodes.len() - 1 - step };
            match &mut nodes[at] {
                MacroNode::Text(text) => {
                    shorten(text, if is_forward { str::trim_start } else { str::trim_end });
                    removed_flags[at] = text.is_empty();
                    if !text.is_empty() {
                        break;
                    }
                }
                MacroNode::Macro(known_macro)
                    if matches!(known_macro.rule.target, MacroTarget::Newline | MacroTarget::Space) =>
                {
                    removed_flags[at] = true;
                }
                MacroNode::Macro(known_macro) if is_silent(known_macro.rule.target) => {}
                _ => break,
            }
        }
    }
    let mut removed_flags = removed_flags.into_iter();
    nodes.retain(|_| !removed_flags.next().unwrap_or(false));
}

/// Returns true if a macro prints nothing.
fn is_silent(target: MacroTarget) -> bool {
    match target {
        MacroTarget::Set
        | MacroTarget::SetGlobal
        | MacroTarget::Comment
        | MacroTarget::Noop
        | MacroTarget::Banned => true,
        MacroTarget::Call(name) => {
            name.starts_with("st_add") || name.starts_with("st_delete") || name.starts_with("st_set")
        }
        _ => false,
    }
}

/// Removes the white space around nodes, and the indentation of their first line from all lines.
fn dedent(nodes: &mut Vec<MacroNode<'_>>) {
    let Some(MacroNode::Text(first)) = nodes.first() else {
        return trim_nodes(nodes);
    };
    let blank_len = first.len() - first.trim_start().len();
    let start = first[..blank_len].rfind('\n').map_or(0, |at| at + 1);
    let indent = first[start..blank_len].to_owned();
    trim_nodes(nodes);
    if indent.is_empty() {
        return;
    }
    for node in nodes {
        let MacroNode::Text(text) = node else { continue };
        if !text.contains('\n') {
            continue;
        }
        let mut lines = text.split('\n');
        let mut out = lines.next().unwrap_or_default().to_owned();
        for line in lines {
            let blank_len = line.len() - line.trim_start_matches([' ', '\t']).len();
            out.push('\n');
            out.push_str(&line[blank_len.min(indent.len())..]);
        }
        *text = Cow::Owned(out);
    }
}

/// Returns true if the arguments of a choice are separated by `::`.
pub(super) fn has_double_colon(args: &[Vec<MacroNode<'_>>]) -> bool {
    args.iter().flatten().any(|node| matches!(node, MacroNode::Text(text) if text.contains("::")))
        || args.len() > 1
}

/// Returns the items of a choice, trimmed. A single argument is split at commas if `has_commas` is set, else
/// at `::`.
pub(super) fn split_choices(mut args: Vec<Vec<MacroNode<'_>>>, has_commas: bool) -> Vec<Vec<MacroNode<'_>>> {
    if args.len() == 1 {
        let single_arg = args.pop().unwrap_or_default();
        args = if has_commas { split_at_commas(single_arg) } else { split_nodes(single_arg, "::") };
    }
    args.iter_mut().for_each(trim_nodes);
    args
}

/// Splits at commas; `\,` is a literal comma.
pub(super) fn split_at_commas(nodes: Vec<MacroNode<'_>>) -> Vec<Vec<MacroNode<'_>>> {
    // Stands for a literal comma while the text is split.
    const COMMA_MARK: &str = "\u{1}";
    let marked_nodes = nodes.into_iter().map(|node| match node {
        MacroNode::Text(text) if text.contains("\\,") => {
            MacroNode::Text(Cow::Owned(text.replace("\\,", COMMA_MARK)))
        }
        node => node,
    });
    let mut items = split_nodes(marked_nodes.collect(), ",");
    for node in items.iter_mut().flatten() {
        if let MacroNode::Text(Cow::Owned(text)) = node {
            *text = text.replace(COMMA_MARK, ",");
        }
    }
    items
}

/// Returns the offset in hours that `UTC+2` names; `None` if the text has another form.
pub(super) fn parse_utc_offset(text: &str) -> Option<i32> {
    let offset_text = text.get(..3).filter(|utc| utc.eq_ignore_ascii_case("utc")).map(|_| &text[3..])?;
    let has_sign = offset_text.starts_with(['+', '-']);
    let digits = &offset_text[usize::from(has_sign)..];
    (has_sign && digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| offset_text.parse().ok())?
}

/// Removes the double quotes around a word, which may consist of several nodes.
pub(super) fn unquote(nodes: &mut [MacroNode<'_>]) {
    let count = nodes.len();
    if let Some(MacroNode::Text(text)) = nodes.first_mut()
        && text.starts_with('"')
    {
        let is_whole = count == 1 && text.len() > 1 && text.ends_with('"');
        shorten(text, |text| if is_whole { &text[1..text.len() - 1] } else { &text[1..] });
        if is_whole {
            return;
        }
    }
    if let Some(MacroNode::Text(text)) = nodes.last_mut().filter(|_| count > 1) {
        shorten(text, |text| text.strip_suffix('"').unwrap_or(text));
    }
}

/// Decodes HTML entities in the path of a variable.
pub(super) fn decode_entities(mut nodes: Vec<MacroNode<'_>>) -> Vec<MacroNode<'_>> {
    for node in &mut nodes {
        if let MacroNode::Text(text) = node
            && text.contains('&')
        {
            let decoded = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            *text = Cow::Owned(decoded.replace("&#39;", "'").replace("&apos;", "'").replace("&amp;", "&"));
        }
    }
    nodes
}

/// Returns true if a text contains a tag that would end a raw block.
pub(super) fn ends_raw(text: &str) -> bool {
    text.match_indices("{%").any(|(at, _)| {
        let tag = text[at + 2..].trim_start_matches(['-', '+']).trim_start();
        tag.starts_with("endraw")
    })
}

/// Returns a text as a Jinja string literal.
pub(super) fn quote_literal(text: &str, quote: char) -> String {
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
