//! What it costs to hold a value against a schema. References may double the work at each step, so that a short
//! schema takes time without bound; the cost is worked out before, each place once.

use std::collections::HashMap;
use std::iter;

use serde_json::{Map, Value};

/// Most steps of one check; each takes about as long as looking at a field.
pub(super) const STEPS: u64 = 4_000_000;
/// Most schemas within each other on the way to one place of a value, references counted.
const DEPTH: usize = 512;
/// Bytes that a pattern reads in one step, about.
const BYTES: usize = 32;

/// Keywords whose schema, or each schema in whose list, meets the same value.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords whose schemas meet the same value if it has a field.
const DEPENDENT: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose schema, or each schema in whose list, meets elements of a list.
const ELEMENTS: [&str; 5] = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
/// Keywords whose schema meets fields of an object.
const FIELDS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// What is known of a schema before any value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    nodes: u64,
    refers: bool,
    /// Whether a schema in it has an address of its own, against which references in it are read.
    addressed: bool,
}

impl Size {
    pub(super) fn of(schema: &Value) -> Size {
        let mut size = Size { nodes: 0, refers: false, addressed: false };
        let version = schema.get("$schema").and_then(Value::as_str);
        let address = if version.is_some_and(|version| version.contains("draft-04")) { "id" } else { "$id" };
        walk(schema, &mut |value| {
            size.nodes += 1;
            let Some(fields) = value.as_object() else { return };
            size.refers |= REFERENCES.iter().any(|key| fields.contains_key(*key));
            let inner = !std::ptr::eq(value, schema);
            size.addressed |= inner && fields.get(address).is_some_and(Value::is_string);
        });
        size
    }

    /// Whether `value` can be held against `schema`, whose size this is, in [`STEPS`].
    pub(super) fn allows(self, schema: &Value, value: &Value) -> bool {
        // Without references each schema meets each place once at most.
        let mut places = 0u64;
        walk(value, &mut |value| places += 1 + value.as_str().map_or(0, steps));
        if !self.refers && self.nodes.saturating_mul(places) <= STEPS {
            return true;
        }
        if self.refers && self.addressed {
            return false;
        }
        let mut cost = Cost { root: schema, known: HashMap::new(), visits: 0 };
        cost.of(schema, value, 0).is_some_and(|steps| steps <= STEPS)
    }
}

/// `None` anywhere: too much.
struct Cost<'a> {
    root: &'a Value,
    /// By the addresses of a schema that is referred to and of a value; nothing while it is being worked out.
    known: HashMap<(*const Value, *const Value), Option<u64>>,
    /// Steps of working it out.
    visits: u64,
}

