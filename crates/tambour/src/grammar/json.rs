//! JSON of a schema as a tree.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::merge::merge;
use super::number::{self, NumberBounds};
use super::{CharClass, GrammarBuilder, Node, NoteKind};
use crate::error::{Error, Result};

/// Maximum nesting of schemas, through references that are joined too.
const MAX_LEVELS: usize = 48;

/// Maximum nesting of a value without a schema.
const MAX_ANY_LEVELS: u32 = 5;

/// Largest count that a repetition states; engines expand repetitions.
const MAX_REPETITIONS: u64 = 1000;

/// White space between the tokens of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JsonSpace {
    /// At most one blank: the value is on one line.
    Line,
    /// At most two blanks, or a line break with an indentation of at most 24 characters.
    Pretty,
}

/// Way in which JSON is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonStyle {
    /// White space between tokens.
    pub space: JsonSpace,
    /// True if strings have no `<`, which is written `\u003c`: a tag could be read in them.
    pub escapes_tags: bool,
}

/// Keywords that say nothing about values.
const ANNOTATIONS: [&str; 18] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "$anchor",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
    "format",
    "$vocabulary",
    "x-callers",
];

/// Keywords that the grammar states, at least in part.
const STATED: [&str; 23] = [
    "$ref",
    "type",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "nullable",
    "$dynamicAnchor",
];

impl GrammarBuilder {
    /// Builds the values of a schema. Keywords that the grammar cannot state are noted with their places.
    ///
    /// # Errors
    /// A reference leads nowhere or only to itself, or the schema is too large or nests too deeply.
    pub fn json(&mut self, schema: &Value, style: JsonStyle) -> Result<Node> {
        let mut compiler = SchemaCompiler { builder: self, root: schema, style, references: BTreeMap::new() };
        let node = compiler.value(schema, "#", 0)?;
        Ok(Node::Json { schema: schema.clone(), node: Box::new(node) })
    }

    /// Any JSON value that nests at most `levels` deep.
    fn any_value(&mut self, style: JsonStyle, levels: u32) -> Node {
        if let Some(index) = self.any_values.get(&(style, levels)) {
            return Node::Rule(*index);
        }
        let mut parts = vec![
            string(style, StringBounds::default()),
            number::number(NumberBounds::default()),
            Node::choice(["true", "false", "null"].map(Node::literal)),
        ];
        if levels > 0 {
            let inner = self.any_value(style, levels - 1);
            let member =
                Node::sequence([string(style, StringBounds::default()), colon(style), inner.clone()]);
            parts.push(list("{", member, "}", (0, None), style));
            parts.push(list("[", inner, "]", (0, None), style));
        }
        let index = self.reserve_rule(&format!("any-json-{levels}"));
        self.rules[index].1 = Node::choice(parts);
        self.any_values.insert((style, levels), index);
        Node::Rule(index)
    }
}

/// Bounds of a string.
#[derive(Clone, Copy, Debug, Default)]
struct StringBounds {
    min: u32,
    max: Option<u32>,
    /// True if it needs a character that is not white space.
    is_filled: bool,
}

/// White space where a line may break.
fn space(style: JsonStyle) -> Node {
    let blank = || Node::Class(CharClass::of(" "));
    match style.space {
        JsonSpace::Line => Node::token([blank()]).optional(),
        JsonSpace::Pretty => {
            let indentation = Node::Class(CharClass::of(" \t")).repeat(0, Some(24));
            let line = Node::sequence([Node::literal("\r").optional(), Node::literal("\n"), indentation]);
            Node::token([Node::choice([blank().repeat(1, Some(2)), line])]).optional()
        }
    }
}

fn colon(style: JsonStyle) -> Node {
    let _ = style;
    Node::sequence([Node::literal(":"), Node::token([Node::literal(" ")]).optional()])
}

/// Items between brackets, from `count.0` to `count.1`.
fn list(open: &str, item: Node, close: &str, count: (u32, Option<u32>), style: JsonStyle) -> Node {
    let (min, max) = count;
    if max == Some(0) {
        return Node::sequence([Node::literal(open), space(style), Node::literal(close)]);
    }
    let more = Node::sequence([Node::literal(","), space(style), item.clone()]);
    let rest = more.repeat(min.saturating_sub(1), max.map(|max| max - 1));
    let items = Node::sequence([item, rest, space(style)]);
    let items = if min == 0 { items.optional() } else { items };
    Node::sequence([Node::literal(open), space(style), items, Node::literal(close)])
}

