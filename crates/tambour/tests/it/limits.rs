//! Each limit (X-007): its default, the reading at the limit itself, and one past it.

use serde_json::json;
use tambour::event::EventCollector;
use tambour::lex::code::CodeFilter;
use tambour::lex::markup::{MarkupLexer, MarkupToken};
use tambour::limits::{ImportLimits, Limits};
use tambour::repair::json::{JsonEvent, JsonReader, JsonSink, ValueBuilder, parse_strict};
use tambour::schema::{Schema, SchemaLimits};
use tambour::sequence::SpaceTrimmer;
use tambour::span::LazyPlace;
use tambour::{Event, Finding, InputEnd, Options, Pipeline};

fn options_with_limits(change: impl FnOnce(&mut Limits)) -> Options {
    let mut options = Options::default();
    change(&mut options.limits);
    options
}

/// Reads a reply in pieces; returns its events and findings.
fn read(dialect: &str, options: &Options, pieces: &[&[u8]]) -> EventCollector {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new(dialect, options).expect("a dialect");
    pieces.iter().for_each(|piece| pipeline.push(piece, &mut sink));
    pipeline.finish(&InputEnd::stop(), &mut sink);
    sink
}

fn count_code(findings: &[Finding], code: &str) -> usize {
    findings.iter().filter(|finding| finding.code == code).count()
}

fn answer(sink: &EventCollector) -> String {
    sink.events
        .iter()
        .filter_map(|event| match event {
            Event::FinalDelta { text } => Some(text.as_ref()),
            _ => None,
        })
        .collect()
}

#[test]
fn defaults_are_those_of_the_documents() {
    let defaults = serde_json::to_value(Limits::default()).unwrap();
    let expected = json!({
        "input": 16_777_216, "depth": 128, "hold": 65_536, "value": 4_194_304, "items": 65_536, "tag": 1024,
        "line": 1024, "phases": 1000, "findings": 1000, "delta": 2048, "detect": 256,
    });
    assert_eq!(defaults, expected); // X-007
    let page = include_str!("../../../../docs/http-api.md");
    let row = page.lines().find(|line| line.starts_with("| `limits.NAME`")).unwrap();
    for (name, value) in defaults.as_object().unwrap() {
        assert!(row.contains(&format!("`{name}` ({value}")), "{name} ({value}) is not in {row}");
    }
}

/// Number that a document writes as `65,536` or `64 KiB`.
fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number: u64 = number.replace(',', "").parse().ok()?;
    [("", 0), ("KiB", 10), ("MiB", 20)].iter().find(|(name, _)| *name == unit).map(|(_, bits)| number << bits)
}

#[test]
fn pages_of_dialects_have_the_defaults() {
    let defaults = serde_json::to_value(Limits::default()).unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dialects");
    let mut numbers = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let page = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for mention in page.split("`limits.").skip(1) {
            let (name, rest) = mention.split_once('`').unwrap();
            let given = rest.strip_prefix(" (").and_then(|rest| rest.split_once(')'));
            let Some(size) = given.and_then(|(text, _)| parse_size(text)) else { continue };
            assert_eq!(defaults[name], size, "limits.{name}");
            numbers += 1;
        }
    }
    assert!(numbers > 3, "{numbers}");
}

#[test]
fn the_page_of_imports_has_the_defaults() {
    let limits = ImportLimits::default();
    let page = include_str!("../../../../docs/from-sillytavern.md");
    let line = page.lines().find(|line| line.starts_with("Limits: ")).unwrap();
    let mut numbers = line.split(|c: char| !c.is_ascii_digit() && c != ',').filter_map(parse_size);
    let mega = |bytes: usize| bytes as u64 >> 20;
    for (name, number) in [
        ("file", mega(limits.file)),
        ("text", mega(limits.text)),
        ("depth", limits.depth as u64),
        ("values", limits.values as u64),
        ("memory", mega(limits.memory)),
        ("entries", limits.entries as u64),
        ("files", limits.files as u64),
        ("unpacked", limits.unpacked >> 20),
    ] {
        assert_eq!(numbers.next(), Some(number), "{name}: {line}");
    }
}

