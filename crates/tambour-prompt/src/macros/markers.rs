//! Legacy markers that predate macros: `<USER>`, `<BOT>` and the like.

use std::collections::HashMap;

/// Finds the legacy markers of a text. Those with a matching closing tag are markup and left out (M-011).
/// Maps the offset of each marker to its end and the name of the macro.
pub(super) fn find_markers(source: &str) -> HashMap<usize, (usize, &'static str)> {
    const NAMES: &[(&str, &str)] = &[
        ("user", "user"),
        ("bot", "char"),
        ("char", "char"),
        ("group", "group"),
        ("charifnotgroup", "group"),
    ];
    let mut found = HashMap::new();
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for at in memchr::memchr_iter(b'<', source.as_bytes()) {
        let rest = &source[at + 1..];
        let is_closing = rest.starts_with('/');
        let rest = &rest[usize::from(is_closing)..];
        let length = rest.bytes().take(16).take_while(u8::is_ascii_alphabetic).count();
        let name = &rest[..length];
        if !rest[length..].starts_with('>') {
            continue;
        }
        let Some((tag, target)) = NAMES.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(name)) else {
            continue;
        };
        if is_closing {
            if let Some(partner) = open.get_mut(tag).and_then(Vec::pop) {
                found.remove(&partner);
            }
        } else {
            open.entry(tag).or_default().push(at);
            found.insert(at, (at + length + 2, *target));
        }
    }
    found
}
