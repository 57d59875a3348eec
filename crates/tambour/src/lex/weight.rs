//! Estimate of the memory that a JSON text takes as a tree of values, computed in one pass before any value
//! is built.

use serde_json::Value;

/// Estimated cost of a JSON text as a tree of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Bytes of memory: an upper bound, seldom much too high.
    pub bytes: usize,
    /// Bytes of `bytes` that are strings.
    pub text: usize,
    /// Levels of nested lists and objects.
    pub depth: usize,
    /// Upper bound of the number of values and keys.
    pub values: usize,
    /// Offset of the list or object that takes most memory itself, not counting its content.
    pub largest: usize,
}

/// Levels whose elements are counted; JSON readers go no deeper.
const LEVELS: usize = 128;
/// Bytes of a value in its container.
const VALUE: usize = size_of::<Value>();
/// Bytes of an object member: hash, key and value.
const MEMBER: usize = size_of::<(usize, String, Value)>();
/// Overhead of an allocation in bytes.
const OWN: usize = 16;

/// An open list or object.
#[derive(Clone, Copy, Default)]
struct Open {
    at: usize,
    object: bool,
    /// Number of commas.
    commas: usize,
    /// True if it has content.
    filled: bool,
}

/// Estimates the cost of a text; of invalid JSON, at least as far as a reader would read.
#[must_use]
pub fn weigh(text: &[u8]) -> Weight {
    let mut weight = Weight { bytes: VALUE, values: 1, ..Weight::default() };
    let (mut open, mut depth, mut most) = ([Open::default(); LEVELS], 0_usize, 0);
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        match byte {
            b'"' | b'{' | b'[' => {
                if let Some(around) = depth.checked_sub(1).and_then(|level| open.get_mut(level)) {
                    around.filled = true;
                }
                if byte == b'"' {
                    let end = string_end(text, at + 1);
                    let text = allocated(end.saturating_sub(at + 1));
                    weight.bytes += text;
                    weight.text += text;
                    at = end;
                } else {
                    if let Some(open) = open.get_mut(depth) {
                        *open = Open { at, object: byte == b'{', ..Open::default() };
                    }
                    depth += 1;
                    weight.depth = weight.depth.max(depth);
                    weight.values += 1;
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if let Some(open) = open.get(depth) {
                    weight.add(open, &mut most);
                }
            }
            b',' | b':' => {
                weight.values += 1;
                let around = depth.checked_sub(1).and_then(|level| open.get_mut(level));
                if let Some(around) = around.filter(|_| byte == b',') {
                    around.commas += 1;
                }
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                if let Some(around) = depth.checked_sub(1).and_then(|level| open.get_mut(level)) {
                    around.filled = true;
                }
            }
        }
        at += 1;
    }
    // Containers that a truncated text leaves open.
    open.iter().take(depth).for_each(|open| weight.add(open, &mut most));
    weight
}

impl Weight {
    fn add(&mut self, open: &Open, most: &mut usize) {
        if !open.filled {
            return;
        }
        let bytes = if open.object { members(open.commas + 1) } else { elements(open.commas + 1) };
        self.bytes += bytes;
        if bytes > *most {
            (*most, self.largest) = (bytes, open.at);
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

/// Bytes an allocation of `bytes` takes.
fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes.next_multiple_of(16) + OWN }
}

/// Bytes of a list, which grows by doubling.
fn elements(count: usize) -> usize {
    allocated(count.next_power_of_two().max(4) * VALUE)
}

/// Bytes of an object: its members, and the hash table, which is filled up to seven eighths.
fn members(count: usize) -> usize {
    let buckets = if count < 4 { 4 } else { (count * 8).div_ceil(7).next_power_of_two().max(8) };
    let room = if buckets == 4 { 3 } else { buckets / 8 * 7 };
    allocated(room * MEMBER) + allocated(buckets * (size_of::<usize>() + 1) + 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_no_structure() {
        let weight = weigh(br#"{"a[{,": "\"]}", "b": [1, 2]}"#);
        assert_eq!((weight.depth, weight.values), (2, 7));
        assert_eq!(weigh(b"[]").bytes, VALUE);
        assert_eq!(weigh(b" {  } ").bytes, VALUE);
    }

    #[test]
    fn what_breaks_off_or_is_deep_is_weighed() {
        let whole = weigh("[{\"a\":0},".repeat(50).as_bytes());
        assert!(whole.bytes > 50 * 300, "{whole:?}");
        let deep = weigh("[".repeat(100_000).as_bytes());
        assert_eq!(deep.depth, 100_000);
        assert!(deep.bytes < 1 << 20, "{deep:?}");
    }
}
