//! References of a schema: their targets, and the nesting of schemas through them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::SchemaRejection;
use super::cost::{REFERENCE_KEYWORDS, decode_fragment};
use crate::finding::clip;

/// Keywords with values that are data, not schemas.
pub(super) const DATA_KEYWORDS: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Prefix, after the scheme, of the addresses of meta-schemas, which the schema library has built in.
const META_SCHEMA_PREFIX: &str = "json-schema.org/";

/// References of one schema.
pub(super) struct SchemaReferences<'a> {
    root: &'a Value,
    /// Addresses (`$id`) of the schema and of the schemas in it.
    addresses: HashSet<&'a str>,
    /// True if a nested schema has its own address, which is the base of references in it.
    has_nested_address: bool,
}

impl<'a> SchemaReferences<'a> {
    /// Collects the addresses in the schema `root`.
    pub(super) fn collect(root: &'a Value) -> SchemaReferences<'a> {
        let (mut addresses, mut has_nested_address) = (HashSet::new(), false);
        visit_schemas(root, &mut |pointer, fields| {
            let ids = ["$id", "id"].into_iter().filter_map(|key| fields.get(key)?.as_str());
            let count_before = addresses.len();
            addresses.extend(ids.map(|id| id.trim_end_matches('#')));
            has_nested_address |= !pointer.is_empty() && addresses.len() > count_before;
            true
        });
        SchemaReferences { root, addresses, has_nested_address }
    }

    /// Returns the first reference without a target, or to another document. With `only_certain`, a fault
    /// counts only if it is certain without resolving addresses.
    pub(super) fn find_invalid(&self, only_certain: bool) -> Option<SchemaRejection> {
        let mut found = None;
        visit_schemas(self.root, &mut |pointer, fields| {
            let mut references =
                REFERENCE_KEYWORDS.iter().filter_map(|key| Some((*key, fields.get(*key)?.as_str()?)));
            let fault =
                references.find_map(|(key, target)| Some((key, self.find_fault(target, only_certain)?)));
            if let Some((key, fault)) = fault {
                let pointer = format!("{pointer}/{key}");
                let message = format!("the reference at `{pointer}` {fault}");
                found = Some(SchemaRejection { pointer, message, code: super::limits::INVALID_SCHEMA });
            }
            found.is_none()
        });
        found
    }

    /// Describes the fault of a reference, in words that follow "the reference"; `None` if there is none.
    fn find_fault(&self, target: &str, only_certain: bool) -> Option<String> {
        let (base, fragment) = target.split_once('#').unwrap_or((target, ""));
        let excerpt = clip(target, 200);
        if base.is_empty() {
            // In a nested schema with its own address, the fragment may refer to another place.
            let is_lost = !self.has_nested_address
                && fragment.starts_with('/')
                && decode_fragment(fragment).is_none_or(|pointer| self.root.pointer(&pointer).is_none());
            return is_lost.then(|| {
                format!(
                    "leads to `{excerpt}`, which does not exist: put that schema there, or refer to \
                     another place"
                )
            });
        }
        let is_meta_schema =
            base.split_once("://").is_some_and(|(_, address)| address.starts_with(META_SCHEMA_PREFIX));
        if is_meta_schema || self.addresses.contains(base) {
            return None;
        }
        // An address without a scheme is relative to the surrounding schemas.
        let is_certain = has_scheme(base) || !self.has_nested_address && !self.is_own_address(base);
        (is_certain || !only_certain).then(|| {
            format!(
                "leads to another document, `{excerpt}`, which is not fetched: put that schema into \
                 `$defs`, and refer to it as `#/$defs/NAME`"
            )
        })
    }

    /// Returns true if a relative address refers to the schema itself.
    fn is_own_address(&self, base: &str) -> bool {
        let file_name = |address: &'a str| address.rsplit('/').next().unwrap_or_default();
        let base = base.strip_prefix("./").unwrap_or(base);
        self.addresses.iter().any(|own_address| {
            if base.contains('/') { own_address.ends_with(base) } else { file_name(own_address) == base }
        })
    }

    /// Returns the schemas that a schema refers to directly.
    pub(super) fn targets(&self, fields: &'a Map<String, Value>) -> Vec<&'a Value> {
        REFERENCE_KEYWORDS.iter().filter_map(|key| self.resolve(fields.get(*key)?.as_str()?)).collect()
    }

    /// Returns the deepest nesting of schemas through references, or an upper bound if references form
    /// cycles.
    pub(super) fn count_levels(&self) -> usize {
        let mut levels = LevelCounter { references: self, memo: HashMap::new(), has_cycle: false };
        let deepest = levels.count(self.root);
        if !levels.has_cycle {
            return deepest;
        }
        // With cycles, no path is longer than all referenced schemas nested in each other.
        let mut targets = HashMap::new();
        visit_schemas(self.root, &mut |_, fields| {
            for target in REFERENCE_KEYWORDS.iter().filter_map(|key| fields.get(*key)?.as_str()) {
                if let Some(schema) = self.resolve(target) {
                    targets.entry(std::ptr::from_ref(schema)).or_insert_with(|| value_depth(schema));
                }
            }
            true
        });
        value_depth(self.root) + targets.values().sum::<usize>()
    }

    /// Returns the target of a reference within the schema; the root for an anchor, which may be anywhere.
    fn resolve(&self, target: &str) -> Option<&'a Value> {
        let (_, fragment) = target.split_once('#').unwrap_or((target, ""));
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&decode_fragment(fragment)?);
        }
        Some(self.root)
    }
}

