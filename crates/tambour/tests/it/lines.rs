//! JSON Lines and answers: a finding covers every lost part of a reply, and lists cost no more than
//! their bytes.

use tambour::event::{EventCollector, Sink};
use tambour::{Event, Finding, InputEnd, Options, Pipeline};
use tambour_fixtures::run::reading_case;
use tambour_fixtures::{ChunkCuts, fixtures_folder, load_fixtures};

/// Marker in fixtures for text that no event holds.
const LOST: &str = "LOST";

#[test]
fn what_no_event_holds_is_inside_a_finding() {
    let fixtures = load_fixtures(&fixtures_folder().join("faults")).expect("the fixtures are readable");
    let mut words = 0;
    for fixture in fixtures.iter().filter(|fixture| matches!(&*fixture.dialect, "jsonseq" | "ai_say")) {
        let text = str::from_utf8(&fixture.input).expect("the fixture is text");
        let reading =
            reading_case(fixture, &fixture.options).read(ChunkCuts::Single).expect("the dialect exists");
        for (at, word) in text.match_indices(LOST) {
            words += 1;
            let told = |finding: &&Finding| finding.span.start <= at && at + word.len() <= finding.span.end;
            let found: Vec<&Finding> = reading.findings.iter().filter(told).collect();
            assert!(!found.is_empty(), "{}: {:?}", fixture.name, reading.findings); // J-051
        }
        let shown = |event: &&Event<'_>| event.data().to_string().contains(LOST);
        let shown: Vec<&Event<'_>> = reading.events.iter().filter(shown).collect();
        assert!(shown.is_empty(), "{}: {shown:?}", fixture.name);
    }
    assert!(words > 20, "only {words} words");
}

/// Sink that drops everything.
struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _: Event<'_>) {}
}

#[test]
fn lists_cost_no_more_than_their_bytes() {
    const EVENT: &str = "{\"event\":\"thinking_start\",\"data\":{}}\n";
    const SIZE: usize = 1 << 20;
    // an event and then a list of many items that are none
    for (begin, item, end) in [
        ("[", "{},", "]"),
        ("[", "1,", "]"),
        ("[", "{\"event\":\"x\"},", "]"),
        ("", "{}", ""),
        ("", "{}\n", ""),
        ("", "x\n", ""),
        ("{\"event\":\"final_delta\",\"data\":{\"text\":\"a\",\"b\":[", "[],", "]}}"),
        ("{\"event\":\"serp_queries\",\"data\":{\"queries\":[", "1,", "]}}"),
        ("{", "\"a\":1,", "\"event\":\"final_end\"}"),
        ("{", "\"a\":{\"b\":1},", "\"event\":\"final_end\"}"),
    ] {
        for before in [EVENT, ""] {
            let reply = [before, begin, &item.repeat(SIZE / item.len()), end].concat();
            let most = allocation_counter::measure(|| {
                let mut pipeline = Pipeline::new("jsonseq", &Options::default()).expect("the dialect exists");
                pipeline.push(reply.as_bytes(), &mut Nothing);
                pipeline.finish(&InputEnd::stop(), &mut Nothing);
            });
            assert!(most.bytes_max < 16 * SIZE as u64, "{before}{begin}{item}: {} bytes", most.bytes_max);
        }
    }
}

#[test]
fn text_of_an_event_that_is_not_known_yet_is_counted() {
    // `text` that precedes the name of its event waits, up to the limit
    let mut options = Options::default();
    options.limits.hold = 1 << 10;
    let mut found = EventCollector::default();
    let mut pipeline = Pipeline::new("jsonseq", &options).expect("the dialect exists");
    let mut push = |text: &str, found: &mut EventCollector| {
        pipeline.push(text.as_bytes(), found);
        pipeline.held_bytes()
    };
    push("{\"event\":\"final_delta\",\"data\":{\"text\":\"a\"}}\n", &mut found);
    push("{\"event\":\"thinking_start\",\"data\":{}}\n{\"data\":{\"text\":\"", &mut found);
    assert!(push(&"b".repeat(900), &mut found) >= 900);
    assert!(push("c\"},\"event\":\"final_delta\"}\n{\"data\":{\"text\":\"", &mut found) < 900);
    let held = push(&"LOST".repeat(1000), &mut found);
    assert!(held <= 100, "{held}");
    push("\"},\"event\":\"final_delta\"}\n", &mut found);
    pipeline.finish(&InputEnd::stop(), &mut found);
    let text = found.join_deltas().into_iter().find_map(|event| match event {
        Event::FinalDelta { text } => Some(text.into_owned()),
        _ => None,
    });
    assert_eq!(text, Some(["a", &"b".repeat(900), "c"].concat()));
    let over: Vec<&Finding> = found.findings.iter().filter(|f| f.code == "limit_exceeded").collect();
    assert_eq!(over.len(), 1);
    assert!(over[0].span.end - over[0].span.start > 4000);
}
