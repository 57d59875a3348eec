//! Code within Markdown, compared with a Markdown library.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};
use tambour::lex::code::{CodeContext, CodeFilter, CodeTracker, FilteredPiece};
use tambour::lex::fence::Fence;
use tambour::lex::scan::SignMasks;
use tambour_fixtures::random::RandomSource;

/// Beginnings and parts of random lines. Each `x` is a place to classify.
const STARTS: &[&str] = &[
    "",
    "",
    "",
    "",
    " ",
    "  ",
    "   ",
    "    ",
    "     ",
    ">",
    "> ",
    "> ",
    "- ",
    "- ",
    "-",
    "* ",
    "+ ",
    "1. ",
    "1) ",
    "2. ",
    "10. ",
    "-     ",
    "- - ",
    "> - ",
    "- > ",
    "\t",
    "# ",
    "  - ",
    "123456789. ",
];
const PIECES: &[&str] = &[
    "x", "x", "x", "x ", " x", "`", "`", "`", "``", "```", "````", "~~~", "~~~~", "~", "\\", "\\\\", "\\`",
    " ", "  ", "   ", "-", "*", "--", "***", "===", "=", ">", "1.", "#", "_", "`x`", "``x``", "`\\`", "\t",
    "+",
];
const LINES: &[&str] =
    &["```", "```", "~~~", "``` x", "x", "x", "`x`", "", "", "---", "***", "- - -", "===", "````", "~~~x"];

/// Builds a text of one to seven lines.
fn random_text(random: &mut RandomSource) -> String {
    let mut text = String::new();
    for line in 0..1 + random.below(7) {
        if line > 0 {
            text.push('\n');
        }
        for _ in 0..random.below(3) {
            text.push_str(random.pick::<&str>(STARTS));
        }
        if random.below(3) == 0 {
            text.push_str(random.pick::<&str>(LINES));
            continue;
        }
        for _ in 0..random.below(7) {
            text.push_str(random.pick::<&str>(PIECES));
        }
    }
    text
}

/// Offset of each `x`, and whether it is code; optionally read byte by byte.
fn tracked_places(text: &str, is_bytewise: bool) -> Vec<(usize, bool)> {
    let mut found = Vec::new();
    let mut filter = CodeFilter::new(usize::MAX);
    let mut sink = |piece: FilteredPiece<'_, usize>| {
        if let FilteredPiece::Tag(_, at, in_code) = piece {
            found.push((at, in_code));
        }
    };
    let mut at = 0;
    for (index, piece) in text.split('x').enumerate() {
        if index > 0 {
            filter.push_text_tag("x", at, &mut sink);
            at += 1;
        }
        let step = if is_bytewise { 1 } else { piece.len().max(1) };
        for start in (0..piece.len()).step_by(step) {
            filter.push_text(&piece[start..start + step], &mut sink);
        }
        at += piece.len();
    }
    filter.finish(&mut sink);
    found
}

/// Places that are code for the library, and places to leave out of the comparison: indented code, which counts as text, and lines
/// that share a code span, since only spans on one line count (T-029).
fn reference_places(text: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (mut code, mut excluded) = (Vec::new(), Vec::new());
    let mut block = None;
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                block = Some(kind);
            }
            Event::End(_) => block = None,
            Event::Text(_) if matches!(block, Some(CodeBlockKind::Fenced(_))) => code.push(range),
            Event::Text(_) if block.is_some() => excluded.push(range),
            Event::Code(_) if text[range.clone()].contains('\n') => {
                let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
                let end = text[range.end..].find('\n').map_or(text.len(), |at| range.end + at);
                excluded.push(start..end);
            }
            Event::Code(_) => code.push(range),
            _ => {}
        }
    }
    (code, excluded)
}

/// Returns whether the library reads a tab of the text wrong: before `>` it does not count as indentation there, and after the run
/// that closes a fence it keeps the fence open.
fn is_misread(text: &str) -> bool {
    const BLANKS: [char; 2] = [' ', '\t'];
    text.match_indices('\t').any(|(at, _)| {
        text[at..].trim_start_matches(BLANKS).starts_with('>')
            || text[..at].trim_end_matches(BLANKS).ends_with(['`', '~'])
    })
}

