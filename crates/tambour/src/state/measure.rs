//! Size of a value, in the units of the state's limits.

use serde_json::Value;

/// Size of a value including its contents. Counts and bytes add up over the parts of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ValueSize {
    /// Number of values, containers included.
    pub(super) values: usize,
    /// Bytes of keys and strings.
    pub(super) bytes: usize,
    /// Nesting levels; 1 for a scalar.
    pub(super) depth: usize,
    /// Elements of the longest list.
    pub(super) longest_list: usize,
}

/// Measures a value without recursion, because a caller's value may have any depth.
pub(super) fn measure(value: &Value) -> ValueSize {
    let mut size = ValueSize::default();
    let mut pending = vec![(value, 1)];
    while let Some((value, depth)) = pending.pop() {
        size.values += 1;
        size.depth = size.depth.max(depth);
        match value {
            Value::String(text) => size.bytes += text.len(),
            Value::Array(items) => {
                size.longest_list = size.longest_list.max(items.len());
                pending.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Value::Object(fields) => {
                size.bytes += fields.keys().map(String::len).sum::<usize>();
                pending.extend(fields.values().map(|value| (value, depth + 1)));
            }
            _ => {}
        }
    }
    size
}
