//! The corpora: authored replies give their events, injected faults are reported, and recordings of real
//! models always end in a valid stream.

use serde_json::{Value, json};
use tambour::dialect::DIALECTS;
use tambour::event::Extension;
use tambour::{Event, Options, Profile, Severity};
use tambour_fixtures::corpus::{CorpusReply, load_authored, load_recorded};
use tambour_fixtures::fixture::parse_end;
use tambour_fixtures::random::RandomSource;
use tambour_fixtures::run::{contract_events, join_deltas};
use tambour_fixtures::{ChunkCuts, FixtureReading, ReadingCase, grammar};

/// Dialects with corpora that the library reads.
fn dialects() -> impl Iterator<Item = &'static str> {
    ["thinkingml", "jsonseq", "aiplan", "filament", "ai_say"]
        .into_iter()
        .filter(|name| DIALECTS.iter().any(|entry| entry.name == *name))
}

/// Injected faults that break no rule a machine can decide.
const UNDECIDABLE: [&str; 2] = ["fraction", "bare_ampersand"];

/// Injected fault that is valid: the default key of either language is read (S-052).
const READABLE_FAULT: &str = "response_english_key";

fn read(
    reply: &CorpusReply,
    dialect: &str,
    profile: Profile,
    cuts: ChunkCuts<'_>,
) -> Result<FixtureReading, String> {
    let mut options = Options::default();
    options.profile = profile;
    if dialect == "filament" {
        // Calls need registered tools.
        options.set("tools", json!({"roll_dice": {"type": "object"}})).map_err(|error| error.to_string())?;
    }
    let (input, end) = (reply.joined_text(), parse_end(&reply.finish)?);
    ReadingCase { dialect, options: &options, reasoning: None, input: input.as_bytes(), end: &end }.read(cuts)
}

/// Runs `check` on each reply and fails with all complaints at once.
fn check_replies(replies: &[CorpusReply], check: impl Fn(&CorpusReply) -> Result<(), String>) {
    let complaint = |reply: &CorpusReply| check(reply).err().map(|error| format!("{}: {error}", reply.id));
    let complaints: Vec<String> = replies.iter().filter_map(complaint).collect();
    assert!(complaints.is_empty(), "{} replies:\n{}", complaints.len(), complaints.join("\n\n"));
}

#[test]
fn authored_replies_give_their_events() {
    // Answers of a dialogue and blocks hold more than their events: `dialogue` and `filament` compare them.
    for dialect in dialects().filter(|dialect| !matches!(*dialect, "ai_say" | "filament")) {
        let replies = load_authored(dialect).expect("the corpus is readable");
        assert!(!replies.is_empty(), "no replies for {dialect}");
        check_replies(&replies, |reply| {
            let Some(expected) = &reply.expected else { return Ok(()) };
            let reading = read(reply, dialect, Profile::Lenient, ChunkCuts::Offsets(&reply.cut_offsets()))?;
            let Value::Array(expected) = expected else { return check_plan(expected, &reading) };
            let found = contract_events(&reading, false);
            if is_equivalent(expected, &found, &reply.ambiguous) {
                return Ok(());
            }
            Err(format!("expected {}\nfound    {}", Value::from(expected.clone()), Value::from(found)))
        });
    }
}

/// Compares the plan of a reply, which must not be a fallback.
fn check_plan(expected: &Value, reading: &FixtureReading) -> Result<(), String> {
    let found = reading.events.iter().filter_map(Event::extension).find_map(|event| match event {
        Extension::Plan(outcome) => Some(outcome),
        _ => None,
    });
    match found {
        Some(outcome) if outcome.plan == *expected && !outcome.is_fallback => Ok(()),
        _ => Err(format!("expected {expected}\nfound    {found:?}")),
    }
}