#[test]
fn code_is_what_a_markdown_library_takes_for_it() {
    // T-029, R-71, X-012
    let cases = std::env::var("PROPTEST_CASES").map_or(20_000, |cases| cases.parse().expect("a number"));
    let mut random = RandomSource::new(29);
    let contains = |ranges: &[Range<usize>], at: usize| ranges.iter().any(|range| range.contains(&at));
    let mut code_count = 0;
    for _ in 0..cases {
        let text = random_text(&mut random);
        let found = tracked_places(&text, false);
        assert_eq!(found, tracked_places(&text, true), "byte by byte: {text:?}");
        if is_misread(&text) {
            continue;
        }
        let (code, excluded) = reference_places(&text);
        for (at, is_code) in found.into_iter().filter(|(at, _)| !contains(&excluded, *at)) {
            assert_eq!(is_code, contains(&code, at), "byte {at} of {text:?}");
            code_count += usize::from(is_code);
        }
    }
    assert!(code_count > cases / 8, "only {code_count} places in code");
}

/// Context at the current place, and after each of some further texts.
fn probe_contexts(code: &CodeTracker) -> Vec<CodeContext> {
    let suffix =
        ["", "x", "`", "\n", "\nx", "\n\nx", "\n  x ```", "\n  ```\nx", "\n```\nx", "\n> x", "\n2. ```\nx"];
    let place = |suffix: &&str| {
        let mut code = code.clone();
        code.skim(suffix, false);
        code.end_line_start();
        code.context()
    };
    suffix.iter().map(place).collect()
}

#[test]
fn pieces_whose_signs_are_known_are_read_like_others() {
    // T-029: pieces whose signs are known are read on a fast path, which does not look at lines of known kinds byte by byte
    let mut random = RandomSource::new(30);
    for _ in 0..20_000 {
        let mut text = random_text(&mut random);
        if random.below(2) == 0 {
            text = text.replace('x', "**x**").replace('~', "");
        }
        let (mut slow, mut fast, mut rest) = (CodeTracker::default(), CodeTracker::default(), &*text);
        while !rest.is_empty() {
            let (piece, remainder) = rest.split_at(rest.len().min(1 + random.below(SignMasks::MAX_LEN)));
            fast.skim_signs(piece, SignMasks::scan(piece).expect("it is short"));
            piece.bytes().for_each(|byte| _ = slow.skim(char::from(byte).to_string().as_str(), false));
            assert_eq!(
                probe_contexts(&fast),
                probe_contexts(&slow),
                "{:?} of {text:?}",
                &text[..text.len() - remainder.len()]
            );
            rest = remainder;
        }
    }
}

#[test]
fn tabs_are_columns() {
    // T-029
    let in_code =
        |text: &str| tracked_places(text, false).into_iter().map(|(_, in_code)| in_code).collect::<Vec<_>>();
    // Up to the next of every four columns, and part of a tab may be indentation of the content.
    assert_eq!(in_code("-\t```\n\tx\n   x"), [true, false]);
    assert_eq!(in_code("> ```\n\t> x"), [false]);
    assert_eq!(in_code(">\t```\n> x"), [true]);
    assert_eq!(in_code(">\t\t```\n> x"), [false]);
    assert_eq!(in_code("```\n```\t\nx"), [false]);
}

#[test]
fn containers_without_end_are_text_from_a_depth_on() {
    // T-029, X-007
    for marker in [">", "> ", "- ", "1. "] {
        let deep = marker.repeat(100_000);
        assert_eq!(
            tracked_places(&format!("{deep}x `x`\n```\nx\n"), false).last().map(|(_, code)| *code),
            Some(true)
        );
        // Nested too deep to be tracked as a fence, so it is text.
        assert_eq!(
            tracked_places(&format!("{deep}```\nx"), false).last().map(|(_, code)| *code),
            Some(false)
        );
    }
}

#[test]
fn a_fence_closes_at_as_many_of_the_same() {
    let (fence, rest) = Fence::parse("````json x").expect("it is one");
    assert_eq!((fence.mark, fence.len, rest), (b'`', 4, "json x"));
    for (line, closes) in
        [("````", true), (" `````\r", true), ("```", false), ("~~~~", false), ("```` x", false)]
    {
        assert_eq!(fence.is_closed_by_line(line), closes, "{line}");
    }
    for line in ["", "``", "``~", " ```", "x"] {
        assert_eq!(Fence::parse(line), None, "{line}");
    }
}
