//! Matching of opening and closing tags: `{{name}} … {{/name}}`.

use std::borrow::Cow;
use std::collections::HashMap;

use super::node::{Macro, Node};
use super::parse::DEPTH;
use super::table::Target;

/// Joins opening and closing tags of scoped macros, whose content becomes the body. Tags without a partner
/// are text.
pub(super) fn scoped(nodes: Vec<Node<'_>>) -> Vec<Node<'_>> {
    let mut closing: HashMap<String, usize> = HashMap::new();
    for node in &nodes {
        if let Node::Macro(one) = node
            && one.closes
        {
            *closing.entry(one.name.to_lowercase()).or_default() += 1;
        }
    }
    let mut open: Vec<(Macro<'_>, Vec<Node<'_>>)> = Vec::new();
    let mut waiting: HashMap<String, usize> = HashMap::new();
    // Closing tags whose opening tag became text.
    let mut literal: HashMap<String, usize> = HashMap::new();
    let mut done = Vec::new();
    let behind = behind(&nodes);
    for (node, behind) in nodes.into_iter().zip(behind) {
        let node = match node {
            Node::Macro(mut one) => {
                one.args = one.args.into_iter().map(scoped).collect();
                Node::Macro(one)
            }
            Node::Unknown { name, at, inside } => Node::Unknown { name, at, inside: scoped(inside) },
            node => node,
        };
        let Node::Macro(one) = node else {
            open.last_mut().map_or(&mut done, |(_, body)| body).push(node);
            continue;
        };
        let one = *one;
        let key = one.name.to_lowercase();
        let left = closing.get(&key).copied().unwrap_or(0);
        let opened = waiting.get(&key).copied().unwrap_or(0);
        let taken = literal.entry(key.clone()).or_default();
        if one.closes {
            closing.insert(key.clone(), left.saturating_sub(1));
            if opened == 0 {
                *taken = taken.saturating_sub(1);
                open.last_mut().map_or(&mut done, |(_, body)| body).push(as_text(one));
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
                into.push(unmatched(start));
                into.extend(body);
            }
        } else if one.rule.opens(one.args.len()) && left > *taken && open.len() < DEPTH {
            *waiting.entry(key).or_default() += 1;
            open.push((one, Vec::new()));
        } else {
            let into = open.last_mut().map_or(&mut done, |(_, body)| body);
            // A macro that takes no body but has a closing tag becomes text, together with that tag.
            if !one.rule.opens(one.args.len())
                && behind > *taken
                && opened == 0
                && one.rule.target != Target::Comment
            {
                *taken += 1;
                into.push(as_text(one));
            } else {
                into.push(unmatched(one));
            }
        }
    }
    for (start, body) in open {
        done.push(unmatched(start));
        done.extend(body);
    }
    done
}

/// For each node, counts the later closing tags of its name that no later opening tag claims.
fn behind(nodes: &[Node<'_>]) -> Vec<usize> {
    let mut closing: HashMap<String, usize> = HashMap::new();
    let mut all = vec![0; nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        let Node::Macro(one) = node else { continue };
        let count = closing.entry(one.name.to_lowercase()).or_default();
        all[at] = *count;
        if one.closes {
            *count += 1;
        } else if one.rule.opens(one.args.len()) {
            *count = count.saturating_sub(1);
        }
    }
    all
}

/// Returns a macro without a body: itself if it needs none, else text.
fn unmatched(one: Macro<'_>) -> Node<'_> {
    if one.args.len() < one.rule.least { as_text(one) } else { one.into() }
}

/// Returns a tag as an unknown macro, which prints as it was written.
fn as_text(one: Macro<'_>) -> Node<'_> {
    let inside =
        vec![Node::Text(Cow::Borrowed(one.written.get(2..one.written.len() - 2).unwrap_or_default()))];
    let name = if one.closes { format!("/{}", one.name).into() } else { one.name };
    Node::Unknown { name, at: one.at, inside }
}
