//! Estimates the cost of compiling a schema. To find what no other keyword has evaluated
//! (`unevaluatedProperties`, `unevaluatedItems`), the adjacent schemas are compiled once more for each path
//! that leads to them, through references too, so a short schema can take unbounded time and memory. The
//! estimate visits each place once.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::references::{DATA_KEYWORDS, SchemaReferences, visit_schemas};

/// Maximum number of schemas that may be compiled.
pub(super) const MAX_COMPILED: u64 = 50_000;

/// Keywords that cause schemas to be compiled again.
const UNEVALUATED_KEYWORDS: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// Keywords with schemas for the same value.
const BRANCH_KEYWORDS: [&str; 6] = ["allOf", "anyOf", "oneOf", "if", "then", "else"];
/// Keywords with schemas for parts of the value: these are compiled once more, but their branches and
/// references are not followed.
const SHALLOW_KEYWORDS: [&str; 6] = [
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "prefixItems",
];
/// Keywords with schemas that are compiled only where something refers to them.
const DEFINITION_KEYWORDS: [&str; 2] = ["$defs", "definitions"];

/// Counter of the schemas to compile, with memoized results.
pub(super) struct CompileCost<'a, 'b> {
    references: &'b SchemaReferences<'a>,
    /// Results of `count_full` by the address of the schema; 1 while a result is being computed.
    full_counts: HashMap<*const Value, u64>,
    /// Results of `count_repeated`, in the same way.
    repeated_counts: HashMap<*const Value, u64>,
}

impl<'a, 'b> CompileCost<'a, 'b> {
    pub(super) fn new(references: &'b SchemaReferences<'a>) -> CompileCost<'a, 'b> {
        CompileCost { references, full_counts: HashMap::new(), repeated_counts: HashMap::new() }
    }

    /// Returns the pointer of the first schema at which the total exceeds [`MAX_COMPILED`].
    pub(super) fn first_over_limit(mut self, schema: &'a Value) -> Option<String> {
        let mut total = 0u64;
        let mut found = None;
        visit_schemas(schema, &mut |pointer, fields| {
            if UNEVALUATED_KEYWORDS.iter().any(|key| fields.contains_key(*key)) {
                total = total.saturating_add(self.count_branches(fields));
                found = (total > MAX_COMPILED).then(|| pointer.to_owned());
            }
            found.is_none()
        });
        found
    }

    /// Counts the schemas compiled for one schema.
    fn count_full(&mut self, schema: &'a Value) -> u64 {
        let address = std::ptr::from_ref(schema);
        if let Some(known_count) = self.full_counts.get(&address) {
            return *known_count;
        }
        self.full_counts.insert(address, 1);
        let mut count = 1u64;
        match schema {
            Value::Object(fields) => {
                let is_no_schema =
                    |key: &str| DATA_KEYWORDS.contains(&key) || DEFINITION_KEYWORDS.contains(&key);
                for (_, value) in fields.iter().filter(|(key, _)| !is_no_schema(key)) {
                    count = count.saturating_add(self.count_nested(value));
                }
                if UNEVALUATED_KEYWORDS.iter().any(|key| fields.contains_key(*key)) {
                    count = count.saturating_add(self.count_branches(fields));
                }
            }
            Value::Array(_) => count = self.count_nested(schema),
            _ => {}
        }
        self.full_counts.insert(address, count);
        count
    }

    /// Counts the schemas compiled for the value of a keyword: a schema, or a list of schemas.
    fn count_nested(&mut self, value: &'a Value) -> u64 {
        match value {
            Value::Object(_) => self.count_full(value),
            Value::Array(items) => {
                items.iter().fold(0, |total: u64, item| total.saturating_add(self.count_nested(item)))
            }
            _ => 0,
        }
    }

    /// Counts the schemas compiled once more to find what a schema evaluates.
    fn count_repeated(&mut self, schema: &'a Value) -> u64 {
        let Value::Object(fields) = schema else { return 1 };
        let address = std::ptr::from_ref(schema);
        if let Some(known_count) = self.repeated_counts.get(&address) {
            return *known_count;
        }
        self.repeated_counts.insert(address, 1);
        let count = self.count_branches(fields);
        self.repeated_counts.insert(address, count);
        count
    }

    /// Counts the schemas compiled to find what the keywords in `fields` evaluate.
    fn count_branches(&mut self, fields: &'a Map<String, Value>) -> u64 {
        let mut count = 1u64;
        let mut add = |amount: u64| count = count.saturating_add(amount);
        for schema in BRANCH_KEYWORDS.iter().filter_map(|key| fields.get(*key)) {
            for schema in schema.as_array().map_or(std::slice::from_ref(schema), Vec::as_slice) {
                add(self.count_full(schema));
                add(self.count_repeated(schema));
            }
        }
        for schema in
            fields.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::values)
        {
            add(self.count_repeated(schema));
        }
        for value in SHALLOW_KEYWORDS.iter().filter_map(|key| fields.get(*key)) {
            add(self.count_nested(value));
        }
        for target in self.references.targets(fields) {
            add(self.count_repeated(target));
        }
        count
    }
}