/// A string.
fn string(style: JsonStyle, bounds: StringBounds) -> Node {
    let hex = || Node::Class(CharClass::new([('0', '9'), ('a', 'f'), ('A', 'F')]));
    let class = |text: &str| Node::Class(CharClass::of(text));
    let excluded = CharClass::of(if style.escapes_tags { "\"\\<＜\u{7F}" } else { "\"\\\u{7F}" });
    let plain = CharClass::new([('\0', '\u{1F}')]).union(&excluded).negate();
    let blank = CharClass::blank();
    // A pair of surrogates is one character.
    let pair = Node::sequence([
        class("dD"),
        class("89abAB"),
        hex().repeat(2, Some(2)),
        Node::literal("\\u"),
        class("dD"),
        Node::Class(CharClass::new([('c', 'f'), ('C', 'F')])),
        hex().repeat(2, Some(2)),
    ]);
    let low =
        Node::sequence([class("dD"), Node::Class(CharClass::new([('0', '7')])), hex().repeat(2, Some(2))]);
    let not_d = Node::Class(CharClass::new([('1', '9'), ('a', 'c'), ('e', 'f'), ('A', 'C'), ('E', 'F')]));
    let other = Node::sequence([not_d, hex().repeat(3, Some(3))]);
    let zero = Node::sequence([
        Node::literal("00"),
        Node::Class(CharClass::new([('2', '7'), ('a', 'f'), ('A', 'F')])),
        hex(),
    ]);
    let code = Node::sequence([Node::literal("u"), Node::choice([pair, low, other, zero])]);
    let escape = |of: Node| Node::sequence([Node::literal("\\"), of]);
    let any = || {
        Node::choice([Node::Class(plain.clone()), escape(Node::choice([class("\"\\/bfnrt"), code.clone()]))])
    };
    let filled = || Node::choice([Node::Class(plain.without(&blank)), escape(class("\"\\/"))]);
    let blanks = Node::choice([Node::Class(CharClass::of(" \u{3000}")), escape(class("nrt"))]);
    let quote = || Node::literal("\"");
    let StringBounds { min, max, is_filled } = bounds;
    let body = match (is_filled, max) {
        (false, max) => any().repeat(min, max),
        (true, None) => {
            Node::sequence([blanks.repeat(0, None), filled(), any().repeat(min.saturating_sub(1), None)])
        }
        (true, Some(max)) => {
            Node::sequence([filled(), any().repeat(min.saturating_sub(1), Some(max.saturating_sub(1)))])
        }
    };
    Node::token([quote(), body, quote()])
}

/// Compiler of one schema.
struct SchemaCompiler<'a> {
    builder: &'a mut GrammarBuilder,
    root: &'a Value,
    style: JsonStyle,
    /// Rules of references by pointer.
    references: BTreeMap<String, usize>,
}

