//! Content between the braces of a macro: flags, name and arguments.

use std::borrow::Cow;

use super::node::{Form, Macro, Node, split, trim};
use super::table;

/// The beginning of a macro: flags, name and the text after it.
pub(super) struct Header<'t> {
    closes: bool,
    keep: bool,
    name: &'t str,
    rest: &'t str,
}

impl<'t> Header<'t> {
    pub(super) fn read(text: &'t str) -> Header<'t> {
        let mut rest = text.trim_start();
        let (mut closes, mut keep) = (false, false);
        let comment = |rest: &str| rest.starts_with("//");
        while !comment(rest) {
            let Some(flag) = rest.chars().next().filter(|c| matches!(c, '/' | '#' | '!' | '?' | '~' | '>'))
            else {
                break;
            };
            closes |= flag == '/';
            keep |= flag == '#';
            rest = rest[1..].trim_start();
        }
        let length = if comment(rest) {
            2
        } else if rest.starts_with(['.', '$']) {
            1
        } else if rest.get(..8).is_some_and(|name| table::utc(name, &rest[8..]).is_some()) {
            // In `time_UTC-5`, the sign is not part of the name.
            8
        } else {
            table::name_length(rest)
        };
        let (name, behind) = rest.split_at(length);
        Header { closes, keep, name, rest: behind }
    }

    /// Returns true if the beginning identifies a known macro rather than a Jinja expression.
    pub(super) fn is_macro(&self) -> bool {
        let short =
            matches!(self.name, "." | "$") && self.rest.starts_with(|c: char| c.is_ascii_alphabetic());
        let follows = |text: &str| text.is_empty() || text.starts_with("}}") || text.starts_with(':');
        let behind = self.rest.trim_start();
        let spaced = behind.len() < self.rest.len();
        let known = match table::find(self.name) {
            // A filter or an operator after the name makes it an expression.
            Some(rule) => {
                follows(behind) || spaced && rule.most > 0 && !behind.starts_with(['|', '~', '=', '+', '*'])
            }
            None => table::utc(self.name, self.rest).is_some() || self.closes,
        };
        short || self.name == "//" || known
    }
}

/// Builds a macro from the nodes between its braces.
pub(super) fn read_macro<'s>(mut nodes: Vec<Node<'s>>, written: &'s str, at: usize) -> Node<'s> {
    let first = match nodes.first() {
        Some(Node::Text(Cow::Borrowed(text))) => *text,
        _ => return Node::Unknown { name: Cow::Borrowed(""), at, inside: nodes },
    };
    let header = Header::read(first);
    let unknown = |nodes| Node::Unknown { name: Cow::Owned(header.name.to_owned()), at, inside: nodes };
    if let Some(offset) = table::utc(header.name, header.rest).filter(|_| nodes.len() == 1) {
        let args = vec![vec![Node::Text(Cow::Owned(format!("UTC{offset}")))]];
        let Some(rule) = table::find("time") else { return unknown(nodes) };
        let name = Cow::Borrowed(header.name);
        return Node::from(Macro {
            rule,
            name,
            keep: false,
            form: Form::Double,
            args,
            body: None,
            written,
            at,
            closes: false,
        });
    }
    let name = header.name;
    let Some(rule) = table::find(name) else {
        let alone =
            nodes.len() == 1 && !header.closes && header.rest.trim().is_empty() && table::is_name(name);
        return if alone { Node::Bare { name, written } } else { unknown(nodes) };
    };
    // SillyTavern's lexer takes two slashes as the name, so a third one closes.
    let closes = header.closes || name == "//" && nodes.len() == 1 && header.rest.trim() == "/";
    let blank = nodes.len() == 1 && (closes || header.rest.trim().is_empty());
    let (rest, form) = match header.rest {
        _ if name == "//" && blank => ("", Form::None),
        rest if rule.raw => (rest, Form::Single),
        rest => {
            let trimmed = rest.trim_start();
            match (trimmed.strip_prefix("::"), trimmed.strip_prefix(':')) {
                (Some(rest), _) => (rest, Form::Double),
                (None, Some(rest)) => (rest, Form::Single),
                _ if trimmed.is_empty() && nodes.len() == 1 => ("", Form::None),
                // Letters directly after the name would be part of it; a blank or a quote separates.
                _ if trimmed.len() < rest.len() || rest.is_empty() || rest.starts_with(['"', '\'']) => {
                    (trimmed, Form::Single)
                }
                _ => return unknown(nodes),
            }
        }
    };
    let count = match form {
        Form::None => 0,
        Form::Single => 1,
        Form::Double => {
            let texts = nodes.iter().skip(1).map(|node| match node {
                Node::Text(text) => text.matches("::").count(),
                _ => 0,
            });
            1 + rest.matches("::").count() + texts.sum::<usize>()
        }
    };
    let fits = closes && count == 0
        || !closes && (rule.least..=rule.most).contains(&count)
        || !closes && rule.scoped && count + 1 == rule.least;
    if !fits {
        return unknown(nodes);
    }
    let keep = header.keep;
    let name = Cow::Borrowed(name);
    nodes[0] = Node::Text(Cow::Borrowed(rest));
    let mut args = match form {
        Form::None => Vec::new(),
        Form::Single => vec![nodes],
        Form::Double => split(nodes, "::"),
    };
    if !rule.raw {
        args.iter_mut().for_each(trim);
    }
    Node::from(Macro { rule, name, keep, form, args, body: None, written, at, closes })
}
