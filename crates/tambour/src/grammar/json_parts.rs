//! Arrays and objects of a schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::json::{SchemaCompiler, escape_key};
use super::json_tokens::{SPACE_NODES, colon, list, space};
use super::{Node, NoteKind};
use crate::error::Result;

/// Number of nodes of a member or an item without its value, about.
const PART_NODES: usize = 2 * SPACE_NODES;

impl SchemaCompiler<'_> {
    /// Arrays of a schema.
    pub(super) fn array(&mut self, fields: &Map<String, Value>, place: &str, level: usize) -> Result<Node> {
        let number = |key: &str| fields.get(key).and_then(Value::as_u64);
        let (min, max) = self.counts(number("minItems"), number("maxItems"), "Items", place);
        if max.is_some_and(|max| max < min) {
            return Ok(Node::never());
        }
        let any = Value::Bool(true);
        let item = self.value(fields.get("items").unwrap_or(&any), &format!("{place}/items"), level + 1)?;
        let prefix = fields.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let prefix = &prefix[..prefix.len().min(max.map_or(usize::MAX, |max| max as usize))];
        self.builder.count((prefix.len() + 2) * PART_NODES, place)?;
        let len = u32::try_from(prefix.len()).unwrap_or(u32::MAX);
        if item.is_never() && min > len {
            return Ok(Node::never());
        }
        if prefix.is_empty() {
            let max = if item.is_never() { Some(0) } else { max };
            let item = self.share("item", item);
            return Ok(list("[", item, "]", (min, max), self.style));
        }
        self.builder.restrict("an array with `prefixItems` has all of them that `maxItems` allows");
        let mut parts = vec![Node::literal("["), space(self.style)];
        for (index, schema) in prefix.iter().enumerate() {
            if index > 0 {
                parts.extend([Node::literal(","), space(self.style)]);
            }
            parts.push(self.value(schema, &format!("{place}/prefixItems/{index}"), level + 1)?);
        }
        if !item.is_never() && max.is_none_or(|max| max > len) {
            let more = Node::sequence([Node::literal(","), space(self.style), item]);
            parts.push(more.repeat(min.saturating_sub(len), max.map(|max| max - len)));
        }
        parts.extend([space(self.style), Node::literal("]")]);
        Ok(Node::sequence(parts))
    }

    /// Objects of a schema.
    pub(super) fn object(&mut self, fields: &Map<String, Value>, place: &str, level: usize) -> Result<Node> {
        let empty = Map::new();
        let properties = fields.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let names = fields.get("required").and_then(Value::as_array);
        let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
        let required: BTreeSet<&str> = names.iter().copied().collect();
        self.builder.count((properties.len().max(required.len()) + 1) * PART_NODES, place)?;
        let additional = fields.get("additionalProperties");
        let mut members: Vec<(Node, bool)> = Vec::new();
        for (name, schema) in properties {
            let is_required = required.contains(name.as_str());
            let value = self.value(schema, &format!("{place}/properties/{}", escape_key(name)), level + 1)?;
            match (value.is_never(), is_required) {
                (true, true) => return Ok(Node::never()),
                (true, false) => {}
                (false, _) => members.push((self.member(name, value), is_required)),
            }
        }
        let mut added = BTreeSet::new();
        for name in names.iter().filter(|name| !properties.contains_key(**name)) {
            if !added.insert(*name) {
                continue;
            }
            let any = Value::Bool(true);
            let value = self.value(additional.unwrap_or(&any), &format!("{place}/required"), level + 1)?;
            members.push((self.member(name, value), true));
        }
        let is_open = match additional {
            Some(Value::Bool(is_open)) => *is_open,
            Some(_) => true,
            // A schema with properties means these; only one without any means all objects.
            None => members.is_empty() && properties.is_empty(),
        };
        if additional.is_none() && !is_open {
            self.builder.restrict("an object has only the properties that its schema lists");
        }
        if members.len() > 1 {
            self.builder.restrict("the members of an object come in the order of its schema");
        }
        let style = self.style;
        let extra = if is_open {
            self.builder.leave_open_object();
            let any = Value::Bool(true);
            let value =
                self.value(additional.unwrap_or(&any), &format!("{place}/additionalProperties"), level + 1)?;
            if !members.is_empty() {
                let text = "`additionalProperties`: such a member may have the name of a property";
                self.builder.note(NoteKind::UncheckedKeyword, &format!("{place}/additionalProperties"), text);
            }
            let member = Node::sequence([self.builder.any_string(style), colon(), value]);
            (!member.is_never()).then(|| self.share("member", member))
        } else {
            None
        };
        if members.is_empty() {
            return Ok(match extra {
                Some(member) => list("{", member, "}", (0, None), style),
                None => list("{", Node::never(), "}", (0, Some(0)), style),
            });
        }
        Ok(self.members(members, extra, place))
    }

    /// A part that the tree has more than once; a rule, unless it is small.
    fn share(&mut self, name: &str, node: Node) -> Node {
        match node {
            Node::Literal(_) | Node::Rule(_) => node,
            node => self.builder.rule(name, node),
        }
    }

    /// A member of an object.
    fn member(&mut self, name: &str, value: Node) -> Node {
        let mut key = Value::from(name).to_string();
        if self.style.escapes_tags {
            key = key.replace('<', "\\u003c");
        }
        Node::sequence([Node::literal(key), colon(), value])
    }

    /// Members in their order: each with whether it must be there. Others repeat at the end.
    ///
    /// The members that may begin the object, and the parts after each of them, are rules, since the tree has them
    /// twice; all after the first required one is a flat sequence.
    fn members(&mut self, members: Vec<(Node, bool)>, extra: Option<Node>, place: &str) -> Node {
        let style = self.style;
        let comma = || Node::sequence([Node::literal(","), space(style)]);
        let name = format!("{}-more", place.rsplit('/').next().unwrap_or("object"));
        let first_required = members.iter().position(|(_, is_required)| *is_required);
        let leading = first_required.unwrap_or(members.len());
        // Parts after a member, the last one first.
        let mut tail: Vec<Node> = Vec::new();
        // Alternatives for the first member of the object, the last one first.
        let mut starts: Vec<Node> = Vec::new();
        if let Some(extra) = extra {
            tail.push(Node::sequence([comma(), extra.clone()]).repeat(0, None));
            if first_required.is_none() {
                let rest = self.share_tail(&name, &mut tail);
                starts.push(Node::sequence([extra, rest]));
            }
        }
        for (index, (member, is_required)) in members.into_iter().enumerate().rev() {
            if index == leading && leading == 0 {
                tail.push(member);
                tail.reverse();
                starts.push(Node::Sequence(std::mem::take(&mut tail)));
                continue;
            }
            let member = if index <= leading { self.share(&name, member) } else { member };
            if index <= leading {
                let rest = self.share_tail(&name, &mut tail);
                starts.push(Node::sequence([member.clone(), rest]));
            }
            if is_required {
                tail.extend([member, comma()]);
            } else {
                tail.push(Node::sequence([comma(), member]).optional());
            }
        }
        starts.reverse();
        let body = Node::sequence([Node::choice(starts), space(style)]);
        let body = if first_required.is_some() { body } else { body.optional() };
        Node::sequence([Node::literal("{"), space(style), body, Node::literal("}")])
    }

    /// Makes a rule of the parts of `tail`, which are in reverse order, and leaves the reference in it.
    fn share_tail(&mut self, name: &str, tail: &mut Vec<Node>) -> Node {
        if tail.is_empty() {
            return Node::Sequence(Vec::new());
        }
        let parts = std::mem::take(tail).into_iter().rev();
        let rest = self.builder.rule(name, Node::sequence(parts));
        tail.push(rest.clone());
        rest
    }
}
