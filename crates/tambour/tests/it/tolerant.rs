//! Misspelt tags of known names.

use tambour::lex::markup::{MarkupLexer, MarkupToken, TagFault, TagFaults, TagKind, TagNames, TolerantLexer};
use tambour::lex::utf8::Utf8Decoder;
use tambour::span::{LazyPlace, Place};
use tambour::structure::{ExpectedElement, ExpectedStructure};
use tambour_fixtures::random::RandomSource;

const LIMIT: usize = 1024;

fn tag_names() -> TagNames {
    let mut expected =
        ExpectedStructure::new(["thought", "content", "choice", "media"].map(ExpectedElement::new).into());
    expected.elements[0].aliases.push("think".into());
    TagNames::new(expected.names())
}

fn tolerant_lexer(limit: usize) -> TolerantLexer {
    MarkupLexer::new("", limit).into_tolerant(tag_names())
}

/// A token in the form of the tests: raw text, and for a tag `<name>` with its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TokenRecord {
    raw: String,
    /// `None` for text.
    tag: Option<String>,
    at: Place,
}

fn record_token(token: &MarkupToken<'_>, at: Place) -> TokenRecord {
    let tag = match token {
        MarkupToken::Text(_) => None,
        MarkupToken::Tag(tag) => {
            let (slash, end) = match tag.kind {
                TagKind::Open => ("", ""),
                TagKind::Close => ("/", ""),
                TagKind::SelfClosing => ("", "/"),
            };
            let faults: String = tag.faults.iter().map(|fault| format!(" {fault:?}")).collect();
            Some(format!("<{slash}{}{end}>{faults}", tag.name))
        }
        other => Some(format!("{other:?}")),
    };
    TokenRecord { raw: token.raw().to_owned(), tag, at }
}

