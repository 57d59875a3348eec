//! Estimate of the memory that a JSON text takes as a tree of values, computed in one pass before any value
//! is built.

use serde_json::Value;

/// Estimated cost of a JSON text as a tree of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonWeight {
    /// Bytes of memory: an upper bound, seldom much too high.
    pub bytes: usize,
    /// Part of `bytes` that strings take.
    pub text: usize,
    /// Levels of nested lists and objects.
    pub depth: usize,
    /// Upper bound of the number of values and keys.
    pub values: usize,
    /// Byte offset in the text of the list or object that takes most memory itself, not counting its
    /// elements.
    pub largest_offset: usize,
}

/// Maximum nesting level whose elements are counted; JSON readers go no deeper.
const MAX_LEVELS: usize = 128;
/// Bytes of a value in its container.
const VALUE_BYTES: usize = size_of::<Value>();
/// Bytes of an object member: hash, key and value.
const MEMBER_BYTES: usize = size_of::<(usize, String, Value)>();
/// Overhead of an allocation in bytes.
const ALLOC_OVERHEAD: usize = 16;

/// An open list or object.
#[derive(Clone, Copy, Default)]
struct OpenContainer {
    /// Byte offset of its bracket.
    offset: usize,
    is_object: bool,
    /// Number of commas.
    commas: usize,
    /// True if it has content.
    has_content: bool,
}

/// Estimates the cost of a text. Of invalid JSON, at least the part before the fault counts.
#[must_use]
pub fn weigh(text: &[u8]) -> JsonWeight {
    let mut weight = JsonWeight { bytes: VALUE_BYTES, values: 1, ..JsonWeight::default() };
    let mut containers = [OpenContainer::default(); MAX_LEVELS];
    // Number of open containers, and size in bytes of the largest one so far.
    let (mut depth, mut max_bytes) = (0_usize, 0);
    let mut offset = 0;
    while offset < text.len() {
        let byte = text[offset];
        match byte {
            b'"' | b'{' | b'[' => {
                if let Some(parent) = depth.checked_sub(1).and_then(|level| containers.get_mut(level)) {
                    parent.has_content = true;
                }
                if byte == b'"' {
                    let end = string_end(text, offset + 1);
                    let string_bytes = allocation_bytes(end.saturating_sub(offset + 1));
                    weight.bytes += string_bytes;
                    weight.text += string_bytes;
                    offset = end;
                } else {
                    if let Some(container) = containers.get_mut(depth) {
                        *container =
                            OpenContainer { offset, is_object: byte == b'{', ..OpenContainer::default() };
                    }
                    depth += 1;
                    weight.depth = weight.depth.max(depth);
                    weight.values += 1;
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if let Some(container) = containers.get(depth) {
                    weight.add_container(container, &mut max_bytes);
                }
            }
            b',' | b':' => {
                weight.values += 1;
                let parent = depth.checked_sub(1).and_then(|level| containers.get_mut(level));
                if let Some(parent) = parent.filter(|_| byte == b',') {
                    parent.commas += 1;
                }
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                if let Some(parent) = depth.checked_sub(1).and_then(|level| containers.get_mut(level)) {
                    parent.has_content = true;
                }
            }
        }
        offset += 1;
    }
    // Containers that a truncated text leaves open.
    containers.iter().take(depth).for_each(|container| weight.add_container(container, &mut max_bytes));
    weight
}

impl JsonWeight {
    /// Adds the memory of a container itself; `max_bytes` is the size of the largest container so far.
    fn add_container(&mut self, container: &OpenContainer, max_bytes: &mut usize) {
        if !container.has_content {
            return;
        }
        let bytes = if container.is_object {
            object_bytes(container.commas + 1)
        } else {
            list_bytes(container.commas + 1)
        };
        self.bytes += bytes;
        if bytes > *max_bytes {
            (*max_bytes, self.largest_offset) = (bytes, container.offset);
        }
    }
}

/// Offset of the quote that closes a string whose content begins at `at`, or the end of the text.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        if text[at + found] == b'"' {
            return at + found;
        }
        at += found + 2;
    }
    text.len()
}

/// Bytes of memory that an allocation of `bytes` takes; 0 if nothing is allocated.
fn allocation_bytes(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes.next_multiple_of(16) + ALLOC_OVERHEAD }
}

/// Bytes of memory of a list of `count` elements, which grows by doubling.
fn list_bytes(count: usize) -> usize {
    allocation_bytes(count.next_power_of_two().max(4) * VALUE_BYTES)
}

/// Bytes of memory of an object of `count` members: the members, and a hash table of their indexes, which is
/// filled up to seven eighths and has a control byte for each bucket, and 16 more.
fn object_bytes(count: usize) -> usize {
    let buckets = if count < 4 { 4 } else { (count * 8).div_ceil(7).next_power_of_two().max(8) };
    let room = if buckets == 4 { 3 } else { buckets / 8 * 7 };
    allocation_bytes(room * MEMBER_BYTES) + allocation_bytes(buckets * (size_of::<usize>() + 1) + 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_no_structure() {
        let weight = weigh(br#"{"a[{,": "\"]}", "b": [1, 2]}"#);
        assert_eq!((weight.depth, weight.values), (2, 7));
        assert_eq!(weigh(b"[]").bytes, VALUE_BYTES);
        assert_eq!(weigh(b" {  } ").bytes, VALUE_BYTES);
    }

    #[test]
    fn truncated_and_deep_texts_are_weighed() {
        let list_weight = weigh("[{\"a\":0},".repeat(50).as_bytes());
        assert!(list_weight.bytes > 50 * 300, "{list_weight:?}");
        let deep_weight = weigh("[".repeat(100_000).as_bytes());
        assert_eq!(deep_weight.depth, 100_000);
        assert!(deep_weight.bytes < 1 << 20, "{deep_weight:?}");
    }
}
