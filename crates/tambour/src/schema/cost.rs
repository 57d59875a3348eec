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

/// Most steps of one check; a step takes about as long as looking at a field.
pub(super) const STEPS: u64 = 2_000_000;
/// Most bytes of the faults collected for a report.
pub(super) const REPORT: u64 = 16 << 20;
/// Deepest nesting of schemas on the path to one place of a value, through references too.
const DEPTH: usize = 512;
/// Approximate number of bytes that a pattern reads in one step.
const BYTES: usize = 32;

/// Bytes of a fault without the places that it contains.
const FAULT: u64 = 512;
/// Bytes of a place in a schema, for each schema on the path.
const PLACE: u64 = 64;
/// Approximate bytes of a value from the schema that a fault quotes.
const QUOTED: u64 = 96;
/// Approximate bytes of faults collected in the time of one step.
pub(super) const AGAIN: u64 = 64;

/// Keywords with a schema, or list of schemas, for the same value, all of whose faults count.
const ALL: [&str; 3] = ["allOf", "then", "else"];
/// Keywords of alternatives, whose faults are nested in one fault.
const ALTERNATIVES: [&str; 2] = ["anyOf", "oneOf"];
/// Keywords with a schema that is only tested and reports no faults.
const DECIDING: [&str; 2] = ["not", "if"];
/// Keywords with schemas for the same value if it has a certain field.
const DEPENDENT: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords with a schema, or list of schemas, for elements of a list.
const ELEMENTS: [&str; 4] = ["items", "prefixItems", "additionalItems", "unevaluatedItems"];
/// Keywords with a schema for fields of an object.
const FIELDS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that find at most one fault each, except those examined more closely.
const ASSERTING: [&str; 26] = [
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
pub(super) struct Cost {
    /// Steps to decide whether the value is valid.
    pub(super) steps: u64,
    /// Bytes of all possible faults, including the time to find them.
    pub(super) all: u64,
    /// Bytes of the fault that is found first, including nested ones.
    pub(super) first: u64,
}

/// Size of a schema, independent of any value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    nodes: u64,
    refers: bool,
    /// True if a nested schema has its own address, which is the base of references in it.
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

    /// Returns the steps to decide whether `value` is valid under `schema`, whose size this is; `None` if
    /// more than `most`.
    pub(super) fn steps(self, schema: &Value, value: &Value, most: u64) -> Option<u64> {
        // Without references, each schema meets each place at most once.
        let mut places = 0u64;
        walk(value, &mut |value| places += 1 + value.as_str().map_or(0, steps));
        let product = self.nodes.saturating_mul(places);
        if !self.refers && product <= most.min(FEW) {
            return Some(product);
        }
        self.cost(schema, value, most).map(|cost| cost.steps)
    }

    /// Returns the full cost; `None` if it takes more than `most` steps.
    pub(super) fn cost(self, schema: &Value, value: &Value, most: u64) -> Option<Cost> {
        if self.refers && self.addressed {
            return None;
        }
        Walk::new(schema, most).of(schema, value, At::default())
    }

    /// Returns the pointer of a place in `schema` whose check never ends, or takes more than [`STEPS`] for
    /// any value.
    pub(super) fn endless(self, schema: &Value) -> Option<String> {
        if !self.refers || self.addressed {
            return None;
        }
        let mut walk = Walk::new(schema, STEPS);
        first_endless(&mut walk, schema, &mut String::new())
    }
}

/// Number of steps below which an exact count is not worthwhile.
const FEW: u64 = 4096;