impl SchemaCompiler<'_> {
    /// Values of the schema at `place`, its JSON Pointer after `#`.
    fn value(&mut self, schema: &Value, place: &str, level: usize) -> Result<Node> {
        self.builder.count(4, place)?;
        if level > MAX_LEVELS {
            return Err(Error::invalid(format!(
                "the schema nests more than {MAX_LEVELS} levels deep at {place}: a grammar needs fewer; use `$ref` for \
                 parts that contain themselves"
            )));
        }
        let fields = match schema {
            Value::Bool(true) => return Ok(self.any_value()),
            Value::Object(fields) => fields,
            _ => return Ok(Node::never()),
        };
        self.note_keywords(fields, place);
        if let Some(node) = self.reference(schema, fields, place, level)? {
            return Ok(node);
        }
        if let Some(node) = self.composition(fields, place, level)? {
            return Ok(node);
        }
        if let Some(node) = self.constants(fields, place)? {
            return Ok(node);
        }
        let types = self.types(fields);
        let mut parts = Vec::new();
        for name in &types {
            parts.push(self.typed(name, fields, place, level)?);
        }
        if types.is_empty() {
            return Ok(self.any_value());
        }
        Ok(Node::choice(parts))
    }

    fn any_value(&mut self) -> Node {
        self.builder.leave_open_object();
        self.builder
            .restrict(&format!("a value without a schema nests at most {MAX_ANY_LEVELS} levels deep"));
        self.builder.any_value(self.style, MAX_ANY_LEVELS)
    }

    /// Notes the keywords that the grammar does not state.
    fn note_keywords(&mut self, fields: &Map<String, Value>, place: &str) {
        for (key, value) in fields {
            let is_stated = match key.as_str() {
                "pattern" => value == "\\S",
                "uniqueItems" => value == false,
                // Numbers of this kind have their own bounds.
                "exclusiveMinimum" | "exclusiveMaximum" => value.as_i64().is_some(),
                "minimum" | "maximum" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
                "format" => false,
                key => ANNOTATIONS.contains(&key) || STATED.contains(&key) || key.starts_with("x-"),
            };
            if !is_stated {
                let text = format!("`{key}`: the checker tests it");
                self.builder.note(NoteKind::UncheckedKeyword, &format!("{place}/{key}"), &text);
            }
        }
    }

    /// Schema that a reference leads to.
    fn resolve(&self, reference: &str, place: &str) -> Result<&Value> {
        let pointer = reference.strip_prefix('#').map(percent_decode);
        let target = pointer.as_deref().and_then(|pointer| self.root.pointer(pointer));
        target.ok_or_else(|| {
            Error::invalid(format!(
                "the reference `{reference}` at {place} leads to no place in this schema: a grammar follows only \
                 references such as `#/$defs/name`"
            ))
        })
    }

    /// Values of a schema with `$ref`.
    fn reference(
        &mut self,
        schema: &Value,
        fields: &Map<String, Value>,
        place: &str,
        level: usize,
    ) -> Result<Option<Node>> {
        let Some(reference) = fields.get("$ref").and_then(Value::as_str) else { return Ok(None) };
        let has_more = fields.keys().any(|key| key != "$ref" && !is_annotation(key));
        if has_more {
            let mut rest = schema.clone();
            rest.as_object_mut().map(|fields| fields.shift_remove("$ref"));
            let (merged, lost) = merge(&rest, self.resolve(reference, place)?);
            self.note_lost(&lost, place);
            self.builder.count(weight(&merged), place)?;
            return self.value(&merged, place, level + 1).map(Some);
        }
        if let Some(index) = self.references.get(reference) {
            return Ok(Some(Node::Rule(*index)));
        }
        let target = self.resolve(reference, place)?.clone();
        if target.get("$ref").and_then(Value::as_str) == Some(reference) {
            return Err(Error::invalid(format!("the reference `{reference}` at {place} leads to itself")));
        }
        let name = reference.rsplit('/').next().unwrap_or("json").to_owned();
        let index = self.builder.reserve_rule(&format!("json-{name}"));
        self.references.insert(reference.to_owned(), index);
        // The place of the target, so that notes name it once.
        let node = self.value(&target, reference, level + 1)?;
        if matches!(node, Node::Rule(target) if target == index) {
            return Err(Error::invalid(format!("the reference `{reference}` at {place} leads to itself")));
        }
        self.builder.rules[index].1 = node;
        Ok(Some(Node::Rule(index)))
    }

    fn note_lost(&mut self, lost: &[String], place: &str) {
        for key in lost {
            let text = format!("`{key}`: it is joined with another one, and the checker tests it");
            self.builder.note(NoteKind::UncheckedKeyword, &format!("{place}/{key}"), &text);
        }
    }

    /// Values of a schema with `allOf`, `anyOf` or `oneOf`.
    fn composition(
        &mut self,
        fields: &Map<String, Value>,
        place: &str,
        level: usize,
    ) -> Result<Option<Node>> {
        for key in ["allOf", "anyOf", "oneOf"] {
            let Some(branches) = fields.get(key).and_then(Value::as_array) else { continue };
            let mut rest = fields.clone();
            rest.shift_remove(key);
            let is_plain = rest.keys().all(|key| is_annotation(key));
            let rest = Value::Object(rest);
            if key == "allOf" {
                let mut merged = rest;
                for branch in branches {
                    let branch = self.follow(branch, place)?;
                    let (next, lost) = merge(&merged, &branch);
                    self.note_lost(&lost, place);
                    self.builder.count(weight(&next), place)?;
                    merged = next;
                }
                return self.value(&merged, place, level + 1).map(Some);
            }
            let mut parts = Vec::new();
            for (index, branch) in branches.iter().enumerate() {
                let branch_place = format!("{place}/{key}/{index}");
                if is_plain {
                    parts.push(self.value(branch, &branch_place, level + 1)?);
                    continue;
                }
                let (merged, lost) = merge(&rest, &self.follow(branch, place)?);
                self.note_lost(&lost, &branch_place);
                self.builder.count(weight(&merged), &branch_place)?;
                parts.push(self.value(&merged, &branch_place, level + 1)?);
            }
            if key == "oneOf" && branches.len() > 1 && !are_distinct(branches) {
                let text = "`oneOf`: a value may satisfy more than one branch, and the checker tests it";
                self.builder.note(NoteKind::UncheckedKeyword, &format!("{place}/oneOf"), text);
            }
            return Ok(Some(Node::choice(parts)));
        }
        Ok(None)
    }

    /// A schema, or the one that it refers to.
    fn follow(&self, schema: &Value, place: &str) -> Result<Value> {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) if schema.as_object().is_some_and(|fields| fields.len() == 1) => {
                self.resolve(reference, place).cloned()
            }
            _ => Ok(schema.clone()),
        }
    }

    /// Values that `const` and `enum` list.
    fn constants(&mut self, fields: &Map<String, Value>, place: &str) -> Result<Option<Node>> {
        let listed = fields.get("enum").and_then(Value::as_array);
        let constant = fields.get("const");
        if listed.is_none() && constant.is_none() {
            return Ok(None);
        }
        let types = type_names(fields);
        let is_allowed = |value: &&Value| {
            let is_listed = listed.is_none_or(|list| list.contains(value));
            is_listed && constant.is_none_or(|constant| constant == *value) && types.is_none_or_matches(value)
        };
        self.builder.count(listed.map_or(1, Vec::len), place)?;
        let candidates =
            listed.map_or_else(|| constant.into_iter().collect::<Vec<_>>(), |list| list.iter().collect());
        let write = |value: &Value| match self.style.escapes_tags {
            true => value.to_string().replace('<', "\\u003c"),
            false => value.to_string(),
        };
        Ok(Some(Node::choice(
            candidates.into_iter().filter(is_allowed).map(|value| Node::literal(write(value))),
        )))
    }

    /// Types of the values: those of `type`, else those that the other keywords are about.
    fn types(&mut self, fields: &Map<String, Value>) -> Vec<&'static str> {
        if let Some(names) = type_names(fields).0 {
            return names;
        }
        let has = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
        if has(&["properties", "required", "additionalProperties", "patternProperties", "propertyNames"]) {
            vec!["object"]
        } else if has(&["items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems"]) {
            vec!["array"]
        } else if has(&["pattern", "minLength", "maxLength", "format"]) {
            vec!["string"]
        } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
            vec!["number"]
        } else {
            Vec::new()
        }
    }

    /// Values of one type.
    fn typed(&mut self, name: &str, fields: &Map<String, Value>, place: &str, level: usize) -> Result<Node> {
        let number = |key: &str| fields.get(key).and_then(Value::as_u64);
        Ok(match name {
            "null" => Node::literal("null"),
            "boolean" => Node::choice([Node::literal("true"), Node::literal("false")]),
            "integer" => number::integer(bounds(fields)),
            "number" => {
                for key in ["exclusiveMinimum", "exclusiveMaximum"] {
                    if fields.contains_key(key) {
                        let text = format!("`{key}`: the bound itself is accepted");
                        self.builder.note(NoteKind::UncheckedKeyword, &format!("{place}/{key}"), &text);
                    }
                }
                number::number(bounds(fields))
            }
            "string" => {
                let (min, max) = self.counts(number("minLength"), number("maxLength"), "Length", place);
                let is_filled = fields.get("pattern").is_some_and(|pattern| pattern == "\\S");
                if is_filled && max.is_some() {
                    self.builder
                        .restrict("a text of bounded length begins with a character that is not white space");
                }
                string(self.style, StringBounds { min, max, is_filled })
            }
            "array" => self.array(fields, place, level)?,
            _ => self.object(fields, place, level)?,
        })
    }

    /// Bounds of a repetition; larger ones are noted and left out.
    fn counts(
        &mut self,
        min: Option<u64>,
        max: Option<u64>,
        suffix: &str,
        place: &str,
    ) -> (u32, Option<u32>) {
        let mut stated = |number: Option<u64>, key: &str| {
            let number = number?;
            if number > MAX_REPETITIONS {
                let text = format!("`{key}{suffix}`: more than {MAX_REPETITIONS}, and the checker tests it");
                self.builder.note(NoteKind::UncheckedKeyword, &format!("{place}/{key}{suffix}"), &text);
                return None;
            }
            u32::try_from(number).ok()
        };
        (stated(min, "min").unwrap_or_default(), stated(max, "max"))
    }

    fn array(&mut self, fields: &Map<String, Value>, place: &str, level: usize) -> Result<Node> {
        let number = |key: &str| fields.get(key).and_then(Value::as_u64);
        let (min, max) = self.counts(number("minItems"), number("maxItems"), "Items", place);
        if max.is_some_and(|max| max < min) {
            return Ok(Node::never());
        }
        let any = Value::Bool(true);
        let item = self.value(fields.get("items").unwrap_or(&any), &format!("{place}/items"), level + 1)?;
        let Some(prefix) =
            fields.get("prefixItems").and_then(Value::as_array).filter(|list| !list.is_empty())
        else {
            let max = if item.is_never() { Some(0) } else { max };
            if item.is_never() && min > 0 {
                return Ok(Node::never());
            }
            let item = self.share("item", item);
            return Ok(list("[", item, "]", (min, max), self.style));
        };
        self.builder.restrict("an array with `prefixItems` has all of them");
        let mut parts = vec![Node::literal("["), space(self.style)];
        for (index, schema) in prefix.iter().enumerate() {
            if index > 0 {
                parts.extend([Node::literal(","), space(self.style)]);
            }
            parts.push(self.value(schema, &format!("{place}/prefixItems/{index}"), level + 1)?);
        }
        let len = u32::try_from(prefix.len()).unwrap_or(u32::MAX);
        if !item.is_never() && max.is_none_or(|max| max > len) {
            let more = Node::sequence([Node::literal(","), space(self.style), item]);
            parts.push(more.repeat(min.saturating_sub(len), max.map(|max| max - len)));
        }
        parts.extend([space(self.style), Node::literal("]")]);
        Ok(Node::sequence(parts))
    }

    fn object(&mut self, fields: &Map<String, Value>, place: &str, level: usize) -> Result<Node> {
        let empty = Map::new();
        let properties = fields.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: Vec<&str> = fields
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let additional = fields.get("additionalProperties");
        let mut members: Vec<(Node, bool)> = Vec::new();
        for (name, schema) in properties {
            let is_required = required.contains(&name.as_str());
            let value = self.value(schema, &format!("{place}/properties/{}", escape_key(name)), level + 1)?;
            match (value.is_never(), is_required) {
                (true, true) => return Ok(Node::never()),
                (true, false) => {}
                (false, _) => {
                    let member = self.member(name, value);
                    let member = if is_required { member } else { self.share(name, member) };
                    members.push((member, is_required));
                }
            }
        }
        for name in required.iter().filter(|name| !properties.contains_key(**name)) {
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
            let member = Node::sequence([string(style, StringBounds::default()), colon(style), value]);
            Some(self.share("member", member))
        } else {
            None
        };
        if members.is_empty() {
            return Ok(match extra {
                Some(member) => list("{", member, "}", (0, None), style),
                None => list("{", Node::never(), "}", (0, Some(0)), style),
            });
        }
        Ok(self.members(members, extra.as_ref(), place))
    }

    /// A part that the tree has more than once; a rule, unless it is small.
    fn share(&mut self, name: &str, node: Node) -> Node {
        match node {
            Node::Literal(_) | Node::Token(_) | Node::Rule(_) => node,
            node => self.builder.rule(name, node),
        }
    }

    /// A member of an object.
    fn member(&mut self, name: &str, value: Node) -> Node {
        let mut key = Value::from(name).to_string();
        if self.style.escapes_tags {
            key = key.replace('<', "\\u003c");
        }
        Node::sequence([Node::literal(key), colon(self.style), value])
    }

    /// Members in their order: each with whether it must be there. Others repeat at the end.
    fn members(&mut self, members: Vec<(Node, bool)>, extra: Option<&Node>, place: &str) -> Node {
        let style = self.style;
        let comma = || Node::sequence([Node::literal(","), space(style)]);
        let has_required = members.iter().any(|(_, is_required)| *is_required);
        // What follows each member, from the last one on.
        let mut tail = match extra {
            Some(extra) => Node::sequence([comma(), extra.clone()]).repeat(0, None),
            None => Node::Sequence(Vec::new()),
        };
        // Alternatives for the first member of the object, the last one first.
        let mut starts: Vec<Node> =
            extra.iter().map(|extra| Node::sequence([(*extra).clone(), tail.clone()])).collect();
        if has_required {
            starts.clear();
        }
        for (member, is_required) in members.into_iter().rev() {
            if is_required {
                starts.clear();
            }
            starts.push(Node::sequence([member.clone(), tail.clone()]));
            let next = Node::sequence([comma(), member]);
            let next = if is_required { next } else { next.optional() };
            tail = Node::sequence([next, tail]);
            if !is_required {
                let name = place.rsplit('/').next().unwrap_or("object");
                tail = self.builder.rule(&format!("{name}-more"), tail);
            }
        }
        starts.reverse();
        let body = Node::sequence([Node::choice(starts), space(style)]);
        let body = if has_required { body } else { body.optional() };
        Node::sequence([Node::literal("{"), space(style), body, Node::literal("}")])
    }
}