#[test]
fn a_reply_of_just_the_limit_is_read() {
    let options = options_with_limits(|limits| limits.input = 8);
    for pieces in [&[&b"12345678"[..]][..], &[b"1234567", b"8"], &[b"1", b"", b"2345678", b""]] {
        let sink = read("plain", &options, pieces);
        assert!(matches!(sink.events.last(), Some(Event::Completed(_))), "{pieces:?}: {:?}", sink.events);
        assert_eq!(answer(&sink), "12345678");
    }
    for pieces in [&[&b"123456789"[..]][..], &[b"12345678", b"9"], &[b"1", b"23456789"]] {
        let sink = read("plain", &options, pieces);
        let Some(Event::Error(failure)) = sink.events.last() else { panic!("{pieces:?}: {:?}", sink.events) };
        assert_eq!(failure.code, "input_too_large");
        assert_eq!(answer(&sink), "12345678");
    }
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("plain", &options).unwrap();
    pipeline.push_str("12345678", &mut sink);
    pipeline.push_str("9", &mut sink);
    assert!(matches!(sink.events.last(), Some(Event::Error(_))), "{:?}", sink.events);
}

#[test]
fn phases_past_the_limit_are_text_of_the_last_one() {
    let options = options_with_limits(|limits| limits.phases = 2);
    let reply = |phases: usize| {
        let phase =
            |id: usize| format!("<phase id=\"{id}\">\n<title>Title {id}</title>\ntext {id}\n</phase>\n");
        let phases: String = (1..=phases).map(phase).collect();
        format!("<thinking>\n{phases}</thinking>\n<final>\nOK.\n</final>")
    };
    for (phases, finding_count) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
        let sink = read("thinkingml", &options, &[reply(phases).as_bytes()]);
        let phase_starts = sink.events.iter().filter(|event| matches!(event, Event::PhaseStart { .. }));
        assert_eq!(phase_starts.count(), phases.min(2), "{phases}");
        assert_eq!(
            count_code(&sink.findings, "limit_exceeded"),
            finding_count,
            "{phases}: {:?}",
            sink.findings
        );
        let text: String = sink
            .events
            .iter()
            .filter_map(|event| match event {
                Event::PhaseDelta { text, .. } => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        for id in 3..=phases {
            assert!(
                text.contains(&format!("Title {id}\n")) && text.contains(&format!("text {id}")),
                "{text}"
            );
        }
    }
}

#[test]
fn findings_past_the_limit_are_counted() {
    let options = options_with_limits(|limits| limits.findings = 3);
    for (faults, listed_count, message) in
        [(2, 2, None), (3, 3, None), (4, 3, Some("1 more")), (9, 3, Some("6 more"))]
    {
        let reply = b"a \xFF ".repeat(faults);
        let sink = read("plain", &options, &[&reply]);
        assert_eq!(count_code(&sink.findings, "not_utf8"), listed_count, "{faults}");
        let last = sink.findings.iter().find(|finding| finding.code == "findings_limit");
        assert_eq!(last.is_some(), message.is_some(), "{faults}");
        assert!(last.is_none_or(|last| last.message.starts_with(message.unwrap())), "{last:?}");
    }
}

#[test]
fn deltas_are_cut_at_the_limit() {
    let options = options_with_limits(|limits| limits.delta = 8);
    let read_deltas = |reply: &str| -> Vec<String> {
        let sink = read("plain", &options, &[reply.as_bytes()]);
        let delta = |event: &Event<'_>| match event {
            Event::FinalDelta { text } => Some(text.to_string()),
            _ => None,
        };
        sink.events.iter().filter_map(delta).collect()
    };
    assert_eq!(read_deltas("12345678"), ["12345678"]); // J-039
    assert_eq!(read_deltas("123456789"), ["12345678", "9"]); // J-039
    assert_eq!(read_deltas("1234567812345678"), ["12345678", "12345678"]); // J-039
    assert_eq!(read_deltas("好好好"), ["好好", "好"]); // J-039
}