/// Compares events after joining neighbouring deltas and trimming, except for the points the contract leaves open.
fn is_equivalent(expected: &[Value], found: &[Value], ambiguous: &[String]) -> bool {
    let is_open = |point: &str| ambiguous.iter().any(|name| name == point);
    let normalize = |events: &[Value]| -> Vec<Value> {
        let is_relevant = |event: &Value| {
            let has_no_queries = event["data"]["queries"].as_array().is_some_and(Vec::is_empty);
            !(is_open("empty_serp_queries") && has_no_queries)
        };
        let trim = |mut event: Value| {
            for key in ["text", "title"] {
                if let Some(text) = event["data"][key].as_str() {
                    let decoded =
                        if is_open("entity_decoding") { decode_entities(text) } else { text.to_owned() };
                    event["data"][key] = Value::from(decoded.trim());
                }
            }
            event
        };
        join_deltas(events).into_iter().filter(is_relevant).map(trim).collect()
    };
    normalize(expected) == normalize(found)
}

fn decode_entities(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn authored_valid_replies_have_no_findings() {
    //
    for dialect in dialects() {
        let replies = load_authored(dialect).expect("the corpus is readable");
        check_replies(&replies, |reply| {
            if reply.expected.is_none() {
                return Ok(());
            }
            let reading = read(reply, dialect, Profile::Strict, ChunkCuts::Offsets(&reply.cut_offsets()))?;
            let found = reading.findings.iter().find(|finding| finding.severity > Severity::Info);
            found.map_or(Ok(()), |finding| Err(format!("{finding:?}")))
        });
    }
}

#[test]
fn authored_faults_are_reported() {
    for dialect in dialects() {
        let replies = load_authored(dialect).expect("the corpus is readable");
        check_replies(&replies, |reply| {
            let Some(fault) = &reply.fault else { return Ok(()) };
            if dialect != "ai_say" && UNDECIDABLE.contains(&fault.as_str()) || fault == READABLE_FAULT {
                return Ok(());
            }
            // The finish reason or an unclosed section reports a cut.
            let min_severity = match fault.as_str() {
                "flat_data"
                | "prose_around"
                | "prose_before"
                | "think_prefix"
                | "two_objects"
                | "fence_without_language" => Severity::Warning,
                // A level such as 0.85 may be intended.
                "fraction" if dialect == "ai_say" => Severity::Warning,
                // Another name of a tag, and text that stays text, are warnings.
                "think_instead_of_thought" | "lowercase_opcode" => Severity::Warning,
                "sse_framing" | "extra_field" => Severity::Info,
                _ => Severity::Error,
            };
            let reading = read(reply, dialect, Profile::Strict, ChunkCuts::Offsets(&reply.cut_offsets()))?;
            match reading.findings.iter().any(|finding| finding.severity >= min_severity) {
                true => Ok(()),
                false => {
                    Err(format!("`{fault}` is not reported as {min_severity:?}: {:?}", reading.findings))
                }
            }
        });
    }
}

#[test]
fn recordings_end_in_valid_streams_under_every_cutting() {
    // X-001, J-038: real replies, read as every dialect.
    for corpus in dialects() {
        let replies = load_recorded(corpus).expect("the corpus is readable");
        assert!(!replies.is_empty(), "no recordings for {corpus}");
        for entry in DIALECTS {
            check_replies(&replies, |reply| {
                let (input, end) = (reply.joined_text(), parse_end(&reply.finish)?);
                let options = Options::default();
                let case = ReadingCase {
                    dialect: entry.name,
                    options: &options,
                    reasoning: None,
                    input: input.as_bytes(),
                    end: &end,
                };
                let whole = case.read(ChunkCuts::Single)?;
                grammar::check_stream(&whole.events, &options)?;
                case.check_same(&whole, ChunkCuts::Every(1))?;
                case.check_same(&whole, ChunkCuts::Offsets(&reply.cut_offsets()))?;
                let mut random = RandomSource::new(input.len() as u64);
                (0..20).try_for_each(|_| {
                    case.check_same(&whole, ChunkCuts::Offsets(&random.random_cuts(input.len())))
                })?;
                case.check_held()
            });
        }
    }
}
