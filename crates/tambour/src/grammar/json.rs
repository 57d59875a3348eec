//! JSON of a schema as a tree.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::json_tokens::{self, StringBounds, colon, list};
use super::merge::merge;
use super::number::{self, NumberBounds};
use super::reference::resolve;
use super::{GrammarBuilder, Node, NoteKind};
use crate::error::{Error, Result};

/// Maximum nesting of schemas, through references that are joined too.
pub(super) const MAX_LEVELS: usize = 48;

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
const ANNOTATIONS: [&str; 16] = [
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
    "$vocabulary",
];

/// Keywords that are joined with those beside them.
const COMPOSITIONS: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// Keywords that the grammar states, at least in part.
const STATED: [&str; 22] = [
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
    "$dynamicAnchor",
];

impl GrammarBuilder {
    /// Builds the values of a schema. Keywords that the grammar cannot state are noted with their places.
    ///
    /// # Errors
    /// A reference leads nowhere or only to itself, or the schema is too large or nests too deeply.
    pub fn json(&mut self, schema: &Value, style: JsonStyle) -> Result<Node> {
        let mut compiler = SchemaCompiler {
            builder: self,
            root: schema,
            style,
            references: BTreeMap::new(),
            joined: BTreeMap::new(),
            pending: Vec::new(),
        };
        let node = compiler.value(schema, "#", 0)?;
        while let Some(part) = compiler.pending.pop() {
            let node = compiler.value(&part.schema, &part.place, 0)?;
            compiler.builder.rules[part.rule].1 = node;
        }
        compiler.check_circles()?;
        Ok(Node::Json { schema: schema.clone(), node: Box::new(node) })
    }

    /// Any string.
    pub(super) fn any_string(&mut self, style: JsonStyle) -> Node {
        self.string(style, StringBounds::default())
    }

    /// A string of one kind, which is a rule.
    fn string(&mut self, style: JsonStyle, bounds: StringBounds) -> Node {
        if let Some(index) = self.strings.get(&(style, bounds)) {
            return Node::Rule(*index);
        }
        let node = json_tokens::string(style, bounds);
        if node.is_never() {
            return node;
        }
        let index = self.reserve_rule("string");
        self.rules[index].1 = node;
        self.strings.insert((style, bounds), index);
        Node::Rule(index)
    }

    /// Any JSON value that nests at most `levels` deep.
    fn any_value(&mut self, style: JsonStyle, levels: u32) -> Node {
        if let Some(index) = self.any_values.get(&(style, levels)) {
            return Node::Rule(*index);
        }
        let mut parts = vec![
            self.any_string(style),
            number::number(NumberBounds::default()),
            Node::choice(["true", "false", "null"].map(Node::literal)),
        ];
        if levels > 0 {
            let inner = self.any_value(style, levels - 1);
            let member = Node::sequence([self.any_string(style), colon(), inner.clone()]);
            parts.push(list("{", member, "}", (0, None), style));
            parts.push(list("[", inner, "]", (0, None), style));
        }
        let index = self.reserve_rule(&format!("any-json-{levels}"));
        self.rules[index].1 = Node::choice(parts);
        self.any_values.insert((style, levels), index);
        Node::Rule(index)
    }
}

/// Compiler of one schema.
pub(super) struct SchemaCompiler<'a> {
    pub(super) builder: &'a mut GrammarBuilder,
    root: &'a Value,
    pub(super) style: JsonStyle,
    /// Rules of references by pointer.
    references: BTreeMap<String, usize>,
    /// Rules of schemas that are joined of several, by their text.
    joined: BTreeMap<String, usize>,
    /// Schemas of rules that have no node yet.
    pending: Vec<PendingSchema<'a>>,
}

/// Schema that is compiled after the one that refers to it.
struct PendingSchema<'a> {
    schema: Cow<'a, Value>,
    place: String,
    rule: usize,
}