#[test]
fn white_space_that_may_be_the_last_is_held_up_to_the_limit() {
    // R-22
    let options = options_with_limits(|limits| limits.hold = 8);
    for (blanks, held_bytes) in [(7, 7), (8, 8), (9, 1), (16, 8), (17, 1)] {
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new("plain", &options).unwrap();
        pipeline.push(b"a", &mut sink);
        (0..blanks).for_each(|_| pipeline.push(b" ", &mut sink));
        assert_eq!(pipeline.held_bytes(), held_bytes, "{blanks}");
        assert_eq!(answer(&sink), format!("a{}", " ".repeat(blanks - held_bytes)), "{blanks}");
        pipeline.push(b"b", &mut sink);
        assert_eq!(answer(&sink), format!("a{}b", " ".repeat(blanks)));
    }
}

#[test]
fn ideographic_spaces_are_text_behind_more_white_space_than_is_held() {
    // R-22, J-038: the cut makes no difference.
    let text = "\u{3000}    \u{3000} ";
    let cuts = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
    for at in cuts {
        let mut trim = SpaceTrimmer::new(4, 4);
        let mut output = String::new();
        for piece in [&text[..at], &text[at..]] {
            trim.push(piece, &mut |text| output.push_str(text));
        }
        assert_eq!((output.as_str(), trim.held_bytes()), (text.trim_end_matches(' '), 1), "cut at {at}");
    }
}

#[test]
fn a_line_with_tags_in_an_open_code_span_is_held_up_to_the_limit() {
    // T-029
    let held_bytes = |limit: usize| {
        let mut filter = CodeFilter::new(limit);
        let mut out = |_: tambour::lex::code::FilteredPiece<'_, ()>| {};
        filter.push_text("`", &mut out);
        filter.push_tag("<a>", (), &mut out);
        filter.push_text("1234", &mut out);
        filter.push_tag("<b>", (), &mut out);
        filter.held_bytes()
    };
    assert_eq!((held_bytes(9), held_bytes(10), held_bytes(11)), (0, 10, 10));
}

#[test]
fn a_tag_ends_at_the_limit() {
    let tags = |tag: &str| {
        let mut tags = 0;
        let mut lexer = MarkupLexer::new("", 8);
        let mut out = |token: MarkupToken<'_>, _: LazyPlace<'_>| {
            tags += usize::from(matches!(token, MarkupToken::Tag(_)))
        };
        lexer.push(tag, &mut out);
        lexer.finish(&mut out);
        tags
    };
    assert_eq!(tags("<a b=''>"), 1); // T-028
    assert_eq!(tags("<a b='c'>"), 0); // T-028
}

struct BuildSink(ValueBuilder, Option<bool>);

impl JsonSink for BuildSink {
    fn event(&mut self, event: JsonEvent<'_>) {
        let built = self.0.push_event(&event);
        if let JsonEvent::ValueEnd(_) = event {
            self.1 = Some(built.is_some());
        }
    }

    fn report(&mut self, _: tambour::finding::FindingReport) {}
}

#[test]
fn an_object_that_may_act_is_kept_up_to_the_limit() {
    let is_built = |text: &str, bytes: usize, items: usize| {
        let mut sink = BuildSink(ValueBuilder::with_limits(bytes, items), None);
        let mut reader = JsonReader::new_document(&Limits::default());
        reader.push(text, &mut sink);
        reader.finish(&mut sink);
        assert_eq!(sink.0.is_over_limit(), sink.1 == Some(false));
        sink.1.unwrap()
    };
    // An object, two keys, a list, a number, a text, true and null: eight. Keys and texts have six bytes.
    let text = "{\"ab\":[1,\"xyz\",true],\"c\":null}";
    assert!(is_built(text, 6, 8));
    assert!(!is_built(text, 5, 8));
    assert!(!is_built(text, 6, 7));
    assert!(!is_built("{\"ab\":1}", 1, 8));
    assert!(is_built("[]", 0, 1) && !is_built("[]", 0, 0));
}

#[test]
fn json_is_as_deep_as_the_limit() {
    let mut limits = Limits::default();
    limits.depth = 3;
    assert!(parse_strict("[[[]]]", &limits).is_ok());
    assert_eq!(parse_strict("[[[[]]]]", &limits).unwrap_err().rule.code, "limit_exceeded");
    assert_eq!(parse_strict("[[{\"a\":{}}]]", &limits).unwrap_err().rule.code, "limit_exceeded");
}

