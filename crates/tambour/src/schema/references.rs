//! References of a schema: their targets, and the nesting of schemas through them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::Unfit;
use super::cost::{REFERENCES, decoded};
use crate::finding::clip;

/// Keywords with values that are data, not schemas.
pub(super) const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Prefix of the addresses of meta-schemas, which are built in.
const KNOWN: &str = "json-schema.org/";

/// References of one schema.
pub(super) struct References<'a> {
    root: &'a Value,
    /// Addresses of the schemas in it.
    addresses: HashSet<&'a str>,
    /// True if a nested schema has its own address, which is the base of references in it.
    inner: bool,
}

impl<'a> References<'a> {
    pub(super) fn of(root: &'a Value) -> References<'a> {
        let (mut addresses, mut inner) = (HashSet::new(), false);
        each(root, &mut |pointer, fields| {
            let own = ["$id", "id"].into_iter().filter_map(|key| fields.get(key)?.as_str());
            let before = addresses.len();
            addresses.extend(own.map(|own| own.trim_end_matches('#')));
            inner |= !pointer.is_empty() && addresses.len() > before;
            true
        });
        References { root, addresses, inner }
    }

    /// Returns the first reference without a target, or to another document. With `surely`, reports only what
    /// is certain without resolving addresses.
    pub(super) fn first(&self, surely: bool) -> Option<Unfit> {
        let mut found = None;
        each(self.root, &mut |pointer, fields| {
            let mut references =
                REFERENCES.iter().filter_map(|key| Some((*key, fields.get(*key)?.as_str()?)));
            let fault = references.find_map(|(key, target)| Some((key, self.fault(target, surely)?)));
            if let Some((key, fault)) = fault {
                let pointer = format!("{pointer}/{key}");
                let message = format!("the reference at `{pointer}` {fault}");
                found = Some(Unfit { pointer, message, code: super::limits::INVALID });
            }
            found.is_none()
        });
        found
    }

    fn fault(&self, target: &str, surely: bool) -> Option<String> {
        let (base, fragment) = target.split_once('#').unwrap_or((target, ""));
        let shown = clip(target, 200);
        if base.is_empty() {
            // In a nested schema with its own address, the fragment may refer to another place.
            let lost = !self.inner
                && fragment.starts_with('/')
                && decoded(fragment).is_none_or(|pointer| self.root.pointer(&pointer).is_none());
            return lost.then(|| {
                format!(
                    "leads to `{shown}`, where nothing stands: put that schema there, or name another place"
                )
            });
        }
        let known = base.split_once("://").is_some_and(|(_, rest)| rest.starts_with(KNOWN));
        if known || self.addresses.contains(base) {
            return None;
        }
        // An address without a scheme is relative to the surrounding schemas.
        let is_certain = has_scheme(base) || !self.inner && !self.is_own(base);
        (is_certain || !surely).then(|| {
            format!(
                "leads to another document, `{shown}`, and none is fetched: put that schema into `$defs`, and refer to it as \
                 `#/$defs/NAME`"
            )
        })
    }

    /// Returns true if a relative address refers to the schema itself.
    fn is_own(&self, base: &str) -> bool {
        let file = |address: &'a str| address.rsplit('/').next().unwrap_or_default();
        let base = base.strip_prefix("./").unwrap_or(base);
        self.addresses.iter().any(
            |own| {
                if base.contains('/') { own.ends_with(base) } else { file(own) == base }
            },
        )
    }

    /// Returns the schemas that a schema refers to directly.
    pub(super) fn targets(&self, fields: &'a Map<String, Value>) -> Vec<&'a Value> {
        REFERENCES.iter().filter_map(|key| self.resolve(fields.get(*key)?.as_str()?)).collect()
    }

    /// Returns the deepest nesting of schemas through references, or an upper bound if references form
    /// cycles.
    pub(super) fn levels(&self) -> usize {
        let mut levels = Levels { of: self, known: HashMap::new(), circle: false };
        let deepest = levels.below(self.root);
        if !levels.circle {
            return deepest;
        }
        // With cycles, no path is longer than all referenced schemas nested in each other.
        let mut targets = HashMap::new();
        each(self.root, &mut |_, fields| {
            for target in REFERENCES.iter().filter_map(|key| fields.get(*key)?.as_str()) {
                if let Some(schema) = self.resolve(target) {
                    targets.entry(std::ptr::from_ref(schema)).or_insert_with(|| depth(schema));
                }
            }
            true
        });
        depth(self.root) + targets.values().sum::<usize>()
    }

    fn resolve(&self, target: &str) -> Option<&'a Value> {
        let (_, fragment) = target.split_once('#').unwrap_or((target, ""));
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&decoded(fragment)?);
        }
        // An anchor may be anywhere.
        Some(self.root)
    }
}

