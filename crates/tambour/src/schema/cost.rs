//! Estimates the cost of checking a value against a schema, in time and memory. References can double the
//! work at each step, so a short schema can take unbounded time and memory. The estimate visits each place
//! once.
//!
//! Deciding whether a value is valid takes only time. Reporting faults takes memory too: alternatives
//! (`anyOf`, `oneOf`) report the faults under each alternative, recursively, and each fault contains its
//! places.

use std::collections::HashMap;
use std::iter;

use serde_json::{Map, Value};

/// Maximum number of steps of one check; a step takes about as long as looking at a field.
pub(super) const MAX_CHECK_STEPS: u64 = 2_000_000;
/// Maximum size in bytes of the faults collected for a report.
pub(super) const MAX_REPORT_BYTES: u64 = 16 << 20;
/// Maximum nesting depth of schemas on the path to one place of a value, through references too.
const MAX_SCHEMA_DEPTH: usize = 512;
/// Approximate number of bytes that a pattern reads in one step.
const BYTES_PER_STEP: usize = 32;

/// Bytes of a fault without the places that it contains.
const FAULT_BYTES: u64 = 512;
/// Bytes of a place in a schema, for each schema on the path.
const PLACE_BYTES: u64 = 64;
/// Approximate bytes of a value from the schema that a fault quotes.
const QUOTED_BYTES: u64 = 96;
/// Approximate bytes of faults collected in the time of one step.
pub(super) const FAULT_BYTES_PER_STEP: u64 = 64;

/// Keywords with a schema, or list of schemas, for the same value; all their faults count.
const ALL_KEYWORDS: [&str; 3] = ["allOf", "then", "else"];
/// Keywords of alternatives, whose faults are nested in one fault.
const ALTERNATIVE_KEYWORDS: [&str; 2] = ["anyOf", "oneOf"];
/// Keywords with a schema that is only tested and reports no faults.
const TESTING_KEYWORDS: [&str; 2] = ["not", "if"];
/// Keywords with schemas for the same value if it has a certain field.
const DEPENDENT_KEYWORDS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords with a schema, or list of schemas, for elements of a list.
const ELEMENT_KEYWORDS: [&str; 4] = ["items", "prefixItems", "additionalItems", "unevaluatedItems"];
/// Keywords with a schema for fields of an object.
const FIELD_KEYWORDS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
/// Keywords that refer to another schema for the same value.
pub(super) const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that find at most one fault each. `type`, `enum`, `required` and `dependentRequired` are not among
/// them: `estimate_assertions` counts their faults.
const ASSERTION_KEYWORDS: [&str; 26] = [
    "const",
    "contains",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "maxContains",
    "maximum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minContains",
    "minimum",
    "minItems",
    "minLength",
    "minProperties",
    "multipleOf",
    "not",
    "pattern",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "contentEncoding",
    "contentMediaType",
    "additionalItems",
];

/// Cost of a check.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CheckCost {
    /// Steps to decide whether the value is valid.
    pub(super) steps: u64,
    /// Bytes of all possible faults, plus the steps to find them, converted by [`FAULT_BYTES_PER_STEP`].
    pub(super) all_fault_bytes: u64,
    /// Bytes of the fault that is found first, including nested ones.
    pub(super) first_fault_bytes: u64,
}

/// Size of a schema, independent of any value.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaSize {
    /// Number of JSON values in the schema.
    nodes: u64,
    has_references: bool,
    /// True if a nested schema has its own address, which is the base of references in it.
    has_nested_address: bool,
}

impl SchemaSize {
    /// Measures a schema in one pass.
    pub(super) fn measure(schema: &Value) -> SchemaSize {
        let mut size = SchemaSize { nodes: 0, has_references: false, has_nested_address: false };
        let version = schema.get("$schema").and_then(Value::as_str);
        let id_key = if version.is_some_and(|version| version.contains("draft-04")) { "id" } else { "$id" };
        visit_values(schema, &mut |value| {
            size.nodes += 1;
            let Some(fields) = value.as_object() else { return };
            size.has_references |= REFERENCE_KEYWORDS.iter().any(|key| fields.contains_key(*key));
            let is_nested = !std::ptr::eq(value, schema);
            size.has_nested_address |= is_nested && fields.get(id_key).is_some_and(Value::is_string);
        });
        size
    }