#[test]
fn the_form_of_a_reply_is_decided_at_the_limit() {
    // X-013
    let options = options_with_limits(|limits| limits.detect = 8);
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("auto", &options).unwrap();
    pipeline.push(b"1 2 3 4\n5 6 7", &mut sink);
    assert!(sink.events.is_empty(), "{:?}", sink.events);
    pipeline.push(b"8", &mut sink);
    assert_eq!((pipeline.dialect(), answer(&sink).as_str()), ("plain", "1 2 3 4\n5 6 78"));
}

#[test]
fn places_of_members_are_kept_up_to_a_limit() {
    // X-006: 256 of them have their own places; the members after them share one.
    for (member_count, place_count) in [(252, 2), (253, 1), (254, 0), (300, 0)] {
        // `event` and `data` count as members, too.
        let members: String = (0..member_count).map(|n| format!("\"k{n}\":{n},")).collect();
        let line = format!("{{\"event\":\"phase_start\",\"data\":{{{members}\"title\":[],\"id\":[]}}}}");
        let sink = read("jsonseq", &Options::default(), &[line.as_bytes()]);
        let type_findings = sink.findings.iter().filter(|finding| finding.code == "field_type");
        let [id, title] =
            type_findings.map(|found| (found.span.start, found.span.end)).collect::<Vec<_>>()[..]
        else {
            panic!("{:?}", sink.findings)
        };
        let place = |key: &str| line.find(&format!("\"{key}\"")).unwrap();
        let first = match member_count {
            ..254 => "id",
            254 => "title",
            _ => "k254",
        };
        let shared_place = (place(first), line.len());
        assert_eq!(
            title,
            if place_count > 0 { (place("title"), place("id")) } else { shared_place },
            "{member_count}"
        );
        assert_eq!(
            id,
            if place_count > 1 { (place("id"), line.len()) } else { shared_place },
            "{member_count}"
        );
    }
}

#[test]
fn a_schema_has_as_many_patterns_as_the_limit() {
    let limits = SchemaLimits::new(3, 4096);
    let compile = |schema: &serde_json::Value| Schema::with_limits(schema.clone(), &limits);
    let three = json!({"properties": {"a/b": {"pattern": "^a+b"}}, "patternProperties": {"^x~": {"pattern": "^c+d"}}});
    let schema = compile(&three).expect("it is within the limits");
    assert_eq!(schema.count_patterns(), 3);
    assert_eq!(schema.check(&json!({"a/b": "b"}), 8)[0].pointer, "/a~1b");
    for (extra, pointer) in [
        (json!({"allOf": [{}, {"pattern": "^e+f"}]}), "/allOf/1/pattern"),
        (
            json!({"$defs": {"x/y": {"patternProperties": {"^e+/~": {}}}}}),
            "/$defs/x~1y/patternProperties/^e+~1~0",
        ),
    ] {
        let mut four = three.clone();
        four.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let error = compile(&four).unwrap_err();
        assert_eq!((error.pointer.as_str(), error.code), (pointer, "schema_limit"), "{error}");
        assert!(error.to_string().contains('3'), "{error}");
    }
    // Fields called `pattern` are no patterns.
    let field_schema = json!({"properties": {"pattern": {"type": "string"}, "patternProperties": {}}});
    assert_eq!(compile(&field_schema).expect("it has no patterns").count_patterns(), 0);
    // Nested repeats fail as soon as they exceed the size.
    for pattern in ["^[a-z]{1,500}$", "^(((a{1,99}){1,99}){1,99}){1,99}$", r"^(\p{L}{1,50}){1,50}$"] {
        let error = compile(&json!({"items": {"pattern": pattern}})).unwrap_err();
        assert_eq!((error.pointer.as_str(), error.code), ("/items/pattern", "schema_limit"), "{error}");
        assert!(error.to_string().contains("4096"), "{error}");
    }
    for (pattern, reason) in
        [("^(a", "not a regular expression"), ("(?!a)b", "look-around"), (r"(a)\1", "look-around")]
    {
        let error = compile(&json!({"items": {"pattern": pattern}})).unwrap_err();
        assert!(error.code == "invalid_schema" && error.to_string().contains(reason), "{error}");
    }
    assert_eq!(compile(&json!({"type": "colour"})).unwrap_err().code, "invalid_schema");
}
