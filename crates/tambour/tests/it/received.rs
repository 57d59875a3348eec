//! Places count bytes of the reply as it was received, and a limit cuts no character in two.

use tambour::event::Collected;
use tambour::{End, Event, Options, Pipeline};
use tambour_fixtures::{Case, Cuts};

#[test]
fn places_count_bytes_as_received() {
    // what is no UTF-8 stands as U+FFFD in the text, which is longer
    let input =
        b"<thinking>\xFF\xE4\xBD<phase id=\"1\"><title>a</title></phase></thinking><final>b<br/></final>";
    let options = Options::default();
    let case = Case { dialect: "thinkingml", options: &options, reasoning: None, input, end: &End::stop() };
    let whole = case.read(Cuts::Whole).expect("it is in the table");
    case.same(&whole, Cuts::Every(1)).expect("it does not depend on the cuts");
    let span = |code: &str| {
        let found: Vec<_> = whole.findings.iter().filter(|finding| finding.code == code).collect();
        found.iter().map(|finding| &input[finding.span.start..finding.span.end]).collect::<Vec<_>>()
    };
    assert_eq!(span("not_utf8"), [&b"\xFF"[..], b"\xE4\xBD"]);
    assert_eq!(span("unexpected_tag"), [b"<br/>"]);
}

#[test]
fn the_limit_of_the_input_cuts_no_character() {
    // the text up to the limit is sent, half a character is not, and nothing is wrong with its bytes
    let mut options = Options::default();
    options.limits.input = 4;
    for chunks in [&["aaa好"][..], &["aaa", "好"], &["aa", "a好"]] {
        let mut found = Collected::default();
        let mut pipeline = Pipeline::new("plain", &options).expect("it is in the table");
        chunks.iter().for_each(|chunk| pipeline.push(chunk.as_bytes(), &mut found));
        let joined = found.joined();
        let answer: Vec<_> =
            joined.iter().filter(|event| matches!(event, Event::FinalDelta { .. })).collect();
        assert_eq!(answer, [&Event::FinalDelta { text: "aaa".into() }]);
        let places: Vec<_> =
            found.findings.iter().map(|finding| (&*finding.code, finding.span.start)).collect();
        assert_eq!(places, [("input_too_large", 3)]);
        let Some(Event::Error(failure)) = joined.last() else { panic!("no error at the end: {joined:?}") };
        assert!(failure.message.contains("`limits.input`, 4 bytes"), "{}", failure.message);
    }
}
