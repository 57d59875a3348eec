//! Opening and closing tags: `{{name}} … {{/name}}`.

use std::borrow::Cow;
use std::collections::HashMap;

use super::node::{Macro, Node};
use super::parse::DEPTH;

/// Joins opening and closing tags of scoped macros: what stands between becomes the body. Tags without a partner are text.
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
    let mut done = Vec::new();
    for node in nodes {
        let node = match node {
            Node::Macro(mut one) => {
                one.args = one.args.into_iter().map(scoped).collect();
                Node::Macro(one)
            }
            Node::Unknown { name, at, inside } => Node::Unknown { name, at, inside: scoped(inside) },
            node => node,
        };
        let key = match &node {
            Node::Macro(one) if one.rule.scoped => one.name.to_lowercase(),
            _ => {
                let node = match node {
                    // It closes what has no scope.
                    Node::Macro(one) if one.closes => unmatched(one),
                    node => node,
                };
                open.last_mut().map_or(&mut done, |(_, body)| body).push(node);
                continue;
            }
        };
        let Node::Macro(one) = node else { continue };
        if one.closes {
            *closing.entry(key.clone()).or_default() -= 1;
            if waiting.get(&key).copied().unwrap_or(0) == 0 {
                open.last_mut().map_or(&mut done, |(_, body)| body).push(unmatched(one));
                continue;
            }
            while let Some((mut start, body)) = open.pop() {
                let name = start.name.to_lowercase();
                *waiting.entry(name.clone()).or_default() -= 1;
                let into = open.last_mut().map_or(&mut done, |(_, body)| body);
                if name == key {
                    start.body = Some(body);
                    into.push(Node::Macro(start));
                    break;
                }
                into.push(unmatched(start));
                into.extend(body);
            }
        } else if one.args.len() + 1 >= one.rule.least
            && one.args.len() < one.rule.most
            && closing.get(&key).copied().unwrap_or(0) > 0
            && open.len() < DEPTH
        {
            *waiting.entry(key).or_default() += 1;
            open.push((one, Vec::new()));
        } else {
            open.last_mut().map_or(&mut done, |(_, body)| body).push(unmatched(one));
        }
    }
    for (start, body) in open {
        done.push(unmatched(start));
        done.extend(body);
    }
    done
}

/// A macro that takes no body after all: itself if it needs none, else text.
fn unmatched(one: Macro<'_>) -> Node<'_> {
    if one.closes || one.args.len() < one.rule.least {
        let inside = vec![Node::Text(Cow::Borrowed(&one.written[2..one.written.len() - 2]))];
        let name = if one.closes { format!("/{}", one.name).into() } else { one.name };
        return Node::Unknown { name, at: one.at, inside };
    }
    Node::Macro(one)
}
