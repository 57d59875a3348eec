//! What a JSON text takes in memory as a tree of values, told in one pass before any value is made.

use serde_json::Value;

/// What a JSON text comes to as a tree of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Bytes of memory, about: a tree takes no more, and seldom much less.
    pub bytes: usize,
    /// Those of them that are text.
    pub text: usize,
    /// Levels of lists and objects.
    pub depth: usize,
    /// Values and keys, at most.
    pub values: usize,
    /// Offset of the list or object that takes most by itself, without what stands in it.
    pub largest: usize,
}

/// Levels whose elements are counted. Readers of JSON go no deeper.
const LEVELS: usize = 128;
/// Bytes of a value where it stands.
const VALUE: usize = size_of::<Value>();
/// Bytes of a member of an object: its hash, its key, its value.
const MEMBER: usize = size_of::<(usize, String, Value)>();
/// Bytes that an allocator takes beside those it gives.
const OWN: usize = 16;

/// A list or an object that is open.
#[derive(Clone, Copy, Default)]
struct Open {
    at: usize,
    object: bool,
    /// Commas in it.
    commas: usize,
    /// Whether anything stands in it.
    filled: bool,
}

/// Weighs a text, which need not be JSON: it is weighed as far as a reader would come.
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
    // What a text that breaks off has made up to there.
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

/// Where a string ends that begins behind its quote at `at`: its closing quote, or the end of the text.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        if text[at + found] == b'"' {
            return at + found;
        }
        at += found + 2;
    }
    text.len()
}

/// Bytes that so many take from an allocator.
fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes.next_multiple_of(16) + OWN }
}

/// Bytes of a list, which grows by doubling.
fn elements(count: usize) -> usize {
    allocated(count.next_power_of_two().max(4) * VALUE)
}

/// Bytes of an object: its members, and the table that finds them, which is filled up to seven eighths.
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