/// Reads a text in pieces; returns its tokens, text joined, and the most bytes held back. An unfinished tag is the token `half`.
fn read<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<TokenRecord>, usize) {
    let (mut lexer, mut utf8, mut records, mut max_held) =
        (tolerant_lexer(limit), Utf8Decoder::default(), Vec::<TokenRecord>::new(), 0);
    let mut push = |record: TokenRecord| match records.last_mut() {
        Some(TokenRecord { raw, tag: None, .. }) if record.tag.is_none() => raw.push_str(&record.raw),
        _ => records.push(record),
    };
    for piece in pieces {
        utf8.push(piece, &mut |text, _| {
            lexer.push(text, &mut |token, at: LazyPlace<'_>| push(record_token(&token, at.resolve())));
            max_held = max_held.max(lexer.carry().len());
        });
    }
    if let Some(half) = lexer.unfinished_tag().map(str::to_owned) {
        push(TokenRecord { raw: half, tag: Some("half".to_owned()), at: lexer.drop_carry() });
    }
    lexer.finish(&mut |token, at| push(record_token(&token, at.resolve())));
    let raw: String = records.iter().map(|record| record.raw.as_str()).collect();
    assert_eq!(lexer.place(), Place::START.end_of(&raw));
    (records, max_held)
}

/// Reads a text; fails unless every cut, and reading byte by byte, gives the same tokens.
fn tokens(text: &str) -> Vec<TokenRecord> {
    let bytes = text.as_bytes();
    let (whole, _) = read(LIMIT, [bytes]);
    for at in 0..bytes.len() {
        let (first, second) = bytes.split_at(at);
        assert_eq!(read(LIMIT, [first, second]).0, whole, "{text:?} cut at {at}");
    }
    assert_eq!(read(LIMIT, bytes.chunks(1)).0, whole, "{text:?} byte by byte");
    let raw: String = whole.iter().map(|record| record.raw.as_str()).collect();
    assert_eq!(raw, text);
    let mut place = Place::START;
    for record in &whole {
        assert_eq!(record.at, place, "{record:?} of {text:?}");
        place.advance(&record.raw);
    }
    whole
}

/// Tokens in the form of the table: raw text, or `raw => tag`.
fn table(text: &str) -> Vec<String> {
    let line = |record: TokenRecord| match record.tag {
        Some(tag) => format!("{} => {tag}", record.raw),
        None => record.raw,
    };
    tokens(text).into_iter().map(line).collect()
}

#[test]
fn tags_of_known_names_are_read_however_they_are_written() {
    for (text, expected) in [
        ("<content>", &["<content> => <content>"][..]),
        ("<content >", &["<content > => <content>"]),
        ("<media src='a' />", &["<media src='a' /> => <media/>"]),
        ("< content >", &["< content > => <content> Blanks"]),
        ("<\tcontent>", &["<\tcontent> => <content> Blanks"]),
        ("</ content>", &["</ content> => </content> Blanks"]),
        ("< / content>a", &["< / content> => </content> Blanks", "a"]),
        ("<media / >", &["<media / > => <media/> Blanks"]),
        ("<Content>a</CONTENT>", &["<Content> => <Content> Case", "a", "</CONTENT> => </CONTENT> Case"]),
        ("<Think>", &["<Think> => <Think> Case"]),
        ("＜content＞", &["＜content＞ => <content> FullWidth"]),
        ("＜／content＞", &["＜／content＞ => </content> FullWidth"]),
        ("＜content>", &["＜content> => <content> FullWidth"]),
        ("<content＞", &["<content＞ => <content> FullWidth"]),
        ("<／content>", &["<／content> => </content> FullWidth"]),
        ("</content＞", &["</content＞ => </content> FullWidth"]),
        ("＜media src=\"a\"／＞", &["＜media src=\"a\"／＞ => <media/> FullWidth"]),
        ("＜ Content ＞", &["＜ Content ＞ => <Content> Blanks Case FullWidth"]),
        ("你好，＜／content＞！", &["你好，", "＜／content＞ => </content> FullWidth", "！"]),
        ("a</content\nb", &["a", "</content => </content> MissingBracket", "\nb"]),
        ("a</content \r\nb", &["a", "</content  => </content> MissingBracket", "\r\nb"]),
        ("a</content<choice>", &["a", "</content => </content> MissingBracket", "<choice> => <choice>"]),
        (
            "a＜／content＜choice＞",
            &["a", "＜／content => </content> FullWidth MissingBracket", "＜choice＞ => <choice> FullWidth"],
        ),
        (
            "</content<!-- a -->",
            &["</content => </content> MissingBracket", "<!-- => CommentOpen", " a ", "--> => CommentClose"],
        ),
        ("<content\n你好", &["<content => <content> MissingBracket", "\n你好"]),
        ("a\n <content\nHe went, and", &["a\n ", "<content => <content> MissingBracket", "\nHe went, and"]),
        (
            "</thought> <content<b>",
            &["</thought> => </thought>", " ", "<content => <content> MissingBracket", "<b> => <b>"],
        ),
        ("<choice id='1'\n你", &["<choice id='1' => <choice> MissingBracket", "\n你"]),
        ("<choice id=1＜b＞", &["<choice id=1 => <choice> MissingBracket", "＜b＞"]),
    ] {
        assert_eq!(table(text), expected, "{text:?}");
    }
}

#[test]
fn what_may_be_meant_otherwise_is_text() {
    for text in [
        "a < b and c > d",
        "a < b\n",
        "a<b＞",
        "＜名＞ ＜b＞ ＜conten＞ ＜contents＞",
        "< b >",
        "< /b>",
        "</ b\n",
        // An opening tag without its bracket counts only at the start of its line.
        "use <content\nas a tag",
        "a <content<",
        // Words after the name make it prose, and so does text that follows it directly.
        "<content is a tag, you know",
        "< content is a tag >",
        "<content你",
        "`<content` and `</content`",
        "</content, it says",
        "＜content is＞",
        // A closing tag has no attributes; a misspelt tag stands on one line.
        "</content id='1'＞",
        "＜choice id='1\n'＞",
        "<\ncontent>",
        "＜choice id='＜'＞",
        "＜choice id==1＞",
        "〈content〉《content》",
        "<",
        "＜",
        "a < ",
    ] {
        assert_eq!(table(text), [text], "{text:?}");
    }
}

#[test]
fn attributes_are_read_from_tags_that_are_written_wrongly() {
    let mut attributes = Vec::new();
    let mut lexer = tolerant_lexer(LIMIT);
    let text = "＜choice id = \"a＞b\" kind='c' n=1 ／ ＞\n<choice id=\"a\"\n你";
    lexer.push(text, &mut |token, _| {
        if let MarkupToken::Tag(tag) = token {
            attributes.push(
                tag.attributes()
                    .map(|a| format!("{}={}", a.name, a.value.unwrap_or("?")))
                    .collect::<Vec<_>>(),
            );
        }
    });
    assert_eq!(attributes, [&["id=a＞b", "kind=c", "n=1"][..], &["id=a"]]);
}

#[test]
fn comments_hold_strict_tags_only() {
    assert_eq!(
        table("<!-- ＜content＞ <Content> -->＜content＞"),
        [
            "<!-- => CommentOpen",
            " ＜content＞ ",
            "<Content> => <Content> Case",
            " ",
            "--> => CommentClose",
            "＜content＞ => <content> FullWidth",
        ]
    );
    let mut tags = 0;
    let mut lexer = MarkupLexer::new("", LIMIT).without_comments().into_tolerant(tag_names());
    lexer.push("<!-- ＜content＞", &mut |token, _| {
        tags += usize::from(matches!(token, MarkupToken::Tag(_)))
    });
    assert_eq!(tags, 1);
}

#[test]
fn half_a_tag_at_the_end_is_told_from_text() {
    for half in [
        "</",
        "＜／",
        "< /",
        "<c",
        "<conte",
        "<content",
        "</content",
        "</content ",
        "＜／Cont",
        "<content ",
        "<choice id=",
        "<choice id='a",
        "<choice id='a' cla",
        "<media src='a' /",
        "<t",
        "< cont",
    ] {
        let lines = table(&format!("a{half}"));
        assert_eq!(lines, ["a".to_owned(), format!("{half} => half")], "{half:?}");
        assert!(tag_names().starts_tag(half), "{half:?}");
    }
    for text in ["<", "＜", "< ", "<b", "<contents", "<content is", "</b", "a", "", "<!-", "<!-- <conte"] {
        assert!(table(text).iter().all(|line| !line.ends_with("=> half")), "{text:?}");
        assert!(!tag_names().starts_tag(text), "{text:?}");
    }
}

#[test]
fn a_tolerated_tag_ends_at_the_limit() {
    //
    let tag = |text: &str| read(22, text.as_bytes().chunks(1)).0[0].tag.is_some();
    assert!(tag("＜choice id='abcdef'>")); // 22 bytes
    assert!(!tag("＜choice id='abcdefg'>"));
    assert!(tag("＜choice id='abcd'＞")); // 22
    assert!(!tag("＜choice id='abcde'＞"));
}

/// Pieces that matter to tolerant reading.
const PIECES: &[&str] = &[
    "<",
    "<",
    "＜",
    "＜",
    ">",
    "＞",
    "/",
    "／",
    " ",
    "\n",
    "content",
    "Content",
    "choice",
    "thought",
    "think",
    "c",
    "b",
    "id=",
    "'",
    "\"",
    "x",
    "=",
    "<content",
    "</content",
    "＜／content＞",
    "< / content >",
    "<!--",
    "-->",
    "-",
    "你",
    "，",
    "<content>",
    "</b>",
    "\r\n",
    "!",
    "<<",
    "\u{FEFF}",
    "＝",
];

fn random_soup(random: &mut RandomSource) -> String {
    (0..1 + random.below(14)).map(|_| *random.pick::<&str>(PIECES)).collect()
}

#[test]
fn no_byte_is_lost_however_a_text_is_cut() {
    let mut random = RandomSource::new(205);
    for _ in 0..20_000 {
        let text = random_soup(&mut random);
        let bytes = text.as_bytes();
        let limit = if random.below(4) == 0 { 12 } else { LIMIT };
        let (whole, held) = read(limit, [bytes]);
        let raw: String = whole.iter().map(|record| record.raw.as_str()).collect();
        assert_eq!(raw, text);
        let (single, single_held) = read(limit, bytes.chunks(1));
        assert_eq!(single, whole, "{text:?} byte by byte");
        assert!(held.max(single_held) <= limit, "{single_held} bytes of {text:?} are held");
        let mut cuts = random.random_cuts(bytes.len());
        cuts.push(bytes.len());
        let mut start = 0;
        let pieces = cuts.iter().map(|&at| &bytes[std::mem::replace(&mut start, at)..at]);
        assert_eq!(read(limit, pieces).0, whole, "{text:?} cut at {cuts:?}");
    }
}

#[test]
fn tags_of_the_strict_syntax_stay_and_others_have_slips() {
    // T-028
    let mut random = RandomSource::new(28);
    for _ in 0..20_000 {
        let text = random_soup(&mut random);
        let (mut strict, mut tolerant) = (Vec::new(), Vec::new());
        let mut lexer = MarkupLexer::new("", LIMIT);
        lexer.push(&text, &mut |token, at| strict.extend(markup_record(&token, at)));
        lexer.finish(&mut |token, at| strict.extend(markup_record(&token, at)));
        let mut lexer = self::tolerant_lexer(LIMIT);
        lexer.push(&text, &mut |token, at| tolerant.extend(markup_record(&token, at)));
        lexer.finish(&mut |token, at| tolerant.extend(markup_record(&token, at)));
        assert!(strict.iter().all(|(.., faults)| faults.is_none()));
        let is_strict = |at: &Place, raw: &str| strict.iter().any(|(a, r, _)| a == at && r == raw);
        let is_tolerance =
            |fault| [TagFault::Blanks, TagFault::FullWidth, TagFault::MissingBracket].contains(&fault);
        for (at, raw, faults) in &tolerant {
            assert_eq!(is_strict(at, raw), !faults.iter().any(is_tolerance), "{raw:?} of {text:?}");
        }
        let strict_count = tolerant.iter().filter(|(at, raw, _)| is_strict(at, raw)).count();
        assert_eq!(strict_count, strict.len(), "{text:?}");
    }
}

/// Place, raw text and faults of a token other than text.
fn markup_record(token: &MarkupToken<'_>, at: LazyPlace<'_>) -> Option<(Place, String, TagFaults)> {
    let faults = match token {
        MarkupToken::Text(_) => return None,
        MarkupToken::Tag(tag) => tag.faults,
        _ => TagFaults::NONE,
    };
    Some((at.resolve(), token.raw().to_owned(), faults))
}

#[test]
fn work_on_hostile_text_is_linear() {
    // bytes allocated, bytes held and tokens; a character is read twice at most, which these counts do not show.
    let patterns = [
        "＜",
        "<",
        "< ",
        "＜ ",
        "<content ",
        "<content\n",
        "</content<",
        "＜content＜",
        "<c＜",
        "＜choice id='",
        "<choice id=＜",
        " ",
        "<content a ",
        "，",
        "<content x=\"",
        "</ ",
        "＜／",
        "<!--＜content",
        "<b x='＜content＞",
        "<choice a=1 b=2\n",
        "\n <content",
        "／",
    ];
    for pattern in patterns {
        for chunk in [1, 4, usize::MAX] {
            let cost = |size: usize| {
                let text = pattern.repeat(size / pattern.len());
                let (mut token_count, mut max_held) = (0, 0);
                let allocations = allocation_counter::measure(|| {
                    let (mut lexer, mut utf8) = (tolerant_lexer(LIMIT), Utf8Decoder::default());
                    for piece in text.as_bytes().chunks(chunk) {
                        utf8.push(piece, &mut |text, _| lexer.push(text, &mut |_, _| token_count += 1));
                        max_held = max_held.max(lexer.carry().len());
                    }
                    lexer.finish(&mut |_, _| token_count += 1);
                });
                (allocations.bytes_total, token_count, max_held)
            };
            let (small, large) = (cost(8 << 10), cost(64 << 10));
            assert!(
                large.0 <= 16 * small.0 + (64 << 10),
                "{pattern:?} in {chunk}: {} then {}",
                small.0,
                large.0
            );
            assert!(large.1 <= (64 << 10) + 1, "{pattern:?} in {chunk}: {} tokens", large.1);
            assert!(large.2 <= LIMIT, "{pattern:?} in {chunk}: {} bytes held", large.2);
        }
    }
}
