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
            let covers_word =
                |finding: &&Finding| finding.span.start <= at && at + word.len() <= finding.span.end;
            let found: Vec<&Finding> = reading.findings.iter().filter(covers_word).collect();
            assert!(!found.is_empty(), "{}: {:?}", fixture.name, reading.findings); // J-051
        }
        let leaks = |event: &&Event<'_>| event.data().to_string().contains(LOST);
        let leaks: Vec<&Event<'_>> = reading.events.iter().filter(leaks).collect();
        assert!(leaks.is_empty(), "{}: {leaks:?}", fixture.name);
    }
    assert!(words > 20, "only {words} words");
}

/// Sink that drops everything.
struct NullSink;

impl Sink for NullSink {
    fn event(&mut self, _: Event<'_>) {}
}

#[test]
fn lists_cost_no_more_than_their_bytes() {
    const EVENT: &str = "{\"event\":\"thinking_start\",\"data\":{}}\n";
    const SIZE: usize = 1 << 20;
    // an event and then a list of many items that are no events
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
            let memory = allocation_counter::measure(|| {
                let mut pipeline = Pipeline::new("jsonseq", &Options::default()).expect("the dialect exists");
                pipeline.push(reply.as_bytes(), &mut NullSink);
                pipeline.finish(&InputEnd::stop(), &mut NullSink);
            });
            assert!(memory.bytes_max < 16 * SIZE as u64, "{before}{begin}{item}: {} bytes", memory.bytes_max);
        }
    }
}

#[test]
fn text_of_an_event_that_is_not_known_yet_is_counted() {
    // `text` that precedes the name of its event waits, up to the limit
    let mut options = Options::default();
    options.limits.hold = 1 << 10;
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("jsonseq", &options).expect("the dialect exists");
    let mut push = |text: &str, sink: &mut EventCollector| {
        pipeline.push(text.as_bytes(), sink);
        pipeline.held_bytes()
    };
    push("{\"event\":\"final_delta\",\"data\":{\"text\":\"a\"}}\n", &mut sink);
    push("{\"event\":\"thinking_start\",\"data\":{}}\n{\"data\":{\"text\":\"", &mut sink);
    assert!(push(&"b".repeat(900), &mut sink) >= 900);
    assert!(push("c\"},\"event\":\"final_delta\"}\n{\"data\":{\"text\":\"", &mut sink) < 900);
    let held = push(&"LOST".repeat(1000), &mut sink);
    assert!(held <= 100, "{held}");
    push("\"},\"event\":\"final_delta\"}\n", &mut sink);
    pipeline.finish(&InputEnd::stop(), &mut sink);
    let text = sink.join_deltas().into_iter().find_map(|event| match event {
        Event::FinalDelta { text } => Some(text.into_owned()),
        _ => None,
    });
    assert_eq!(text, Some(["a", &"b".repeat(900), "c"].concat()));
    let limit_findings: Vec<&Finding> = sink.findings.iter().filter(|f| f.code == "limit_exceeded").collect();
    assert_eq!(limit_findings.len(), 1);
    assert!(limit_findings[0].span.end - limit_findings[0].span.start > 4000);
}