/// Types of `type`; `None` stands for all.
struct TypeNames(Option<Vec<&'static str>>);

impl TypeNames {
    fn is_none_or_matches(&self, value: &Value) -> bool {
        let matches = |name: &str| match name {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            _ => value.is_object(),
        };
        self.0.as_ref().is_none_or(|names| names.iter().any(|name| matches(name)))
    }
}

fn type_names(fields: &Map<String, Value>) -> TypeNames {
    const NAMES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let known = |value: &Value| NAMES.into_iter().find(|name| value == name);
    TypeNames(match fields.get("type") {
        None => None,
        Some(Value::Array(list)) => Some(list.iter().filter_map(known).collect()),
        Some(value) => Some(known(value).into_iter().collect()),
    })
}

/// Bounds of a number; bounds with a fraction are left out.
fn bounds(fields: &Map<String, Value>) -> NumberBounds {
    let whole = |key: &str| {
        let number = fields.get(key).and_then(Value::as_f64).filter(|number| number.fract() == 0.0)?;
        // Numbers of this size are exact.
        (number.abs() < 9.0e15).then_some(number as i64)
    };
    let is_integer = type_names(fields).0.is_some_and(|names| names == ["integer"]);
    let step = i64::from(is_integer);
    let min = [whole("minimum"), whole("exclusiveMinimum").map(|number| number + step)];
    let max = [whole("maximum"), whole("exclusiveMaximum").map(|number| number - step)];
    NumberBounds { min: min.into_iter().flatten().max(), max: max.into_iter().flatten().min() }
}

/// Number of values in a schema.
fn weight(schema: &Value) -> usize {
    1 + match schema {
        Value::Object(fields) => fields.values().map(weight).sum(),
        Value::Array(items) => items.iter().map(weight).sum(),
        _ => 0,
    }
}

fn is_annotation(key: &str) -> bool {
    ANNOTATIONS.contains(&key) || key.starts_with("x-")
}

/// Returns whether no value can satisfy two of the branches: objects that differ in a constant member, or
/// values of different types.
fn are_distinct(branches: &[Value]) -> bool {
    let constants = |branch: &Value| -> Vec<(String, Value)> {
        let properties = branch.get("properties").and_then(Value::as_object);
        let constants = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name.clone(), schema.get("const")?.clone())));
        constants.collect()
    };
    let kind = |branch: &Value| branch.get("type").and_then(Value::as_str).map(str::to_owned);
    branches.iter().enumerate().all(|(index, first)| {
        branches[index + 1..].iter().all(|second| {
            let differs = kind(first).zip(kind(second)).is_some_and(|(first, second)| {
                let numbers = ["integer", "number"];
                first != second && !(numbers.contains(&&*first) && numbers.contains(&&*second))
            });
            let others = constants(second);
            let has_conflict = |(name, value): &(String, Value)| {
                others.iter().any(|(other_name, other)| other_name == name && other != value)
            };
            differs || constants(first).iter().any(has_conflict)
        })
    })
}

fn escape_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Decodes `%` escapes in a fragment.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits =
            after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
