//! Content between the braces of a macro: flags, name and arguments.

use std::borrow::Cow;

use super::node::{ArgumentSeparator, KnownMacro, MacroNode, split_nodes, trim_nodes};
use super::table;

/// Beginning of a macro: flags, name and the text after it.
pub(super) struct MacroHeader<'t> {
    /// True for the flag `/`.
    is_closing: bool,
    /// True for the flag `#`.
    keeps_white_space: bool,
    name: &'t str,
    /// Text after the name.
    after_name: &'t str,
}

impl<'t> MacroHeader<'t> {
    /// Reads the text after the opening braces.
    pub(super) fn read(text: &'t str) -> MacroHeader<'t> {
        let mut unread = text.trim_start();
        let (mut is_closing, mut keeps_white_space) = (false, false);
        let is_comment = |text: &str| text.starts_with("//");
        while !is_comment(unread) {
            // The flags `!?~>` of SillyTavern have no effect here.
            let Some(flag) = unread.chars().next().filter(|c| matches!(c, '/' | '#' | '!' | '?' | '~' | '>'))
            else {
                break;
            };
            is_closing |= flag == '/';
            keeps_white_space |= flag == '#';
            unread = unread[1..].trim_start();
        }
        let length = if is_comment(unread) {
            2
        } else if unread.starts_with(['.', '$']) {
            1
        } else if unread.get(..8).is_some_and(|name| table::parse_time_utc(name, &unread[8..]).is_some()) {
            // In `time_UTC-5`, the sign is not part of the name.
            8
        } else {
            table::name_len(unread)
        };
        let (name, after_name) = unread.split_at(length);
        MacroHeader { is_closing, keeps_white_space, name, after_name }
    }

    /// Returns true if the beginning identifies a known macro rather than a Jinja expression.
    pub(super) fn is_macro(&self) -> bool {
        let is_short_form =
            matches!(self.name, "." | "$") && self.after_name.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_boundary = |text: &str| text.is_empty() || text.starts_with("}}") || text.starts_with(':');
        let trimmed = self.after_name.trim_start();
        let has_space = trimmed.len() < self.after_name.len();
        let is_known = match table::find_rule(self.name) {
            // A filter or an operator after the name makes it an expression.
            Some(rule) => {
                is_boundary(trimmed)
                    || has_space && rule.max_args > 0 && !trimmed.starts_with(['|', '~', '=', '+', '*'])
            }
            // No Jinja expression begins with the `/` of a closing tag.
            None => table::parse_time_utc(self.name, self.after_name).is_some() || self.is_closing,
        };
        is_short_form || self.name == "//" || is_known
    }
}

/// Builds a macro from the nodes between its braces. `source` is the macro as written, and `at` its offset.
/// A name without a rule becomes a bare name if nothing else is between the braces. Any other content without
/// a rule, or with a wrong number of arguments, becomes an unknown macro.
pub(super) fn read_macro<'s>(mut nodes: Vec<MacroNode<'s>>, source: &'s str, at: usize) -> MacroNode<'s> {
    let first = match nodes.first() {
        Some(MacroNode::Text(Cow::Borrowed(text))) => *text,
        _ => return MacroNode::Unknown { name: Cow::Borrowed(""), at, inner_nodes: nodes },
    };
    let header = MacroHeader::read(first);
    let unknown =
        |nodes| MacroNode::Unknown { name: Cow::Owned(header.name.to_owned()), at, inner_nodes: nodes };
    if let Some(offset) = table::parse_time_utc(header.name, header.after_name).filter(|_| nodes.len() == 1) {
        let args = vec![vec![MacroNode::Text(Cow::Owned(format!("UTC{offset}")))]];
        let Some(rule) = table::find_rule("time") else { return unknown(nodes) };
        let name = Cow::Borrowed(header.name);
        return MacroNode::from(KnownMacro {
            rule,
            name,
            keeps_white_space: false,
            separator: ArgumentSeparator::Double,
            args,
            body: None,
            source,
            offset: at,
            is_closing: false,
        });
    }
    let name = header.name;
    let Some(rule) = table::find_rule(name) else {
        let is_alone = nodes.len() == 1
            && !header.is_closing
            && header.after_name.trim().is_empty()
            && table::is_name(name);
        return if is_alone { MacroNode::BareName { name, source } } else { unknown(nodes) };
    };
    // SillyTavern's lexer takes two slashes as the name, so a third one closes.
    let is_closing = header.is_closing || name == "//" && nodes.len() == 1 && header.after_name.trim() == "/";
    let has_no_arguments = nodes.len() == 1 && (is_closing || header.after_name.trim().is_empty());
    let (arguments, separator) = match header.after_name {
        _ if name == "//" && has_no_arguments => ("", ArgumentSeparator::None),
        after_name if rule.is_raw => (after_name, ArgumentSeparator::Single),
        after_name => {
            let trimmed = after_name.trim_start();
            match (trimmed.strip_prefix("::"), trimmed.strip_prefix(':')) {
                (Some(arguments), _) => (arguments, ArgumentSeparator::Double),
                (None, Some(arguments)) => (arguments, ArgumentSeparator::Single),
                _ if trimmed.is_empty() && nodes.len() == 1 => ("", ArgumentSeparator::None),
                // Letters directly after the name would be part of it. A blank, a quote or a nested macro
                // separates the name from the argument.
                _ if trimmed.len() < after_name.len()
                    || after_name.is_empty()
                    || after_name.starts_with(['"', '\'']) =>
                {
                    (trimmed, ArgumentSeparator::Single)
                }
                _ => return unknown(nodes),
            }
        }
    };
    let arg_count = match separator {
        ArgumentSeparator::None => 0,
        ArgumentSeparator::Single => 1,
        ArgumentSeparator::Double => {
            let texts = nodes.iter().skip(1).map(|node| match node {
                MacroNode::Text(text) => text.matches("::").count(),
                _ => 0,
            });
            1 + arguments.matches("::").count() + texts.sum::<usize>()
        }
    };
    // The body of a scoped form, which follows later, may take the place of the last argument.
    let is_valid = is_closing && arg_count == 0
        || !is_closing && (rule.min_args..=rule.max_args).contains(&arg_count)
        || !is_closing && rule.is_scopable && arg_count + 1 == rule.min_args;
    if !is_valid {
        return unknown(nodes);
    }
    let keeps_white_space = header.keeps_white_space;
    let name = Cow::Borrowed(name);
    nodes[0] = MacroNode::Text(Cow::Borrowed(arguments));
    let mut args = match separator {
        ArgumentSeparator::None => Vec::new(),
        ArgumentSeparator::Single => vec![nodes],
        ArgumentSeparator::Double => split_nodes(nodes, "::"),
    };
    if !rule.is_raw {
        args.iter_mut().for_each(trim_nodes);
    }
    MacroNode::from(KnownMacro {
        rule,
        name,
        keeps_white_space,
        separator,
        args,
        body: None,
        source,
        offset: at,
        is_closing,
    })
}
