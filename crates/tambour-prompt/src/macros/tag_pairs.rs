//! Matching of opening and closing tags: `{{name}} … {{/name}}`.

use std::borrow::Cow;
use std::collections::HashMap;

use super::node::{KnownMacro, MacroNode};
use super::parse::MAX_MACRO_DEPTH;
use super::table::MacroTarget;

/// Joins opening and closing tags of scoped macros, whose content becomes the body. A closing tag without a
/// partner becomes text, and so does an opening tag without a partner, if it needs a body.
pub(super) fn match_tags(nodes: Vec<MacroNode<'_>>) -> Vec<MacroNode<'_>> {
    // Number of closing tags that come later. The key is the macro's name in lower case, as in the other
    // maps.
    let mut closing_counts: HashMap<String, usize> = HashMap::new();
    for node in &nodes {
        if let MacroNode::Macro(known_macro) = node
            && known_macro.is_closing
        {
            *closing_counts.entry(known_macro.name.to_lowercase()).or_default() += 1;
        }
    }
    // Macros that are open, outermost first, each with the nodes of its body so far.
    let mut open_macros: Vec<(KnownMacro<'_>, Vec<MacroNode<'_>>)> = Vec::new();
    let mut open_counts: HashMap<String, usize> = HashMap::new();
    // Number of later closing tags whose opening tag became text.
    let mut literal_closings: HashMap<String, usize> = HashMap::new();
    let mut output = Vec::new();
    let unclaimed_counts = count_unclaimed(&nodes);
    for (node, unclaimed) in nodes.into_iter().zip(unclaimed_counts) {
        let node = match node {
            MacroNode::Macro(mut known_macro) => {
                known_macro.args = known_macro.args.into_iter().map(match_tags).collect();
                MacroNode::Macro(known_macro)
            }
            MacroNode::Unknown { name, at, inner_nodes } => {
                MacroNode::Unknown { name, at, inner_nodes: match_tags(inner_nodes) }
            }
            node => node,
        };
        let MacroNode::Macro(known_macro) = node else {
            open_macros.last_mut().map_or(&mut output, |(_, body)| body).push(node);
            continue;
        };
        let known_macro = *known_macro;
        let key = known_macro.name.to_lowercase();
        let closing_left = closing_counts.get(&key).copied().unwrap_or(0);
        let open_count = open_counts.get(&key).copied().unwrap_or(0);
        let literal_count = literal_closings.entry(key.clone()).or_default();
        if known_macro.is_closing {
            closing_counts.insert(key.clone(), closing_left.saturating_sub(1));
            if open_count == 0 {
                *literal_count = literal_count.saturating_sub(1);
                open_macros.last_mut().map_or(&mut output, |(_, body)| body).push(to_unknown(known_macro));
                continue;
            }
            // Macros opened after the partner stay without a body.
            while let Some((mut opening, body)) = open_macros.pop() {
                let name = opening.name.to_lowercase();
                *open_counts.entry(name.clone()).or_default() -= 1;
                let siblings = open_macros.last_mut().map_or(&mut output, |(_, body)| body);
                if name == key {
                    opening.body = Some(body);
                    siblings.push(opening.into());
                    break;
                }
                siblings.push(without_body(opening));
                siblings.extend(body);
            }
        } else if known_macro.rule.can_open(known_macro.args.len())
            // One of the later closing tags belongs to this macro.
            && closing_left > *literal_count
            && open_macros.len() < MAX_MACRO_DEPTH
        {
            *open_counts.entry(key).or_default() += 1;
            open_macros.push((known_macro, Vec::new()));
        } else {
            let siblings = open_macros.last_mut().map_or(&mut output, |(_, body)| body);
            // A macro that takes no body but has a closing tag becomes text, together with that tag.
            if !known_macro.rule.can_open(known_macro.args.len())
                && unclaimed > *literal_count
                && open_count == 0
                && known_macro.rule.target != MacroTarget::Comment
            {
                *literal_count += 1;
                siblings.push(to_unknown(known_macro));
            } else {
                siblings.push(without_body(known_macro));
            }
        }
    }
    for (opening, body) in open_macros {
        output.push(without_body(opening));
        output.extend(body);
    }
    output
}

/// For each node, counts the later closing tags of its name that no later opening tag claims.
fn count_unclaimed(nodes: &[MacroNode<'_>]) -> Vec<usize> {
    let mut closing_counts: HashMap<String, usize> = HashMap::new();
    let mut unclaimed_counts = vec![0; nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        let MacroNode::Macro(known_macro) = node else { continue };
        let count = closing_counts.entry(known_macro.name.to_lowercase()).or_default();
        unclaimed_counts[at] = *count;
        if known_macro.is_closing {
            *count += 1;
        } else if known_macro.rule.can_open(known_macro.args.len()) {
            *count = count.saturating_sub(1);
        }
    }
    unclaimed_counts
}

/// Converts a macro that got no body to a node: the macro itself if it needs no body, else text.
fn without_body(known_macro: KnownMacro<'_>) -> MacroNode<'_> {
    if known_macro.args.len() < known_macro.rule.min_args {
        to_unknown(known_macro)
    } else {
        known_macro.into()
    }
}

/// Returns a tag as an unknown macro, which prints as it was written.
fn to_unknown(known_macro: KnownMacro<'_>) -> MacroNode<'_> {
    let inner_nodes = vec![MacroNode::Text(Cow::Borrowed(
        known_macro.source.get(2..known_macro.source.len() - 2).unwrap_or_default(),
    ))];
    let name =
        if known_macro.is_closing { format!("/{}", known_macro.name).into() } else { known_macro.name };
    MacroNode::Unknown { name, at: known_macro.offset, inner_nodes }
}
