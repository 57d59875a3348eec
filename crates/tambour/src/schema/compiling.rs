//! Estimates the cost of compiling a schema. To find what no other keyword has evaluated
//! (`unevaluatedProperties`, `unevaluatedItems`), the adjacent schemas are compiled once more for each path
//! that leads to them, through references too, so a short schema can take unbounded time and memory. The
//! estimate visits each place once.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::references::{DATA, References, each};

/// Most schemas that may be compiled.
pub(super) const COMPILED: u64 = 50_000;

/// Keywords that cause schemas to be compiled again.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// Keywords with schemas for the same value.
const BRANCHES: [&str; 6] = ["allOf", "anyOf", "oneOf", "if", "then", "else"];
/// Keywords with schemas that are compiled again themselves, but not the schemas nested in them.
const OTHERS: [&str; 6] = [
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "prefixItems",
];
/// Keywords with schemas that are compiled only where something refers to them.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Counts the schemas to compile, with memoized results.
pub(super) struct Compiling<'a, 'b> {
    references: &'b References<'a>,
    /// Counts by address; 1 while a count is being computed.
    whole: HashMap<*const Value, u64>,
    beside: HashMap<*const Value, u64>,
}

impl<'a, 'b> Compiling<'a, 'b> {
    pub(super) fn new(references: &'b References<'a>) -> Compiling<'a, 'b> {
        Compiling { references, whole: HashMap::new(), beside: HashMap::new() }
    }

    /// Returns the place of the first schema at which the total exceeds [`COMPILED`].
    pub(super) fn too_many(mut self, schema: &'a Value) -> Option<String> {
        let mut all = 0u64;
        let mut found = None;
        each(schema, &mut |pointer, fields| {
            if UNEVALUATED.iter().any(|key| fields.contains_key(*key)) {
                all = all.saturating_add(self.of_branches(fields));
                found = (all > COMPILED).then(|| pointer.to_owned());
            }
            found.is_none()
        });
        found
    }

    /// Counts the schemas compiled for one schema.
    fn whole(&mut self, schema: &'a Value) -> u64 {
        let place = std::ptr::from_ref(schema);
        if let Some(known) = self.whole.get(&place) {
            return *known;
        }
        self.whole.insert(place, 1);
        let mut count = 1u64;
        match schema {
            Value::Object(fields) => {
                let own = |key: &str| DATA.contains(&key) || DEFINITIONS.contains(&key);
                for (_, value) in fields.iter().filter(|(key, _)| !own(key)) {
                    count = count.saturating_add(self.within(value));
                }
                if UNEVALUATED.iter().any(|key| fields.contains_key(*key)) {
                    count = count.saturating_add(self.of_branches(fields));
                }
            }
            Value::Array(_) => count = self.within(schema),
            _ => {}
        }
        self.whole.insert(place, count);
        count
    }

    fn within(&mut self, value: &'a Value) -> u64 {
        match value {
            Value::Object(_) => self.whole(value),
            Value::Array(items) => {
                items.iter().fold(0, |all: u64, item| all.saturating_add(self.within(item)))
            }
            _ => 0,
        }
    }

    /// Counts the schemas compiled again to find what a schema evaluates.
    fn beside(&mut self, schema: &'a Value) -> u64 {
        let Value::Object(fields) = schema else { return 1 };
        let place = std::ptr::from_ref(schema);
        if let Some(known) = self.beside.get(&place) {
            return *known;
        }
        self.beside.insert(place, 1);
        let count = self.of_branches(fields);
        self.beside.insert(place, count);
        count
    }

    fn of_branches(&mut self, fields: &'a Map<String, Value>) -> u64 {
        let mut count = 1u64;
        let mut add = |more: u64| count = count.saturating_add(more);
        for schema in BRANCHES.iter().filter_map(|key| fields.get(*key)) {
            for schema in schema.as_array().map_or(std::slice::from_ref(schema), Vec::as_slice) {
                add(self.whole(schema));
                add(self.beside(schema));
            }
        }
        for schema in
            fields.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::values)
        {
            add(self.beside(schema));
        }
        for value in OTHERS.iter().filter_map(|key| fields.get(*key)) {
            add(self.within(value));
        }
        for target in self.references.targets(fields) {
            add(self.beside(target));
        }
        count
    }
}
