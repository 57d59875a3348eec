//! Bytes to tokens, each reader on its own: characters, entities, code, tags.

use tambour::lex::code::{CodeContext, CodeFilter, CodeTracker, FilteredPiece};
use tambour::lex::entity::EntityDecoder;
use tambour::lex::markup::{MarkupLexer, MarkupToken};
use tambour::lex::utf8::Utf8Decoder;
use tambour::span::LazyPlace;

/// Splits a text in two at each place, including both ends.
fn splits(text: &str) -> impl Iterator<Item = (&str, &str)> {
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).map(|at| text.split_at(at))
}

#[test]
fn what_is_no_character_is_replaced() {
    // J-038: the text, and the number of bytes of each replacement.
    for (bytes, text, replaced) in [
        (&b"a\xe4\xbd"[..], "a\u{fffd}", &[2][..]),
        (b"a\xe4\xbd!", "a\u{fffd}!", &[2]),
        (b"\xff\xe4\xbd\xa0", "\u{fffd}你", &[1]),
        (b"\xf0\x9f\xe4\xbd\xa0\xf0", "\u{fffd}你\u{fffd}", &[2, 1]),
        // Several bytes follow the character.
        (b"\xe4\xbd\xa0 and what follows it", "你 and what follows it", &[]),
        (b"\xe4\xbd and what follows it", "\u{fffd} and what follows it", &[2]),
    ] {
        for at in 0..=bytes.len() {
            let (mut utf8, mut output, mut replaced_lens) =
                (Utf8Decoder::default(), String::new(), Vec::new());
            let mut out = |text: &str, len: Option<usize>| {
                output.push_str(text);
                replaced_lens.extend(len);
            };
            let (first, second) = bytes.split_at(at);
            utf8.push(first, &mut out);
            utf8.push(second, &mut out);
            utf8.finish(&mut out);
            assert_eq!(
                (output.as_str(), replaced_lens.as_slice()),
                (text, replaced),
                "{bytes:?} cut at {at}"
            );
        }
    }
}

#[test]
fn entities_are_decoded_once() {
    // T-067
    for (text, decoded) in [
        ("a &lt;b&gt; &amp;&quot;&apos;", "a <b> &\"'"),
        ("&&lt;", "&<"),
        ("&a&amp&amp;", "&a&amp&"),
        ("&amp;lt;", "&lt;"),
        ("&amp;amp;", "&amp;"),
        ("a &l", "a &l"),
        ("&lt", "&lt"),
        ("&", "&"),
    ] {
        for (first, second) in splits(text) {
            let (mut entities, mut output) = (EntityDecoder::default(), String::new());
            let mut out = |text: &str| output.push_str(text);
            entities.push(first, &mut out);
            entities.push(second, &mut out);
            entities.flush(&mut out);
            assert_eq!(output, decoded, "{first:?} {second:?}");
        }
    }
}

#[test]
fn code_is_what_markdown_says() {
    // T-029: context after the text.
    for (text, expected) in [
        ("a", CodeContext::Text),
        ("```\nx", CodeContext::Fence),
        ("```rust\nx", CodeContext::Fence),
        ("```\nx\n```\ny", CodeContext::Text),
        ("````\n```\nx", CodeContext::Fence),
        ("```\n````\nx", CodeContext::Text),
        ("~~~\n```\nx", CodeContext::Fence),
        ("```\n~~~\nx", CodeContext::Fence),
        ("~~~\n~~~\nx", CodeContext::Text),
        ("``\nx", CodeContext::Text),
        ("~~\nx", CodeContext::Text),
        ("a `b", CodeContext::Undecided(1)),
        ("a `b` c", CodeContext::Text),
        ("a ``b` c", CodeContext::Undecided(2)),
        ("a `b`` c", CodeContext::Undecided(2)),
        ("a ``b` c`` d", CodeContext::Text),
        ("a `b\nc", CodeContext::Text),
    ] {
        for (first, second) in splits(text) {
            let mut code = CodeTracker::default();
            for piece in [first, second] {
                let mut rest = piece;
                while !rest.is_empty() {
                    rest = &rest[code.read_to_stop(rest, false).0..];
                }
            }
            assert_eq!(code.context(), expected, "{first:?} {second:?}");
        }
    }
}

#[test]
fn a_line_break_in_a_tag_ends_a_code_span() {
    // T-029
    for (tag, code) in [("<b c>", true), ("<b\nc>", false), ("<b `c`>", true)] {
        let mut filter = CodeFilter::new(1024);
        let mut tags = Vec::new();
        let mut out = |piece: FilteredPiece<'_, ()>| {
            if let FilteredPiece::Tag(raw, (), in_code) = piece {
                tags.push((raw.to_owned(), in_code));
            }
        };
        filter.push_text("a `b ", &mut out);
        filter.push_tag(tag, (), &mut out);
        filter.push_text(" c` d", &mut out);
        filter.finish(&mut out);
        assert_eq!(tags, [(tag.to_owned(), code)]);
    }
}

#[test]
fn names_begin_with_letters_and_comments_end_with_two_dashes() {
    // T-028
    for (is_text, tokens) in [
        ("<a1>", &["tag <a1>"][..]),
        ("<1a>", &["<1a>"]),
        ("</1>", &["</1>"]),
        ("<!-- a -> b --> c", &["open", " a -> b ", "close", " c"]),
        ("<!-- a ---> c", &["open", " a -", "close", " c"]),
        ("<!-- -- > -->", &["open", " -- > ", "close"]),
    ] {
        for (first, second) in splits(is_text) {
            let mut output: Vec<(bool, String)> = Vec::new();
            let mut out = |token: MarkupToken<'_>, _: LazyPlace<'_>| {
                let (is_text, label) = match token {
                    MarkupToken::Text(is_text) => (true, is_text.to_owned()),
                    MarkupToken::Tag(tag) => (false, format!("tag {}", tag.raw)),
                    MarkupToken::CommentOpen => (false, "open".to_owned()),
                    MarkupToken::CommentClose => (false, "close".to_owned()),
                    other => panic!("{other:?}"),
                };
                match output.last_mut() {
                    Some((true, last)) if is_text => last.push_str(&label),
                    _ => output.push((is_text, label)),
                }
            };
            let mut lexer = MarkupLexer::new("", 1024);
            lexer.push(first, &mut out);
            lexer.push(second, &mut out);
            lexer.finish(&mut out);
            let output: Vec<String> = output.into_iter().map(|(_, label)| label).collect();
            assert_eq!(output, tokens, "{first:?} {second:?}");
        }
    }
}
