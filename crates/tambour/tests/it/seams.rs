//! Text removed from an answer or a summary never joins its neighbours to a tag: the output is read again.

use tambour::dialect::DIALECTS;
use tambour::event::Event;
use tambour::lex::code::{CodeFilter, FilteredPiece};
use tambour::lex::markup::{MarkupLexer, MarkupToken};
use tambour::lex::seam::{SeamPiece, SeamReader};
use tambour::span::Place;
use tambour::{InputEnd, Options};
use tambour_fixtures::corpus::{load_authored, load_recorded};
use tambour_fixtures::random::RandomSource;
use tambour_fixtures::{ChunkCuts, ReadingCase, fixtures_folder, load_fixtures};

/// Matches every name of a tag.
const ANY_NAME: fn(&str) -> bool = |_| true;

/// Pieces of random summaries.
const PIECES: &[&str] =
    &["<", "</", "<b", "<a x=", "<a x=\"", "b", " c", ">", "\"", "/", "=", "\n", "text ", "script", "&"];

/// Collects all replies of fixtures and corpora, and many damaged ones.
fn replies() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = load_fixtures(&fixtures_folder())
        .expect("fixtures")
        .into_iter()
        .map(|fixture| fixture.input)
        .collect();
    for entry in DIALECTS {
        for corpus in [load_authored(entry.name), load_recorded(entry.name)] {
            all.extend(corpus.expect("a corpus").iter().map(|reply| reply.joined_text().into_bytes()));
        }
    }
    let mut random = RandomSource::new(69);
    let original_count = all.len();
    for _ in 0..1500 {
        all.push(random.torn_reply().into_bytes());
        all.push(random.tag_soup(24).into_bytes());
        let reply = random.below(original_count);
        all.push(random.mutate(&all[reply]));
    }
    all
}

fn read_events(dialect: &str, input: &[u8]) -> Vec<Event<'static>> {
    let case =
        ReadingCase { dialect, options: &Options::default(), reasoning: None, input, end: &InputEnd::stop() };
    case.read(ChunkCuts::Single).expect("the dialect exists").events
}

/// Lists the tags of a Markdown text outside of code and comments.
fn live_tags(text: &str, is_counted: fn(&str) -> bool) -> Vec<String> {
    #[derive(Clone, Copy)]
    enum Kind {
        Tag(bool),
        Comment(bool),
    }
    let (mut live, mut in_comment) = (Vec::new(), false);
    // Lines of any length: Markdown has no limit.
    let mut filter = CodeFilter::new(usize::MAX);
    let mut sink = |piece: FilteredPiece<'_, Kind>| match piece {
        FilteredPiece::Tag(_, Kind::Comment(open), in_code) => in_comment = open && (in_comment || !in_code),
        FilteredPiece::Tag(raw, Kind::Tag(true), false) if !in_comment => live.push(raw.to_owned()),
        _ => {}
    };
    let mut lexer = MarkupLexer::new("", Options::default().limits.tag);
    let mut read = |token: MarkupToken<'_>| match token {
        // A tag that begins in the line of an opening fence ends inside the code, so it is none.
        MarkupToken::Tag(tag) if tag.raw.contains('\n') && (text.contains("```") || text.contains("~~~")) => {
            filter.push_text(tag.raw, &mut sink);
        }
        MarkupToken::Tag(tag) => filter.push_text_tag(tag.raw, Kind::Tag(is_counted(tag.name)), &mut sink),
        MarkupToken::CommentOpen | MarkupToken::CommentClose => {
            filter.push_text_tag(
                token.raw(),
                Kind::Comment(matches!(token, MarkupToken::CommentOpen)),
                &mut sink,
            );
        }
        _ => filter.push_text(token.raw(), &mut sink),
    };
    lexer.push(text, &mut |token, _| read(token));
    lexer.finish(&mut |token, _| read(token));
    filter.finish(&mut sink);
    live
}

fn answer(events: &[Event<'_>]) -> String {
    let text = |event: &Event<'_>| match event {
        Event::FinalDelta { text } => Some(text.to_string()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Fails with the first reply whose answer holds a live tag, and the number of such replies.
fn assert_no_live_tags(dialect: &str, is_counted: fn(&str) -> bool) {
    let complaint = |reply: &Vec<u8>| {
        let answer = answer(&read_events(dialect, reply));
        let tags = live_tags(&answer, is_counted);
        let reply_text = String::from_utf8_lossy(reply);
        (!tags.is_empty()).then(|| format!("{tags:?} in {answer:?}\nof {reply_text:?}"))
    };
    let complaints: Vec<String> = replies().iter().filter_map(complaint).collect();
    assert!(complaints.is_empty(), "{dialect}: {} replies, such as {}", complaints.len(), complaints[0]);
}

#[test]
fn no_answer_of_thinkingml_holds_a_tag() {
    // T-020, J-048
    assert_no_live_tags("thinkingml", ANY_NAME);
}

#[test]
fn no_tag_is_made_in_a_summary() {
    // T-006, J-002
    let mut random = RandomSource::new(6);
    for _ in 0..3000 {
        let mut inner = String::new();
        for _ in 0..2 + random.below(10) {
            let list = if random.below(3) == 0 { &["<b>", "</b>", "<i x='y'>"] } else { PIECES };
            inner.push_str(random.pick::<&str>(list));
        }
        // The failure marker passes unchanged (T-026).
        if inner.contains("<<") {
            continue;
        }
        let reply = format!("<serp>{inner}</serp><thinking>");
        for event in read_events("thinkingml", reply.as_bytes()) {
            if let Event::SerpSummary { text } = event {
                assert_eq!(live_tags(&text, ANY_NAME), [""; 0], "{text:?} of {reply:?}");
            }
        }
    }
}

#[test]
fn text_is_read_again_from_an_unfinished_tag_on() {
    let read = |pieces: &[&str]| {
        let mut seam = SeamReader::new("", 64);
        let mut out = Vec::new();
        let mut at = Place::START;
        for piece in pieces {
            seam.push_text(piece, at, &mut |seam_piece| {
                out.push(match seam_piece {
                    SeamPiece::Text(text) => text.to_owned(),
                    SeamPiece::UnfinishedTag(raw, at) => format!("[{}: {raw}]", at.offset),
                    SeamPiece::Tag { raw, at, end } => format!("[{}-{end}: {raw}]", at.offset),
                });
            });
            at.advance(piece);
        }
        seam.finish(&mut |seam_piece| out.push(format!("{seam_piece:?}")));
        out
    };
    assert_eq!(read(&["a ", "<scr", "ipt>", " b"]), ["a ", "[2-10: <script>]", " b"]);
    // The value of an attribute continues after an escaped tag.
    assert_eq!(read(&["<a x=", "<b", ">", " b"]), ["[0: <a x=]", "[5-8: <b>]", " b"]);
    assert_eq!(read(&["<a x", "<b", ">"]), ["<a x", "[4-7: <b>]"]);
    assert_eq!(read(&["<", " b"]), ["<", " b"]);
    assert_eq!(read(&["<b", "c"]), ["Text(\"<bc\")"]);
    // Text past the limit of a tag is sent.
    let long = format!("<a x=\"{}", "y".repeat(58));
    assert_eq!(read(&[&long, "<b", ">"])[..2], [long.clone(), "[64-67: <b>]".to_owned()]);
}
