//! Matching of opening and closing tags: `{{name}} … {{/name}}`.

use std::borrow::Cow;
use std::collections::HashMap;

use super::node::{KnownMacro, MacroNode};
use super::parse::MAX_MACRO_DEPTH;
use super::table::MacroTarget;

/// Joins opening and closing tags of scoped macros, whose content becomes the body. Tags without a partner
/// are text.
pub(super) fn match_tags(nodes: Vec<MacroNode<'_>>) -> Vec<MacroNode<'_>> {
    let mut closing: HashMap<String, usize> = HashMap::new();
    for node in &nodes {
        if let MacroNode::Macro(one) = node
            && one.is_closing
        {
            *closing.entry(one.name.to_lowercase()).or_default() += 1;
        }
    }
    let mut open: Vec<(KnownMacro<'_>, Vec<MacroNode<'_>>)> = Vec::new();
    let mut waiting: HashMap<String, usize> = HashMap::new();
    // Closing tags whose opening tag became text.
    let mut literal: HashMap<String, usize> = HashMap::new();
    let mut done = Vec::new();
    let behind = count_unclaimed(&nodes);
    for (node, behind) in nodes.into_iter().zip(behind) {
        let node = match node {
            MacroNode::Macro(mut one) => {
                one.args = one.args.into_iter().map(match_tags).collect();
                MacroNode::Macro(one)
            }
            MacroNode::Unknown { name, at, inside } => {
                MacroNode::Unknown { name, at, inside: match_tags(inside) }
            }
            node => node,
        };
        let MacroNode::Macro(one) = node else {
            open.last_mut().map_or(&mut done, |(_, body)| body).push(node);
            continue;
        };
        let one = *one;
        let key = one.name.to_lowercase();
        let left = closing.get(&key).copied().unwrap_or(0);
        let opened = waiting.get(&key).copied().unwrap_or(0);
        let taken = literal.entry(key.clone()).or_default();
        if one.is_closing {
            closing.insert(key.clone(), left.saturating_sub(1));
            if opened == 0 {
                *taken = taken.saturating_sub(1);
                open.last_mut().map_or(&mut done, |(_, body)| body).push(to_unknown(one));
                continue;
            }
            while let Some((mut start, body)) = open.pop() {
                let name = start.name.to_lowercase();
                *waiting.entry(name.clone()).or_default() -= 1;
                let into = open.last_mut().map_or(&mut done, |(_, body)| body);
                if name == key {
                    start.body = Some(body);
                    into.push(start.into());
                    break;
                }
                into.push(without_body(start));
                into.extend(body);
            }
        } else if one.rule.can_open(one.args.len()) && left > *taken && open.len() < MAX_MACRO_DEPTH {
            *waiting.entry(key).or_default() += 1;
            open.push((one, Vec::new()));
        } else {
            let into = open.last_mut().map_or(&mut done, |(_, body)| body);
            // A macro that takes no body but has a closing tag becomes text, together with that tag.
            if !one.rule.can_open(one.args.len())
                && behind > *taken
                && opened == 0
                && one.rule.target != MacroTarget::Comment
            {
                *taken += 1;
                into.push(to_unknown(one));
            } else {
                into.push(without_body(one));
            }
        }
    }
    for (start, body) in open {
        done.push(without_body(start));
        done.extend(body);
    }
    done
}

/// For each node, counts the later closing tags of its name that no later opening tag claims.
fn count_unclaimed(nodes: &[MacroNode<'_>]) -> Vec<usize> {
    let mut closing: HashMap<String, usize> = HashMap::new();
    let mut all = vec![0; nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        let MacroNode::Macro(one) = node else { continue };
        let count = closing.entry(one.name.to_lowercase()).or_default();
        all[at] = *count;
        if one.is_closing {
            *count += 1;
        } else if one.rule.can_open(one.args.len()) {
            *count = count.saturating_sub(1);
        }
    }
    all
}

/// Returns a macro without a body: itself if it needs none, else text.
fn without_body(one: KnownMacro<'_>) -> MacroNode<'_> {
    if one.args.len() < one.rule.min_args { to_unknown(one) } else { one.into() }
}

/// Returns a tag as an unknown macro, which prints as it was written.
fn to_unknown(one: KnownMacro<'_>) -> MacroNode<'_> {
    let inside =
        vec![MacroNode::Text(Cow::Borrowed(one.written.get(2..one.written.len() - 2).unwrap_or_default()))];
    let name = if one.is_closing { format!("/{}", one.name).into() } else { one.name };
    MacroNode::Unknown { name, at: one.offset, inside }
}