/// Counter of nesting levels, with memoized results.
struct LevelCounter<'a, 'b> {
    references: &'b SchemaReferences<'a>,
    /// Levels by pointer to the schema; `None` while they are being computed.
    memo: HashMap<*const Value, Option<usize>>,
    /// True if a reference formed a cycle, or the limit [`MAX_FOLLOWED_LEVELS`] was reached.
    has_cycle: bool,
}

/// Maximum nesting depth that is followed; deeper nesting is treated like a cycle.
const MAX_FOLLOWED_LEVELS: usize = 1500;

impl<'a> LevelCounter<'a, '_> {
    fn count(&mut self, value: &'a Value) -> usize {
        self.count_from(value, 0)
    }

    fn count_from(&mut self, value: &'a Value, depth: usize) -> usize {
        if depth > MAX_FOLLOWED_LEVELS {
            self.has_cycle = true;
            return 0;
        }
        let mut deepest = 0;
        match value {
            Value::Object(fields) => {
                for target in REFERENCE_KEYWORDS.iter().filter_map(|key| fields.get(*key)?.as_str()) {
                    if let Some(schema) = self.references.resolve(target) {
                        deepest = deepest.max(self.count_reference(schema, depth + 1));
                    }
                }
                for (key, value) in fields.iter().filter(|(key, _)| !DATA_KEYWORDS.contains(&key.as_str())) {
                    // Unreferenced definitions are not compiled.
                    if key != "$defs" && key != "definitions" {
                        deepest = deepest.max(self.count_from(value, depth + 1));
                    }
                }
            }
            Value::Array(items) => {
                for value in items {
                    deepest = deepest.max(self.count_from(value, depth + 1));
                }
            }
            _ => return 0,
        }
        deepest + 1
    }

    fn count_reference(&mut self, schema: &'a Value, depth: usize) -> usize {
        let key = std::ptr::from_ref(schema);
        match self.memo.get(&key) {
            Some(Some(levels)) => *levels,
            Some(None) => {
                self.has_cycle = true;
                0
            }
            None => {
                self.memo.insert(key, None);
                let levels = self.count_from(schema, depth);
                self.memo.insert(key, Some(levels));
                levels
            }
        }
    }
}

/// Returns the nesting depth of a value, without references.
fn value_depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(value_depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(value_depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns true if an address is absolute.
fn has_scheme(address: &str) -> bool {
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.'))
}

/// Escapes a key for a JSON Pointer.
pub(super) fn escape_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Visits each object of a schema that is not data, with its pointer, until `visit` returns false.
pub(super) fn visit_schemas<'a>(
    schema: &'a Value,
    visit: &mut dyn FnMut(&str, &'a Map<String, Value>) -> bool,
) {
    visit_from(schema, &mut String::new(), visit);
}

fn visit_from<'a>(
    value: &'a Value,
    pointer: &mut String,
    visit: &mut dyn FnMut(&str, &'a Map<String, Value>) -> bool,
) -> bool {
    let length = pointer.len();
    match value {
        Value::Object(fields) => {
            if !visit(pointer, fields) {
                return false;
            }
            for (key, value) in fields.iter().filter(|(key, _)| !DATA_KEYWORDS.contains(&key.as_str())) {
                pointer.push('/');
                pointer.push_str(&escape_key(key));
                if !visit_from(value, pointer, visit) {
                    return false;
                }
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                pointer.push('/');
                pointer.push_str(&at.to_string());
                if !visit_from(value, pointer, visit) {
                    return false;
                }
                pointer.truncate(length);
            }
        }
        _ => {}
    }
    true
}
