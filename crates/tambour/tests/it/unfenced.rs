//! The fence around a whole reply.

use tambour::lex::fence::{FenceStripper, FencedPart};
use tambour::span::{LazyPlace, Place};
use tambour_fixtures::random::RandomSource;

const LIMIT: usize = 1024;

/// Reads a reply in pieces; returns its parts, with text joined.
fn parts<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a str>) -> Vec<(char, String)> {
    let mut parts: Vec<(char, String)> = Vec::new();
    let mut end = Place::START;
    let mut out = |part: FencedPart<'_>, at: LazyPlace<'_>| {
        let (kind, raw) = match part {
            FencedPart::Text(raw) => ('t', raw),
            FencedPart::Open(raw) => ('o', raw),
            FencedPart::Close(raw) => ('c', raw),
        };
        assert_eq!(at.resolve(), end);
        end.advance(raw);
        match parts.last_mut() {
            Some(('t', text)) if kind == 't' => text.push_str(raw),
            _ => parts.push((kind, raw.to_owned())),
        }
    };
    let mut stripper = FenceStripper::new(limit);
    for piece in pieces {
        stripper.push(piece, &mut out);
        assert!(stripper.held_bytes() <= limit);
    }
    stripper.finish(&mut out);
    assert_eq!(stripper.held_bytes(), 0);
    parts
}

/// Reads a text; fails unless every cut gives the same parts.
fn fenced_parts(limit: usize, text: &str) -> Vec<(char, String)> {
    let whole = parts(limit, [text]);
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        let (first, second) = text.split_at(at);
        assert_eq!(parts(limit, [first, second]), whole, "{text:?} cut at {at}");
    }
    assert_eq!(parts(limit, text.split("").filter(|c| !c.is_empty())), whole, "{text:?}");
    assert_eq!(whole.iter().map(|(_, raw)| raw.as_str()).collect::<String>(), text);
    whole
}

#[test]
fn a_fence_around_a_whole_reply_is_taken_off() {
    for (text, open, inner, close) in [
        ("```xml\n<content>a</content>\n```", "```xml\n", "<content>a</content>\n", "```"),
        ("\n ~~~\na\n~~~~ \n\n", "\n ~~~\n", "a\n", "~~~~ \n\n"),
        ("```\na\n```js\nb\n```\nc\n  ```\r\n", "```\n", "a\n```js\nb\n```\nc\n", "  ```\r\n"),
        ("```\n```\n```", "```\n", "```\n", "```"),
        ("``` 代码 \n你\n```\n \n ````\n", "``` 代码 \n", "你\n```\n \n", " ````\n"),
        ("````\n```\n````", "````\n", "```\n", "````"),
        ("```\na\n``\n~~~\n", "```\n", "a\n``\n~~~\n", ""),
        ("```\na\n``` b\n", "```\n", "a\n``` b\n", ""),
        ("````\na\n```", "````\n", "a\n```", ""),
        ("```\n```\nb", "```\n", "```\nb", ""),
        ("```\n", "```\n", "", ""),
    ] {
        let expected: Vec<(char, &str)> = [('o', open), ('t', inner), ('c', close)]
            .into_iter()
            .filter(|(_, raw)| !raw.is_empty())
            .collect();
        let found = fenced_parts(LIMIT, text);
        assert_eq!(
            found.iter().map(|(kind, raw)| (*kind, raw.as_str())).collect::<Vec<_>>(),
            expected,
            "{text:?}"
        );
    }
}

#[test]
fn what_begins_with_no_fence_passes() {
    for text in [
        "a\n```\nb\n```",
        "``\na",
        "``` two words\na\n```",
        "```a```\n",
        "~~~ a~\n",
        "```xml",
        " \n",
        "`",
        "",
    ] {
        let found = fenced_parts(LIMIT, text);
        assert!(found.iter().all(|(kind, _)| *kind == 't'), "{text:?}: {found:?}");
    }
    // A line above the limit is no line of a fence.
    let kinds = |text: &str| fenced_parts(8, text).iter().map(|(kind, _)| *kind).collect::<String>();
    assert_eq!(kinds("```abcd\na\n``````\n\n"), "otc");
    assert_eq!(kinds("```abcde\na\n"), "t");
    assert_eq!(kinds("```\na\n``````\n\n\n"), "ot");
    assert_eq!(kinds("```\na\n         ```"), "ot");
}

#[test]
fn fences_are_found_however_a_text_is_cut() {
    let pieces = ["```", "`", "~~~", "\n", "\n", " ", "a", "xml", "你", "````"];
    let mut random = RandomSource::new(213);
    for _ in 0..3000 {
        let text: String = (0..random.below(12)).map(|_| *random.pick::<&str>(&pieces)).collect();
        let limit = if random.below(3) == 0 { 6 } else { LIMIT };
        fenced_parts(limit, &("```\n".repeat(random.below(2)) + &text));
    }
}