impl<'a> Cost<'a> {
    fn of(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> Option<u64> {
        self.visits += 1;
        if depth > DEPTH || self.visits > STEPS {
            return None;
        }
        let Some(fields) = schema.as_object() else { return Some(1) };
        let mut steps = self.in_place(fields, value, depth + 1)?;
        let text = value.as_str().filter(|_| fields.contains_key("pattern"));
        steps = add(steps, text.map_or(0, self::steps))?;
        match value {
            Value::Object(members) => steps = add(steps, self.members(fields, members, depth + 1)?)?,
            Value::Array(items) => steps = add(steps, self.elements(fields, items, depth + 1)?)?,
            _ => {}
        }
        // To know what no other keyword has looked at, they are asked again for each place.
        let places = match value {
            Value::Object(members) if fields.contains_key("unevaluatedProperties") => members.len(),
            Value::Array(items) if fields.contains_key("unevaluatedItems") => items.len(),
            _ => 0,
        };
        within(steps.saturating_mul(1 + places as u64))
    }

    fn in_place(&mut self, fields: &'a Map<String, Value>, value: &'a Value, depth: usize) -> Option<u64> {
        let mut steps = 1 + fields.len() as u64;
        for target in REFERENCES.iter().filter_map(|key| fields.get(*key)?.as_str()) {
            steps = add(steps, self.referred(target, value, depth)?)?;
        }
        for schema in IN_PLACE.iter().filter_map(|key| fields.get(*key)).flat_map(each) {
            steps = add(steps, self.of(schema, value, depth)?)?;
        }
        let listed = fields.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        let dependent = DEPENDENT.iter().filter_map(|key| fields.get(*key)?.as_object()).flatten();
        for (_, schema) in dependent.filter(|(key, _)| value.get(key).is_some()) {
            steps = add(steps, self.of(schema, value, depth)?)?;
        }
        add(steps, listed as u64)
    }

    fn members(
        &mut self,
        fields: &'a Map<String, Value>,
        members: &'a Map<String, Value>,
        depth: usize,
    ) -> Option<u64> {
        let object = |key: &str| fields.get(key).and_then(Value::as_object);
        let (properties, patterns) = (object("properties"), object("patternProperties"));
        let mut steps = 0;
        for (key, value) in members {
            let named = properties.and_then(|properties| properties.get(key));
            // Whether a pattern matches is not looked at: it may.
            let matched = patterns.into_iter().flat_map(Map::values);
            let others = FIELDS.iter().filter_map(|key| fields.get(*key));
            for schema in named.into_iter().chain(matched).chain(others) {
                steps = add(steps, self.of(schema, value, depth)?)?;
            }
            steps = add(steps, patterns.map_or(0, Map::len) as u64 * (1 + self::steps(key)))?;
            if let Some(names) = fields.get("propertyNames") {
                steps = add(steps, self.of(names, &Value::Null, depth)? + self::steps(key))?;
            }
        }
        Some(steps)
    }

    fn elements(&mut self, fields: &'a Map<String, Value>, items: &'a [Value], depth: usize) -> Option<u64> {
        let mut steps = 0;
        for key in ELEMENTS {
            match fields.get(key) {
                // Each schema for one element.
                Some(Value::Array(schemas)) => {
                    for (schema, item) in iter::zip(schemas, items) {
                        steps = add(steps, self.of(schema, item, depth)?)?;
                    }
                }
                Some(schema) => {
                    for item in items {
                        steps = add(steps, self.of(schema, item, depth)?)?;
                    }
                }
                None => {}
            }
        }
        Some(steps)
    }

    fn referred(&mut self, target: &str, value: &'a Value, depth: usize) -> Option<u64> {
        let schema = self.resolve(target)?;
        let place = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        // A reference that leads back here without going into the value has no end.
        self.known.insert(place, None);
        let steps = self.of(schema, value, depth);
        self.known.insert(place, steps);
        steps
    }

    /// What a reference within the schema leads to.
    fn resolve(&self, target: &str) -> Option<&'a Value> {
        let (base, fragment) = target.split_once('#').unwrap_or((target, ""));
        let own = self.root.get("$id").or_else(|| self.root.get("id")).and_then(Value::as_str);
        if !base.is_empty() && own.map(|id| id.trim_end_matches('#')) != Some(base) {
            return None;
        }
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&decoded(fragment)?);
        }
        // Of several nobody knows which is meant.
        let (mut found, mut several) = (None, false);
        walk(self.root, &mut |value| {
            let anchor = |key| value.get(key).and_then(Value::as_str) == Some(fragment);
            if anchor("$anchor") || anchor("$dynamicAnchor") {
                several |= found.replace(value).is_some();
            }
        });
        found.filter(|_| !several)
    }
}

fn each(value: &Value) -> &[Value] {
    match value {
        Value::Array(schemas) => schemas,
        schema => std::slice::from_ref(schema),
    }
}

fn add(one: u64, other: u64) -> Option<u64> {
    within(one.saturating_add(other))
}

fn within(steps: u64) -> Option<u64> {
    (steps <= STEPS).then_some(steps)
}

/// Steps of reading a text.
fn steps(text: &str) -> u64 {
    (text.len() / BYTES) as u64
}

/// A fragment of an address as a JSON Pointer.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|c| char::from(c).to_digit(16));
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// All values in a value, itself first. Values were read with a bound on their depth.
fn walk<'a>(value: &'a Value, see: &mut dyn FnMut(&'a Value)) {
    see(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|value| walk(value, see)),
        Value::Array(items) => items.iter().for_each(|value| walk(value, see)),
        _ => {}
    }
}
