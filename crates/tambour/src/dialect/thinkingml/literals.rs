//! Minimal escaping of a raw reply: `<final>` and `</final>` inside `<thinking>` (T-014, R-90).

use std::borrow::Cow;

const THINKING_TAGS: (&str, &str) = ("<thinking>", "</thinking>");

/// Escapes these two literals in the thinking of a raw reply, so that it passes the structure check. Nothing
/// else changes; a reply whose answer begins inside `<thinking>` is returned as it is.
#[must_use]
pub fn escape_literals(reply: &str) -> Cow<'_, str> {
    let Some(start) = reply.find(THINKING_TAGS.0).map(|at| at + THINKING_TAGS.0.len()) else {
        return reply.into();
    };
    let end_offsets = || reply[start..].match_indices(THINKING_TAGS.1).map(|(at, _)| start + at);
    // A closing tag followed by the answer is the real one; thinking may mention others.
    let true_end =
        end_offsets().find(|end| reply[end + THINKING_TAGS.1.len()..].trim_start().starts_with("<final>"));
    let Some(end) = true_end.or_else(|| end_offsets().next()) else { return reply.into() };
    let (thinking, rest) = reply[start..].split_at(end - start);
    if !thinking.contains("<final>") && !thinking.contains("</final>") || !rest.contains("<final>") {
        return reply.into();
    }
    let thinking = thinking.replace("<final>", "&lt;final&gt;").replace("</final>", "&lt;/final&gt;");
    [&reply[..start], &thinking, rest].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_literals_in_thinking_are_escaped() {
        // R-90, T-014
        for (reply, escaped) in [
            (
                "<thinking>a <final> b</thinking>\n<final>c</final>",
                "<thinking>a &lt;final&gt; b</thinking>\n<final>c</final>",
            ),
            (
                "<think><final></think><thinking>x</final> <b></thinking><final><final></final>",
                "<think><final></think><thinking>x&lt;/final&gt; <b></thinking><final><final></final>",
            ),
            (
                "<thinking>of </thinking> and <final>\n</thinking>\n<final>c</final>",
                "<thinking>of </thinking> and &lt;final&gt;\n</thinking>\n<final>c</final>",
            ),
            ("<thinking>a<final>c</final>", "<thinking>a<final>c</final>"),
            ("<thinking>a<final>c</final></thinking>", "<thinking>a<final>c</final></thinking>"),
            ("<thinking>a</thinking><final>c</final>", "<thinking>a</thinking><final>c</final>"),
            ("a <final> b", "a <final> b"),
        ] {
            assert_eq!(escape_literals(reply), escaped, "{reply}");
        }
    }
}