fn first_endless<'a>(walk: &mut Walk<'a>, value: &'a Value, pointer: &mut String) -> Option<String> {
    let length = pointer.len();
    match value {
        Value::Object(fields) => {
            let is_schema = fields.keys().any(|key| {
                let key = key.as_str();
                REFERENCES.contains(&key)
                    || ALL.contains(&key)
                    || ALTERNATIVES.contains(&key)
                    || DECIDING.contains(&key)
            });
            if is_schema && walk.of(value, &Value::Null, At::default()).is_none() {
                return Some(pointer.clone());
            }
            for (key, value) in fields {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                let found = first_endless(walk, value, pointer);
                if found.is_some() {
                    return found;
                }
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                pointer.push_str(&format!("/{at}"));
                let found = first_endless(walk, value, pointer);
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
struct At {
    schemas: usize,
    /// Bytes of the pointer into the value.
    pointer: u64,
}

impl At {
    fn next(self) -> At {
        At { schemas: self.schemas + 1, ..self }
    }

    fn below(self, key: usize) -> At {
        At { schemas: self.schemas + 1, pointer: self.pointer + 1 + key as u64 }
    }

    /// Returns the bytes of a fault at this position.
    fn fault(self) -> u64 {
        FAULT + 2 * self.pointer + 2 * PLACE * self.schemas as u64
    }
}

/// Computes a cost. Its methods return `None` if the cost exceeds the limit.
struct Walk<'a> {
    root: &'a Value,
    most: u64,
    /// Costs by the addresses of a referenced schema and a value; `None` while a cost is being computed.
    known: HashMap<(*const Value, *const Value), Option<Cost>>,
    /// Bytes of values that faults quote, by address.
    quoted: HashMap<*const Value, u64>,
    /// Number of steps taken by the estimate itself.
    visits: u64,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Value, most: u64) -> Walk<'a> {
        Walk { root, most, known: HashMap::new(), quoted: HashMap::new(), visits: 0 }
    }

    fn of(&mut self, schema: &'a Value, value: &'a Value, at: At) -> Option<Cost> {
        self.visits += 1;
        if at.schemas > DEPTH || self.visits > STEPS {
            return None;
        }
        let Some(fields) = schema.as_object() else {
            let fault = if schema == &Value::Bool(false) { at.fault() } else { 0 };
            return Some(Cost { steps: 1, all: fault, first: fault });
        };
        let mut cost = self.own(fields, value, at)?;
        self.in_place(&mut cost, fields, value, at.next())?;
        match value {
            Value::Object(members) => self.members(&mut cost, fields, members, at)?,
            Value::Array(items) => self.elements(&mut cost, fields, items, at)?,
            _ => {}
        }
        // To find what no other keyword has evaluated, the other keywords are evaluated again for each place.
        let places = match value {
            Value::Object(members) if fields.contains_key("unevaluatedProperties") => members.len(),
            Value::Array(items) if fields.contains_key("unevaluatedItems") => items.len(),
            _ => 0,
        };
        let again = cost.steps.saturating_mul(places as u64);
        self.decide(&mut cost, again)?;
        Some(cost)
    }

    /// Returns the cost of keywords that look only at the value itself.
    fn own(&mut self, fields: &'a Map<String, Value>, value: &'a Value, at: At) -> Option<Cost> {
        let mut steps = 1 + fields.len() as u64;
        let text = value.as_str().filter(|_| fields.contains_key("pattern"));
        steps += text.map_or(0, self::steps);
        let mut faults = fields.keys().filter(|key| ASSERTING.contains(&key.as_str())).count() as u64;
        faults += u64::from(fields.get("type").is_some_and(|types| !is_of(types, value)));
        let mut quoted = fields.get("const").map_or(0, |value| self.quoted(value));
        if let Some(listed) = fields.get("enum") {
            steps += listed.as_array().map_or(0, Vec::len) as u64;
            faults += 1;
            quoted += self.quoted(listed);
        }
        if let (Some(Value::Array(names)), Value::Object(members)) = (fields.get("required"), value) {
            steps += names.len() as u64;
            let lacking =
                names.iter().filter(|name| name.as_str().is_none_or(|name| !members.contains_key(name)));
            faults += lacking.count() as u64;
        }
        if let (Some(Value::Object(names)), Value::Object(_)) = (fields.get("dependentRequired"), value) {
            let names =
                names.values().filter_map(Value::as_array).map(|names| names.len() as u64).sum::<u64>();
            steps += names;
            faults += names;
        }
        // Faults name the fields that no schema covers.
        let members = value.as_object().filter(|_| FIELDS.iter().any(|key| fields.contains_key(*key)));
        quoted += members.into_iter().flat_map(Map::keys).map(|key| QUOTED + key.len() as u64).sum::<u64>();
        let all = faults.saturating_mul(at.fault()).saturating_add(quoted);
        let first = if faults > 0 { at.fault().saturating_add(quoted) } else { 0 };
        self.within(Cost { steps, all, first })
    }

    fn in_place(
        &mut self,
        cost: &mut Cost,
        fields: &'a Map<String, Value>,
        value: &'a Value,
        at: At,
    ) -> Option<()> {
        for target in REFERENCES.iter().filter_map(|key| fields.get(*key)?.as_str()) {
            let referred = self.referred(target, value, at)?;
            self.add(cost, referred)?;
        }
        for schema in ALL.iter().filter_map(|key| fields.get(*key)).flat_map(each) {
            let schema = self.of(schema, value, at)?;
            self.add(cost, schema)?;
        }
        for schemas in ALTERNATIVES.iter().filter_map(|key| fields.get(*key)) {
            let (mut steps, mut faults, mut fits) = (0u64, at.fault(), false);
            for schema in each(schemas) {
                let one = self.of(schema, value, at)?;
                steps = steps.saturating_add(one.steps);
                fits |= one.all == 0;
                // A valid alternative is tested once more before a fault is reported.
                faults = faults.saturating_add(one.all).saturating_add(one.steps.saturating_mul(AGAIN));
            }
            // One alternative that cannot fail is enough for `anyOf`.
            let faults = if fits && fields.get("anyOf").is_some_and(|any| std::ptr::eq(any, schemas)) {
                0
            } else {
                faults
            };
            self.add(cost, Cost { steps, all: faults, first: faults })?;
        }
        for schema in DECIDING.iter().filter_map(|key| fields.get(*key)) {
            let steps = self.of(schema, value, at)?.steps;
            self.decide(cost, steps)?;
        }
        let dependent = DEPENDENT.iter().filter_map(|key| fields.get(*key)?.as_object()).flatten();
        for (_, schema) in dependent.filter(|(key, _)| value.get(key).is_some()) {
            let schema = self.of(schema, value, at)?;
            self.add(cost, schema)?;
        }
        Some(())
    }

    fn members(
        &mut self,
        cost: &mut Cost,
        fields: &'a Map<String, Value>,
        members: &'a Map<String, Value>,
        at: At,
    ) -> Option<()> {
        let object = |key: &str| fields.get(key).and_then(Value::as_object);
        let (properties, patterns) = (object("properties"), object("patternProperties"));
        for (key, value) in members {
            let at = at.below(key.len());
            let named = properties.and_then(|properties| properties.get(key));
            // Patterns are not evaluated here: any of them may match.
            let matched = patterns.into_iter().flat_map(Map::values);
            let others = FIELDS.iter().filter_map(|key| fields.get(*key)).filter(|schema| schema.is_object());
            for schema in named.into_iter().chain(matched).chain(others) {
                let schema = self.of(schema, value, at)?;
                self.add(cost, schema)?;
            }
            let patterns = patterns.map_or(0, Map::len) as u64 * (1 + self::steps(key));
            self.add(cost, Cost { steps: patterns, ..Cost::default() })?;
            if let Some(names) = fields.get("propertyNames") {
                let mut names = self.of(names, &Value::Null, at)?;
                names.steps += self::steps(key);
                self.add(cost, names)?;
            }
        }
        Some(())
    }

    fn elements(
        &mut self,
        cost: &mut Cost,
        fields: &'a Map<String, Value>,
        items: &'a [Value],
        at: At,
    ) -> Option<()> {
        let below = |index: usize| at.below(1 + index.checked_ilog10().unwrap_or(0) as usize);
        for key in ELEMENTS {
            match fields.get(key) {
                // A list of schemas, one for each element.
                Some(Value::Array(schemas)) => {
                    for (index, (schema, item)) in iter::zip(schemas, items).enumerate() {
                        let one = self.of(schema, item, below(index))?;
                        self.add(cost, one)?;
                    }
                }
                Some(schema) => {
                    for (index, item) in items.iter().enumerate() {
                        let one = self.of(schema, item, below(index))?;
                        self.add(cost, one)?;
                    }
                }
                None => {}
            }
        }
        if let Some(schema) = fields.get("contains") {
            for (index, item) in items.iter().enumerate() {
                let steps = self.of(schema, item, below(index))?.steps;
                self.decide(cost, steps)?;
            }
        }
        Some(())
    }

    /// Adds the cost of another schema.
    fn add(&self, cost: &mut Cost, more: Cost) -> Option<()> {
        let Cost { steps, all, first } = *cost;
        *cost = self.within(Cost {
            steps: steps.saturating_add(more.steps),
            all: all.saturating_add(more.all),
            first: first.max(more.first),
        })?;
        Some(())
    }

    /// Adds the cost of a schema that is only tested and reports no faults.
    fn decide(&self, cost: &mut Cost, steps: u64) -> Option<()> {
        self.add(cost, Cost { steps, all: steps.saturating_mul(AGAIN), first: 0 })
    }

    fn within(&self, cost: Cost) -> Option<Cost> {
        (cost.steps <= self.most).then_some(cost)
    }

    /// Returns the bytes of a value that faults quote.
    fn quoted(&mut self, value: &'a Value) -> u64 {
        *self.quoted.entry(std::ptr::from_ref(value)).or_insert_with(|| {
            let mut bytes = 0u64;
            walk(value, &mut |value| bytes += QUOTED + value.as_str().map_or(0, str::len) as u64);
            bytes
        })
    }

    fn referred(&mut self, target: &str, value: &'a Value, at: At) -> Option<Cost> {
        let schema = self.resolve(target)?;
        let place = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        // A reference that returns here without descending into the value never ends.
        self.known.insert(place, None);
        let cost = self.of(schema, value, at);
        self.known.insert(place, cost);
        cost
    }

    /// Resolves a reference within the schema.
    fn resolve(&self, target: &str) -> Option<&'a Value> {
        let (base, fragment) = target.split_once('#').unwrap_or((target, ""));
        let own = self.root.get("$id").or_else(|| self.root.get("id")).and_then(Value::as_str);
        if !base.is_empty() && own.map(|id| id.trim_end_matches('#')) != Some(base) {
            return None;
        }
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&decoded(fragment)?);
        }
        // An anchor that occurs several times is ambiguous.
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

/// Returns true if a value has one of these types. Whether a number with a zero fraction is an integer is
/// left to the check.
fn is_of(types: &Value, value: &Value) -> bool {
    each(types).iter().filter_map(Value::as_str).any(|name| match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || name == "integer" && !number.is_f64(),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    })
}

fn each(value: &Value) -> &[Value] {
    match value {
        Value::Array(schemas) => schemas,
        schema => std::slice::from_ref(schema),
    }
}

/// Returns the steps to read a text.
fn steps(text: &str) -> u64 {
    (text.len() / BYTES) as u64
}

/// Decodes a URI fragment to a JSON Pointer.
pub(super) fn decoded(fragment: &str) -> Option<String> {
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

/// Visits all values in a value, itself first. Recursion is bounded because values are parsed with a depth
/// limit.
fn walk<'a>(value: &'a Value, see: &mut dyn FnMut(&'a Value)) {
    see(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|value| walk(value, see)),
        Value::Array(items) => items.iter().for_each(|value| walk(value, see)),
        _ => {}
    }
}