    /// Returns the steps to decide whether `value` is valid under `schema`, whose size is `self`; `None` in
    /// the same cases as [`SchemaSize::estimate_cost`].
    pub(super) fn count_steps(self, schema: &Value, value: &Value, max_steps: u64) -> Option<u64> {
        // Without references, each schema meets each place at most once.
        let mut places = 0u64;
        visit_values(value, &mut |value| places += 1 + value.as_str().map_or(0, text_steps));
        let product = self.nodes.saturating_mul(places);
        if !self.has_references && product <= max_steps.min(FEW_STEPS) {
            return Some(product);
        }
        self.estimate_cost(schema, value, max_steps).map(|cost| cost.steps)
    }

    /// Returns the cost of checking `value`; `None` if it takes more than `max_steps`, or cannot be
    /// estimated, for example because references have several bases.
    pub(super) fn estimate_cost(self, schema: &Value, value: &Value, max_steps: u64) -> Option<CheckCost> {
        if self.has_references && self.has_nested_address {
            return None;
        }
        CostEstimator::new(schema, max_steps).estimate(schema, value, CheckPosition::default())
    }

    /// Returns the pointer of a place in `schema` whose check never ends, or takes more than
    /// [`MAX_CHECK_STEPS`] for any value.
    pub(super) fn find_endless(self, schema: &Value) -> Option<String> {
        if !self.has_references || self.has_nested_address {
            return None;
        }
        let mut estimator = CostEstimator::new(schema, MAX_CHECK_STEPS);
        find_endless_in(&mut estimator, schema, &mut String::new())
    }
}

/// Number of steps up to which a rough upper bound is returned, since an exact count is not worthwhile.
const FEW_STEPS: u64 = 4096;

/// Like [`SchemaSize::find_endless`], for the part `value` of the schema, which is at `pointer`.
fn find_endless_in<'a>(
    estimator: &mut CostEstimator<'a>,
    value: &'a Value,
    pointer: &mut String,
) -> Option<String> {
    let length = pointer.len();
    match value {
        Value::Object(fields) => {
            let is_schema = fields.keys().any(|key| {
                let key = key.as_str();
                REFERENCE_KEYWORDS.contains(&key)
                    || ALL_KEYWORDS.contains(&key)
                    || ALTERNATIVE_KEYWORDS.contains(&key)
                    || TESTING_KEYWORDS.contains(&key)
            });
            if is_schema && estimator.estimate(value, &Value::Null, CheckPosition::default()).is_none() {
                return Some(pointer.clone());
            }
            for (key, value) in fields {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                let found = find_endless_in(estimator, value, pointer);
                if found.is_some() {
                    return found;
                }
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                pointer.push_str(&format!("/{at}"));
                let found = find_endless_in(estimator, value, pointer);
                if found.is_some() {
                    return found;
                }
                pointer.truncate(length);
            }
        }
        _ => {}
    }
    None
}

/// Position of a check on its path to one place.
#[derive(Clone, Copy, Default)]
struct CheckPosition {
    /// Number of schemas on the path.
    depth: usize,
    /// Bytes of the pointer into the value.
    pointer_bytes: u64,
}

impl CheckPosition {
    /// Position in a nested schema for the same value.
    fn in_schema(self) -> CheckPosition {
        CheckPosition { depth: self.depth + 1, ..self }
    }

    /// Position in a nested schema for a part of the value, whose key or index has `key_len` characters.
    fn in_value(self, key_len: usize) -> CheckPosition {
        CheckPosition { depth: self.depth + 1, pointer_bytes: self.pointer_bytes + 1 + key_len as u64 }
    }

    /// Returns the bytes of a fault at this position.
    fn fault_bytes(self) -> u64 {
        FAULT_BYTES + 2 * self.pointer_bytes + 2 * PLACE_BYTES * self.depth as u64
    }
}

/// Estimator of the cost of a check. Its methods return `None` if the cost exceeds the limit.
struct CostEstimator<'a> {
    root: &'a Value,
    max_steps: u64,
    /// Costs by the addresses of a referenced schema and a value; `None` while a cost is being computed, and
    /// if the cost exceeds the limit.
    memo: HashMap<(*const Value, *const Value), Option<CheckCost>>,
    /// Bytes of values that faults quote, by address.
    quoted_bytes: HashMap<*const Value, u64>,
    /// Number of schemas visited by the estimate itself.
    visits: u64,
}

