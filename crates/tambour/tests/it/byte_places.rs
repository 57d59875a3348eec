//! Places count bytes of the reply as it was received, and a limit cuts no character in two.

use tambour::event::EventCollector;
use tambour::{Event, InputEnd, Options, Pipeline};
use tambour_fixtures::{ChunkCuts, ReadingCase};

#[test]
fn places_count_bytes_as_received() {
    // bytes that are not UTF-8 become U+FFFD in the text, which is longer
    let input =
        b"<thinking>\xFF\xE4\xBD<phase id=\"1\"><title>a</title></phase></thinking><final>b<br/></final>";
    let options = Options::default();
    let case = ReadingCase {
        dialect: "thinkingml",
        options: &options,
        reasoning: None,
        input,
        end: &InputEnd::stop(),
    };
    let whole = case.read(ChunkCuts::Single).expect("it is in the table");
    case.check_same(&whole, ChunkCuts::Every(1)).expect("it does not depend on the cuts");
    let span = |code: &str| {
        let found: Vec<_> = whole.findings.iter().filter(|finding| finding.code == code).collect();
        found.iter().map(|finding| &input[finding.span.start..finding.span.end]).collect::<Vec<_>>()
    };
    assert_eq!(span("not_utf8"), [&b"\xFF"[..], b"\xE4\xBD"]);
    assert_eq!(span("unexpected_tag"), [b"<br/>"]);
}

#[test]
fn the_limit_of_the_input_cuts_no_character() {
    // the text up to the limit is sent, half a character is dropped without a finding on its bytes
    let mut options = Options::default();
    options.limits.input = 4;
    for chunks in [&["aaa好"][..], &["aaa", "好"], &["aa", "a好"]] {
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new("plain", &options).expect("it is in the table");
        chunks.iter().for_each(|chunk| pipeline.push(chunk.as_bytes(), &mut sink));
        let joined = sink.join_deltas();
        let answer: Vec<_> =
            joined.iter().filter(|event| matches!(event, Event::FinalDelta { .. })).collect();
        assert_eq!(answer, [&Event::FinalDelta { text: "aaa".into() }]);
        let places: Vec<_> =
            sink.findings.iter().map(|finding| (&*finding.code, finding.span.start)).collect();
        assert_eq!(places, [("input_too_large", 3)]);
        let Some(Event::Error(failure)) = joined.last() else { panic!("no error at the end: {joined:?}") };
        assert!(failure.message.contains("`limits.input`, 4 bytes"), "{}", failure.message);
    }
}

#[test]
fn many_pieces_that_are_no_text_keep_their_places() {
    // text of growing length between pieces of one to three bytes, single and in runs
    let invalid_pieces = [&b"\xFF"[..], b"\xE4\xBD", b"\xF0\x9F\x98"];
    let (mut input, mut expected) = (Vec::new(), Vec::new());
    for number in 0..2000 {
        input.extend("x".repeat(number % 7 + 1 + if number % 500 == 0 { 300 } else { 0 }).bytes());
        for _ in 0..=number % 4 {
            let piece = invalid_pieces[number % 3];
            expected.push((input.len(), input.len() + piece.len()));
            input.extend(piece);
        }
    }
    input.push(b'.');
    let mut options = Options::default();
    options.limits.findings = expected.len();
    let found = |chunk: usize| {
        let mut found = EventCollector::default();
        let mut pipeline = Pipeline::new("plain", &options).expect("it is in the table");
        input.chunks(chunk).for_each(|chunk| pipeline.push(chunk, &mut found));
        pipeline.finish(&InputEnd::stop(), &mut found);
        found.findings.iter().map(|finding| (finding.span.start, finding.span.end)).collect::<Vec<_>>()
    };
    for chunk in [1, 7, input.len()] {
        assert_eq!(found(chunk), expected, "chunks of {chunk}");
    }
}

#[test]
fn places_of_pieces_that_are_no_text_are_kept_in_few_bytes() {
    // every second byte is invalid, so that each has its own finding
    let input = b"\xFFa".repeat(1 << 19);
    let mut pipeline = Pipeline::new("plain", &Options::default()).expect("it is in the table");
    let memory = allocation_counter::measure(|| {
        input.chunks(64).for_each(|chunk| pipeline.push(chunk, &mut |_: Event<'_>| {}));
    });
    assert!(memory.bytes_current < 3 << 20, "{memory:?}");
}