impl<'a> SchemaCompiler<'a> {
    /// Values of the schema at `place`, its JSON Pointer after `#`.
    pub(super) fn value(&mut self, schema: &Value, place: &str, level: usize) -> Result<Node> {
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
        if let Some(node) = self.reference(schema, fields, place)? {
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
        if types.is_empty() && !fields.contains_key("type") {
            return Ok(self.any_value());
        }
        Ok(Node::choice(parts))
    }

    fn any_value(&mut self) -> Node {
        self.builder.leave_open_object();
        self.builder.restrict(number::RESTRICTION);
        self.builder
            .restrict(&format!("a value without a schema nests at most {MAX_ANY_LEVELS} levels deep"));
        self.builder.any_value(self.style, MAX_ANY_LEVELS)
    }

    /// Notes the keywords that the grammar does not state.
    fn note_keywords(&mut self, fields: &Map<String, Value>, place: &str) {
        let lists_values = fields.contains_key("enum") || fields.contains_key("const");
        for (key, value) in fields {
            let is_stated = match key.as_str() {
                // Listed values are written as they are.
                key if lists_values && !matches!(key, "const" | "enum" | "type") => {
                    is_annotation(key) || COMPOSITIONS.contains(&key)
                }
                "pattern" => value == "\\S",
                "uniqueItems" => value == false,
                "exclusiveMinimum" | "exclusiveMaximum" | "minimum" | "maximum" => {
                    whole_bound(value).is_some()
                }
                key => ANNOTATIONS.contains(&key) || STATED.contains(&key) || key.starts_with("x-"),
            };
            if !is_stated {
                let text = format!("`{key}`: the checker tests it");
                self.builder.note(NoteKind::UncheckedKeyword, &format!("{place}/{key}"), &text);
            }
        }
    }

    /// Values of a schema with `$ref`.
    fn reference(
        &mut self,
        schema: &Value,
        fields: &Map<String, Value>,
        place: &str,
    ) -> Result<Option<Node>> {
        let Some(reference) = fields.get("$ref").and_then(Value::as_str) else { return Ok(None) };
        let has_more = fields.keys().any(|key| key != "$ref" && !is_annotation(key));
        if has_more {
            let mut rest = schema.clone();
            rest.as_object_mut().map(|fields| fields.shift_remove("$ref"));
            let (merged, lost) = merge(&rest, resolve(self.root, reference, place)?);
            self.builder.note_lost(&lost, place);
            return self.join_later(merged, place).map(Some);
        }
        if let Some(index) = self.references.get(reference) {
            return Ok(Some(Node::Rule(*index)));
        }
        let target = resolve(self.root, reference, place)?;
        let name = reference.rsplit('/').next().unwrap_or("json");
        let rule = self.builder.reserve_rule(&format!("json-{name}"));
        self.references.insert(reference.to_owned(), rule);
        // The place of the target, so that notes name it once.
        self.pending.push(PendingSchema { schema: Cow::Borrowed(target), place: reference.to_owned(), rule });
        Ok(Some(Node::Rule(rule)))
    }

    /// Rule of a schema that is joined of several, one of which is a reference: it may contain itself.
    fn join_later(&mut self, merged: Value, place: &str) -> Result<Node> {
        self.builder.count(weight(&merged), place)?;
        let text = merged.to_string();
        if let Some(index) = self.joined.get(&text) {
            return Ok(Node::Rule(*index));
        }
        let name = place.rsplit('/').next().unwrap_or("json");
        let rule = self.builder.reserve_rule(&format!("json-{name}"));
        self.joined.insert(text, rule);
        self.pending.push(PendingSchema { schema: Cow::Owned(merged), place: place.to_owned(), rule });
        Ok(Node::Rule(rule))
    }

    /// Checks that no rule leads back to itself before it reads a character.
    fn check_circles(&self) -> Result<()> {
        let mut is_done = vec![false; self.builder.rules.len()];
        let starts = self.references.iter().map(|(reference, index)| (&**reference, *index));
        let joined = self.joined.values().map(|index| ("#", *index));
        for (reference, start) in starts.chain(joined) {
            // Rules on the way, each with those that it may still begin with.
            let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
            let mut is_open = BTreeSet::new();
            let mut next = Some(start);
            loop {
                if let Some(index) = next.take().filter(|index| !is_done[*index]) {
                    if !is_open.insert(index) {
                        return Err(Error::invalid(format!(
                            "the reference `{reference}` leads to itself: a schema that contains itself does so \
                             within an array or an object"
                        )));
                    }
                    let mut first = Vec::new();
                    collect_first(&self.builder.rules[index].1, &mut first);
                    path.push((index, first));
                }
                let Some((index, first)) = path.last_mut() else { break };
                next = first.pop();
                if next.is_none() {
                    is_done[*index] = true;
                    is_open.remove(index);
                    path.pop();
                }
            }
        }
        Ok(())
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
                if let ([branch], true) = (&**branches, is_plain) {
                    return self.value(branch, &format!("{place}/allOf/0"), level + 1).map(Some);
                }
                let mut merged = rest;
                for branch in branches {
                    let branch = self.follow(branch, place)?;
                    let (next, lost) = merge(&merged, &branch);
                    self.builder.note_lost(&lost, place);
                    self.builder.count(weight(&next), place)?;
                    merged = next;
                }
                if branches.iter().any(|branch| branch.get("$ref").is_some()) {
                    return self.join_later(merged, place).map(Some);
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
                self.builder.note_lost(&lost, &branch_place);
                self.builder.count(weight(&merged), &branch_place)?;
                parts.push(self.value(&merged, &branch_place, level + 1)?);
            }
            if key == "oneOf" && branches.len() > 1 && !are_distinct(&rest, branches) {
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
                resolve(self.root, reference, place).cloned()
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
            constant.is_none_or(|constant| constant == *value) && types.is_none_or_matches(value)
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
        if matches!(name, "integer" | "number") {
            self.builder.restrict(number::RESTRICTION);
        }
        Ok(match name {
            "null" => Node::literal("null"),
            "boolean" => Node::choice([Node::literal("true"), Node::literal("false")]),
            "integer" => self.counted(number::integer(bounds(fields, 1)), place)?,
            "number" => {
                for key in ["exclusiveMinimum", "exclusiveMaximum"] {
                    if fields.contains_key(key) {
                        let text = format!("`{key}`: the bound itself is accepted");
                        self.builder.note(NoteKind::UncheckedKeyword, &format!("{place}/{key}"), &text);
                    }
                }
                self.counted(number::number(bounds(fields, 0)), place)?
            }
            "string" => {
                let (min, max) = self.counts(number("minLength"), number("maxLength"), "Length", place);
                let is_filled = fields.get("pattern").is_some_and(|pattern| pattern == "\\S");
                if is_filled && max.is_some() {
                    self.builder
                        .restrict("a text of bounded length begins with a character that is not white space");
                }
                self.builder.string(self.style, StringBounds { min, max, is_filled })
            }
            "array" => self.array(fields, place, level)?,
            _ => self.object(fields, place, level)?,
        })
    }

    /// A node of which the builder counts all parts.
    fn counted(&mut self, node: Node, place: &str) -> Result<Node> {
        self.builder.count(node.size(), place)?;
        Ok(node)
    }

    /// Bounds of a repetition; larger ones are noted and left out.
    pub(super) fn counts(
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

/// Bounds of a number; bounds with a fraction and very large ones are left out. An exclusive bound is `step` from
/// the range.
fn bounds(fields: &Map<String, Value>, step: i64) -> NumberBounds {
    let whole = |key: &str| fields.get(key).and_then(whole_bound);
    let min = [whole("minimum"), whole("exclusiveMinimum").map(|number| number + step)];
    let max = [whole("maximum"), whole("exclusiveMaximum").map(|number| number - step)];
    NumberBounds { min: min.into_iter().flatten().max(), max: max.into_iter().flatten().min() }
}

/// A bound that the grammar states.
fn whole_bound(value: &Value) -> Option<i64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
    // Numbers of this size are exact.
    (number.abs() < 9.0e14).then_some(number as i64)
}

/// Number of values in a schema.
pub(super) fn weight(schema: &Value) -> usize {
    1 + match schema {
        Value::Object(fields) => fields.values().map(weight).sum(),
        Value::Array(items) => items.iter().map(weight).sum(),
        _ => 0,
    }
}

pub(super) fn is_annotation(key: &str) -> bool {
    ANNOTATIONS.contains(&key) || key.starts_with("x-")
}

/// Adds the rules that a text of the node may begin with.
fn collect_first(node: &Node, found: &mut Vec<usize>) {
    match node {
        Node::Rule(index) => found.push(*index),
        Node::Choice(parts) => parts.iter().for_each(|part| collect_first(part, found)),
        // All other values of JSON begin with a character of their own.
        _ => {}
    }
}

/// Returns whether no value can satisfy two of the branches: they have different types, and the objects have
/// different constants in a member that they require.
fn are_distinct(rest: &Value, branches: &[Value]) -> bool {
    let mut types = BTreeSet::new();
    let mut objects: Vec<&Value> = Vec::new();
    for branch in branches {
        match branch.get("type").or_else(|| rest.get("type")).and_then(Value::as_str) {
            Some("object") => objects.push(branch),
            Some("integer" | "number") if !types.insert("number") => return false,
            Some("integer" | "number") => {}
            Some(name) if types.insert(name) => {}
            _ => return false,
        }
    }
    let requires = |schema: &Value, name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.into_iter().flatten().any(|required| required == name)
    };
    let constant = |branch: &Value, name: &str| {
        let value = branch.get("properties")?.get(name)?.get("const")?;
        // Numbers of different spellings may be equal.
        let value = value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string());
        (requires(branch, name) || requires(rest, name)).then_some(value)
    };
    let [first, _, ..] = &objects[..] else { return true };
    let names = first.get("properties").and_then(Value::as_object);
    names.into_iter().flatten().any(|(name, _)| {
        let mut values = BTreeSet::new();
        objects.iter().all(|branch| constant(branch, name).is_some_and(|value| values.insert(value)))
    })
}

pub(super) fn escape_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
