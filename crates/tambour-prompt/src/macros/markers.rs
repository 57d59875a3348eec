//! The markers from before there were macros: `<USER>`, `<BOT>` and their like.

use std::collections::HashMap;

/// The old markers of a text that are macros: those whose closing tag is there are markup (M-011).
pub(super) fn markers(source: &str) -> HashMap<usize, (usize, &'static str)> {
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
        let closes = rest.starts_with('/');
        let rest = &rest[usize::from(closes)..];
        let length = rest.bytes().take(16).take_while(u8::is_ascii_alphabetic).count();
        let name = &rest[..length];
        if !rest[length..].starts_with('>') {
            continue;
        }
        let Some((tag, target)) = NAMES.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(name)) else {
            continue;
        };
        if closes {
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
