//! Byte ranges of the items of a JSON array, which give a finding on one of them its place.

use std::ops::Range;

/// Byte range of each item of the first array in `text`. In invalid JSON they may differ from those a reader
/// finds.
pub(super) fn item_spans(text: &str) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let Some(start) = text.find('[') else { return items };
    let mut item: Option<Range<usize>> = None;
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (offset, c) in text[start + 1..].char_indices() {
        let at = start + 1 + offset;
        let end = at + c.len_utf8();
        if quote.is_some() {
            if is_escaped {
                is_escaped = false;
            } else if c == '\\' {
                is_escaped = true;
            } else if quote == Some(c) {
                quote = None;
            }
        } else {
            match c {
                ',' if depth == 0 => {
                    items.extend(item.take());
                    continue;
                }
                ']' if depth == 0 => break,
                '"' => quote = Some('"'),
                // Not JSON, but models often write it instead.
                '\'' if item.is_none() => quote = Some('\''),
                '“' if item.is_none() => quote = Some('”'),
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ if c.is_whitespace() => continue,
                _ => {}
            }
        }
        item.get_or_insert(at..end).end = end;
    }
    items.extend(item);
    items
}