/// Computes nesting levels, with memoized results.
struct Levels<'a, 'b> {
    of: &'b References<'a>,
    /// Levels by address; `None` while they are being computed.
    known: HashMap<*const Value, Option<usize>>,
    /// True if a reference formed a cycle, or the limit [`FOLLOWED`] was reached.
    circle: bool,
}

/// Deepest nesting that is followed; deeper nesting is treated like a cycle.
const FOLLOWED: usize = 1500;

impl<'a> Levels<'a, '_> {
    fn below(&mut self, value: &'a Value) -> usize {
        self.go(value, 0)
    }

    fn go(&mut self, value: &'a Value, depth: usize) -> usize {
        if depth > FOLLOWED {
            self.circle = true;
            return 0;
        }
        let mut deepest = 0;
        match value {
            Value::Object(fields) => {
                for target in REFERENCES.iter().filter_map(|key| fields.get(*key)?.as_str()) {
                    if let Some(schema) = self.of.resolve(target) {
                        deepest = deepest.max(self.referred(schema, depth + 1));
                    }
                }
                for (key, value) in fields.iter().filter(|(key, _)| !DATA.contains(&key.as_str())) {
                    // Unreferenced definitions are not compiled.
                    if key != "$defs" && key != "definitions" {
                        deepest = deepest.max(self.go(value, depth + 1));
                    }
                }
            }
            Value::Array(items) => {
                for value in items {
                    deepest = deepest.max(self.go(value, depth + 1));
                }
            }
            _ => return 0,
        }
        deepest + 1
    }

    fn referred(&mut self, schema: &'a Value, depth: usize) -> usize {
        let place = std::ptr::from_ref(schema);
        match self.known.get(&place) {
            Some(Some(levels)) => *levels,
            Some(None) => {
                self.circle = true;
                0
            }
            None => {
                self.known.insert(place, None);
                let levels = self.go(schema, depth);
                self.known.insert(place, Some(levels));
                levels
            }
        }
    }
}

/// Returns the nesting depth of a value, without references.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
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
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Visits each object of a schema that is not data, with its pointer, until `see` returns false.
pub(super) fn each<'a>(schema: &'a Value, see: &mut dyn FnMut(&str, &'a Map<String, Value>) -> bool) {
    go(schema, &mut String::new(), see);
}

fn go<'a>(
    value: &'a Value,
    pointer: &mut String,
    see: &mut dyn FnMut(&str, &'a Map<String, Value>) -> bool,
) -> bool {
    let length = pointer.len();
    match value {
        Value::Object(fields) => {
            if !see(pointer, fields) {
                return false;
            }
            for (key, value) in fields.iter().filter(|(key, _)| !DATA.contains(&key.as_str())) {
                pointer.push('/');
                pointer.push_str(&escaped(key));
                if !go(value, pointer, see) {
                    return false;
                }
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                pointer.push('/');
                pointer.push_str(&at.to_string());
                if !go(value, pointer, see) {
                    return false;
                }
                pointer.truncate(length);
            }
        }
        _ => {}
    }
    true
}