impl<'a> CostEstimator<'a> {
    fn new(root: &'a Value, max_steps: u64) -> CostEstimator<'a> {
        CostEstimator { root, max_steps, memo: HashMap::new(), quoted_bytes: HashMap::new(), visits: 0 }
    }

    fn estimate(
        &mut self,
        schema: &'a Value,
        value: &'a Value,
        position: CheckPosition,
    ) -> Option<CheckCost> {
        self.visits += 1;
        if position.depth > MAX_SCHEMA_DEPTH || self.visits > MAX_CHECK_STEPS {
            return None;
        }
        let Some(fields) = schema.as_object() else {
            let fault_bytes = if schema == &Value::Bool(false) { position.fault_bytes() } else { 0 };
            return Some(CheckCost {
                steps: 1,
                all_fault_bytes: fault_bytes,
                first_fault_bytes: fault_bytes,
            });
        };
        let mut cost = self.estimate_assertions(fields, value, position)?;
        self.estimate_in_place(&mut cost, fields, value, position.in_schema())?;
        match value {
            Value::Object(members) => self.estimate_members(&mut cost, fields, members, position)?,
            Value::Array(items) => self.estimate_elements(&mut cost, fields, items, position)?,
            _ => {}
        }
        // To find what no other keyword has evaluated, the other keywords are evaluated again for each place.
        let place_count = match value {
            Value::Object(members) if fields.contains_key("unevaluatedProperties") => members.len(),
            Value::Array(items) if fields.contains_key("unevaluatedItems") => items.len(),
            _ => 0,
        };
        let repeated_steps = cost.steps.saturating_mul(place_count as u64);
        self.add_test(&mut cost, repeated_steps)?;
        Some(cost)
    }

    /// Returns the cost of keywords that look only at the value itself.
    fn estimate_assertions(
        &mut self,
        fields: &'a Map<String, Value>,
        value: &'a Value,
        position: CheckPosition,
    ) -> Option<CheckCost> {
        let mut steps = 1 + fields.len() as u64;
        let text = value.as_str().filter(|_| fields.contains_key("pattern"));
        steps += text.map_or(0, self::text_steps);
        let mut fault_count =
            fields.keys().filter(|key| ASSERTION_KEYWORDS.contains(&key.as_str())).count() as u64;
        fault_count += u64::from(fields.get("type").is_some_and(|types| !has_type(types, value)));
        let mut quoted_bytes = fields.get("const").map_or(0, |value| self.quoted_size(value));
        if let Some(values) = fields.get("enum") {
            steps += values.as_array().map_or(0, Vec::len) as u64;
            fault_count += 1;
            quoted_bytes += self.quoted_size(values);
        }
        if let (Some(Value::Array(names)), Value::Object(members)) = (fields.get("required"), value) {
            steps += names.len() as u64;
            let missing_names =
                names.iter().filter(|name| name.as_str().is_none_or(|name| !members.contains_key(name)));
            fault_count += missing_names.count() as u64;
        }
        if let (Some(Value::Object(names)), Value::Object(_)) = (fields.get("dependentRequired"), value) {
            let name_count =
                names.values().filter_map(Value::as_array).map(|names| names.len() as u64).sum::<u64>();
            steps += name_count;
            fault_count += name_count;
        }
        // Faults name the fields that no schema covers.
        let members =
            value.as_object().filter(|_| FIELD_KEYWORDS.iter().any(|key| fields.contains_key(*key)));
        quoted_bytes +=
            members.into_iter().flat_map(Map::keys).map(|key| QUOTED_BYTES + key.len() as u64).sum::<u64>();
        let all_fault_bytes = fault_count.saturating_mul(position.fault_bytes()).saturating_add(quoted_bytes);
        let first_fault_bytes =
            if fault_count > 0 { position.fault_bytes().saturating_add(quoted_bytes) } else { 0 };
        self.check_limit(CheckCost { steps, all_fault_bytes, first_fault_bytes })
    }

    /// Adds the cost of the schemas for the same value: references, alternatives, tests and the like.
    fn estimate_in_place(
        &mut self,
        cost: &mut CheckCost,
        fields: &'a Map<String, Value>,
        value: &'a Value,
        position: CheckPosition,
    ) -> Option<()> {
        for target in REFERENCE_KEYWORDS.iter().filter_map(|key| fields.get(*key)?.as_str()) {
            let target_cost = self.estimate_reference(target, value, position)?;
            self.add(cost, target_cost)?;
        }
        for schema in ALL_KEYWORDS.iter().filter_map(|key| fields.get(*key)).flat_map(as_list) {
            let schema_cost = self.estimate(schema, value, position)?;
            self.add(cost, schema_cost)?;
        }
        for schemas in ALTERNATIVE_KEYWORDS.iter().filter_map(|key| fields.get(*key)) {
            let (mut steps, mut fault_bytes, mut has_infallible) = (0u64, position.fault_bytes(), false);
            for schema in as_list(schemas) {
                let branch_cost = self.estimate(schema, value, position)?;
                steps = steps.saturating_add(branch_cost.steps);
                has_infallible |= branch_cost.all_fault_bytes == 0;
                // A valid alternative is tested once more before a fault is reported.
                fault_bytes = fault_bytes
                    .saturating_add(branch_cost.all_fault_bytes)
                    .saturating_add(branch_cost.steps.saturating_mul(FAULT_BYTES_PER_STEP));
            }
            // One alternative that cannot fail is enough for `anyOf`.
            let is_any_of = fields.get("anyOf").is_some_and(|any_of| std::ptr::eq(any_of, schemas));
            let fault_bytes = if has_infallible && is_any_of { 0 } else { fault_bytes };
            self.add(
                cost,
                CheckCost { steps, all_fault_bytes: fault_bytes, first_fault_bytes: fault_bytes },
            )?;
        }
        for schema in TESTING_KEYWORDS.iter().filter_map(|key| fields.get(*key)) {
            let steps = self.estimate(schema, value, position)?.steps;
            self.add_test(cost, steps)?;
        }
        let dependent_schemas =
            DEPENDENT_KEYWORDS.iter().filter_map(|key| fields.get(*key)?.as_object()).flatten();
        for (_, schema) in dependent_schemas.filter(|(key, _)| value.get(key).is_some()) {
            let schema_cost = self.estimate(schema, value, position)?;
            self.add(cost, schema_cost)?;
        }
        Some(())
    }

    /// Adds the cost of the schemas for the fields of an object.
    fn estimate_members(
        &mut self,
        cost: &mut CheckCost,
        fields: &'a Map<String, Value>,
        members: &'a Map<String, Value>,
        position: CheckPosition,
    ) -> Option<()> {
        let object = |key: &str| fields.get(key).and_then(Value::as_object);
        let (properties, patterns) = (object("properties"), object("patternProperties"));
        for (key, value) in members {
            let position = position.in_value(key.len());
            let own_schema = properties.and_then(|properties| properties.get(key));
            // Patterns are not evaluated here: any of them may match.
            let pattern_schemas = patterns.into_iter().flat_map(Map::values);
            let additional_schema =
                FIELD_KEYWORDS.iter().filter_map(|key| fields.get(*key)).filter(|schema| schema.is_object());
            for schema in own_schema.into_iter().chain(pattern_schemas).chain(additional_schema) {
                let schema_cost = self.estimate(schema, value, position)?;
                self.add(cost, schema_cost)?;
            }
            let pattern_steps = patterns.map_or(0, Map::len) as u64 * (1 + self::text_steps(key));
            self.add(cost, CheckCost { steps: pattern_steps, ..CheckCost::default() })?;
            if let Some(name_schema) = fields.get("propertyNames") {
                // `null` stands for the name, whose length is added.
                let mut name_cost = self.estimate(name_schema, &Value::Null, position)?;
                name_cost.steps += self::text_steps(key);
                self.add(cost, name_cost)?;
            }
        }
        Some(())
    }

    /// Adds the cost of the schemas for the elements of a list.
    fn estimate_elements(
        &mut self,
        cost: &mut CheckCost,
        fields: &'a Map<String, Value>,
        items: &'a [Value],
        position: CheckPosition,
    ) -> Option<()> {
        let element_position =
            |index: usize| position.in_value(1 + index.checked_ilog10().unwrap_or(0) as usize);
        for key in ELEMENT_KEYWORDS {
            match fields.get(key) {
                // A list of schemas, one for each element.
                Some(Value::Array(schemas)) => {
                    for (index, (schema, item)) in iter::zip(schemas, items).enumerate() {
                        let element_cost = self.estimate(schema, item, element_position(index))?;
                        self.add(cost, element_cost)?;
                    }
                }
                Some(schema) => {
                    for (index, item) in items.iter().enumerate() {
                        let element_cost = self.estimate(schema, item, element_position(index))?;
                        self.add(cost, element_cost)?;
                    }
                }
                None => {}
            }
        }
        if let Some(schema) = fields.get("contains") {
            for (index, item) in items.iter().enumerate() {
                let steps = self.estimate(schema, item, element_position(index))?.steps;
                self.add_test(cost, steps)?;
            }
        }
        Some(())
    }

    /// Adds the cost of another schema.
    fn add(&self, cost: &mut CheckCost, addend: CheckCost) -> Option<()> {
        let CheckCost { steps, all_fault_bytes, first_fault_bytes } = *cost;
        *cost = self.check_limit(CheckCost {
            steps: steps.saturating_add(addend.steps),
            all_fault_bytes: all_fault_bytes.saturating_add(addend.all_fault_bytes),
            first_fault_bytes: first_fault_bytes.max(addend.first_fault_bytes),
        })?;
        Some(())
    }

    /// Adds the cost of a schema that is only tested and reports no faults.
    fn add_test(&self, cost: &mut CheckCost, steps: u64) -> Option<()> {
        self.add(
            cost,
            CheckCost {
                steps,
                all_fault_bytes: steps.saturating_mul(FAULT_BYTES_PER_STEP),
                first_fault_bytes: 0,
            },
        )
    }

    /// Returns the cost, or `None` beyond the limit.
    fn check_limit(&self, cost: CheckCost) -> Option<CheckCost> {
        (cost.steps <= self.max_steps).then_some(cost)
    }

    /// Returns the bytes of a value that faults quote.
    fn quoted_size(&mut self, value: &'a Value) -> u64 {
        *self.quoted_bytes.entry(std::ptr::from_ref(value)).or_insert_with(|| {
            let mut bytes = 0u64;
            visit_values(value, &mut |value| {
                bytes += QUOTED_BYTES + value.as_str().map_or(0, str::len) as u64
            });
            bytes
        })
    }

    fn estimate_reference(
        &mut self,
        target: &str,
        value: &'a Value,
        position: CheckPosition,
    ) -> Option<CheckCost> {
        let schema = self.resolve(target)?;
        let addresses = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(memo_cost) = self.memo.get(&addresses) {
            return *memo_cost;
        }
        // A reference that returns here without descending into the value never ends: it finds this `None`.
        self.memo.insert(addresses, None);
        let cost = self.estimate(schema, value, position);
        self.memo.insert(addresses, cost);
        cost
    }

    /// Resolves a reference within the schema.
    fn resolve(&self, target: &str) -> Option<&'a Value> {
        let (base, fragment) = target.split_once('#').unwrap_or((target, ""));
        let root_id = self.root.get("$id").or_else(|| self.root.get("id")).and_then(Value::as_str);
        if !base.is_empty() && root_id.map(|id| id.trim_end_matches('#')) != Some(base) {
            return None;
        }
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&decode_fragment(fragment)?);
        }
        // An anchor that occurs several times is ambiguous.
        let (mut found, mut is_ambiguous) = (None, false);
        visit_values(self.root, &mut |value| {
            let has_anchor = |key| value.get(key).and_then(Value::as_str) == Some(fragment);
            if has_anchor("$anchor") || has_anchor("$dynamicAnchor") {
                is_ambiguous |= found.replace(value).is_some();
            }
        });
        found.filter(|_| !is_ambiguous)
    }
}

/// Returns true if a value certainly has one of `types`. For a number such as `1.0`, `integer` is left to
/// the check.
fn has_type(types: &Value, value: &Value) -> bool {
    as_list(types).iter().filter_map(Value::as_str).any(|name| match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || name == "integer" && !number.is_f64(),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    })
}

/// Returns the schemas in `value`, which is a list of schemas or a single one.
fn as_list(value: &Value) -> &[Value] {
    match value {
        Value::Array(schemas) => schemas,
        schema => std::slice::from_ref(schema),
    }
}

/// Returns the steps to read a text.
fn text_steps(text: &str) -> u64 {
    (text.len() / BYTES_PER_STEP) as u64
}

/// Decodes a URI fragment to a JSON Pointer; `None` if an escape is wrong.
pub(super) fn decode_fragment(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut unread = fragment.bytes();
    while let Some(byte) = unread.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || unread.next().and_then(|c| char::from(c).to_digit(16));
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Visits all values in a value, itself first. Recursion is bounded because values are parsed with a depth
/// limit.
fn visit_values<'a>(value: &'a Value, visit: &mut dyn FnMut(&'a Value)) {
    visit(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|value| visit_values(value, visit)),
        Value::Array(items) => items.iter().for_each(|value| visit_values(value, visit)),
        _ => {}
    }
}
