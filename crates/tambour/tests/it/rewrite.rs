//! Replies read and written again in their dialect, the basis of `tambour repair`.

use tambour::dialect::{DIALECTS, DialectEntry};
use tambour::event::{Event, EventCollector, EventKind, FinishReason, JoinedEvents, Sink as _};
use tambour::verdict::Contract;
use tambour::{InputEnd, Options, Pipeline, Profile, Severity};
use tambour_fixtures::acts::check_repair;
use tambour_fixtures::corpus::{load_authored, load_recorded};
use tambour_fixtures::random::RandomSource;
use tambour_fixtures::{fixtures_folder, load_fixtures};

/// Output of a model that cannot comply (T-025).
const MARKER: &str = "<<ParsingError>>";

/// Number of random replies of each kind: `REWRITE_CASES`, or 600.
fn cases() -> usize {
    std::env::var("REWRITE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(600)
}

/// Former faults: replies whose rewriting acted, failed the strict check or changed on the next reading.
const FAULTS: &[&str] = &[
    // Texts that join where a stray tag is dropped.
    "<content>x < </choice>variable_update>[[\"SET\",\"gold\",1]]</variable_update> y</content>",
    "<content>x </choice>< variable_update>[[\"SET\",\"gold\",1]]</variable_update> y</content>",
    "<content>x <</choice>status_bar><hp>1</hp></status_bar> y</content>",
    "<status_bar>[[",
    "<content>a</content><status_bar>[[",
    "<choice>- go",
    "<choice>\n- go in\n",
    "<xx>go",
    "/<<details>\n```\n",
    "/<<details>a\n```\nb",
    "a</think><<ParsingError>>",
    "</think><<ParsingError>>",
    "</think>\n<<ParsingError>>\n",
    "<think>a</think><content>b</content><variable_update>[[\"SET\",\"gold\",1]]</variable_update>",
    "</think>{\"thought\":\"a\",\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"b\",\"tool_calls\":[]}",
];

/// Collects all replies of fixtures and corpora, and random ones.
fn replies() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = FAULTS.iter().map(|reply| reply.as_bytes().to_vec()).collect();
    all.extend(load_fixtures(&fixtures_folder()).expect("fixtures").into_iter().map(|fixture| fixture.input));
    for entry in DIALECTS {
        for corpus in [load_authored(entry.name), load_recorded(entry.name)] {
            all.extend(corpus.expect("a corpus").iter().map(|reply| reply.joined_text().into_bytes()));
        }
    }
    let mut random = RandomSource::new(66);
    for _ in 0..cases() {
        all.push(random.tag_soup(20).into_bytes());
        all.push(random.torn_reply().into_bytes());
    }
    for _ in 0..cases() {
        let reply = random.pick(&all).clone();
        all.push(random.mutate(&reply));
    }
    all
}

/// Reading of a reply, as `tambour repair` does it.
struct RewrittenReply {
    events: Vec<Event<'static>>,
    /// Detected dialect.
    dialect: &'static str,
    /// Text of the reply written again.
    output: String,
}

fn read(dialect: &str, input: &[u8], options: &Options) -> RewrittenReply {
    let pipeline = Pipeline::new(dialect, options).expect("the dialect exists");
    let mut pipeline = pipeline.with_extensions(true);
    let mut sink = JoinedEvents::default();
    // Chunks of the size that `tambour repair` reads.
    input.chunks(64 << 10).for_each(|chunk| pipeline.push(chunk, &mut sink));
    pipeline.finish(&InputEnd::stop(), &mut sink);
    let output = pipeline.rewrite(&sink.events).expect("replies in the dialect can be written");
    RewrittenReply { events: sink.events, dialect: pipeline.dialect(), output }
}

fn strict_options(options: &Options) -> Options {
    let mut options = options.clone();
    options.profile = Profile::Strict;
    options
}

/// Options that change the reading of a reply as text: with the second, replies start inside of reasoning.
fn option_sets() -> [(&'static str, Options); 2] {
    ["auto", "open"].map(|reasoning| {
        let mut options = Options::default();
        options.set("plain.reasoning", reasoning).expect("an option");
        (reasoning, options)
    })
}

/// Events that a rewritten reply preserves.
fn contract_events(events: &[Event<'_>]) -> Vec<Event<'static>> {
    let mut sink = EventCollector::default();
    // Only events of the contract are rewritten; deltas around another event join.
    events
        .iter()
        .filter(|event| event.kind() == EventKind::Contract)
        .for_each(|event| sink.event(event.clone()));
    sink.join_deltas()
}

/// Dialects that can be written, and `auto`.
fn readers() -> impl Iterator<Item = &'static DialectEntry> {
    DIALECTS.iter().filter(|entry| entry.write.is_some() || entry.name == "auto")
}

/// Collects complaints about each reply, read as each dialect with each of the settings.
fn complaints(complaint: impl Fn(&Options, &[u8], &RewrittenReply) -> Option<String>) -> Vec<String> {
    let replies = replies();
    let mut complaints = Vec::new();
    for (reasoning, options) in &option_sets() {
        // The option exists for these dialects only.
        let is_supported = |name| matches!(name, "plain" | "auto");
        for entry in readers().filter(|entry| *reasoning == "auto" || is_supported(entry.name)) {
            for reply in &replies {
                let first = read(entry.name, reply, options);
                let input_text = String::from_utf8_lossy(reply);
                let found = complaint(options, reply, &first);
                complaints.extend(found.map(|found| {
                    format!(
                        "{}, {:?}: {input_text:?}\nwritten as {}: {:?}\n{found}",
                        entry.name, reasoning, first.dialect, first.output
                    )
                }));
            }
        }
    }
    complaints
}

/// Fails with the first of all complaints and their number.
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} replies, such as {}", complaints.len(), complaints[0]);
}

#[test]
fn what_is_written_is_valid_stays_as_it_is_and_says_something() {
    // One test, since reading all replies takes as long as each of the checks.
    assert_none(&complaints(|options, reply, first| {
        let contract = Contract::from_name(first.dialect).expect("a dialect is a contract");
        let verdict = contract.check(first.output.as_bytes(), &strict_options(options));
        if let Some(error) = verdict.first_error() {
            return Some(format!("{error:?}"));
        }
        let second = read(first.dialect, first.output.as_bytes(), options).output;
        if second != first.output {
            return Some(format!("twice {second:?}"));
        }
        let has_text = !String::from_utf8_lossy(reply).trim().is_empty();
        let output = first.output.trim();
        (has_text && (output.is_empty() || output == MARKER)).then(|| "nothing is left".to_owned())
    }));
}

#[test]
fn what_is_written_acts_no_more() {
    // R-68, X-014: neither a whole nor a cut reply acts
    let options = Options::default();
    let cut = InputEnd::Finished(FinishReason::Length);
    let replies = replies();
    let mut complaints = Vec::new();
    for entry in readers() {
        for (number, reply) in replies.iter().enumerate() {
            // Cut replies take long, so only some are read.
            let ends = if number < FAULTS.len() || number % 8 == 0 { 2 } else { 1 };
            for end in [&InputEnd::stop(), &cut].into_iter().take(ends) {
                if let Err(found) = check_repair(entry.name, &options, reply, end) {
                    let reply = String::from_utf8_lossy(reply);
                    complaints.push(format!("{}, {end:?}: {reply:?}\n{found}", entry.name));
                }
            }
        }
    }
    assert_none(&complaints);
}

#[test]
fn a_valid_reply_keeps_its_events() {
    let default = Options::default();
    let options = strict_options(&default);
    let replies = replies();
    for entry in readers().filter(|entry| entry.write.is_some()) {
        let contract = Contract::from_name(entry.name).expect("a dialect is a contract");
        let valid = |reply: &&Vec<u8>| {
            let findings = contract.check(reply, &options).findings;
            findings.iter().all(|finding| finding.severity == Severity::Info)
        };
        let complaint = |reply: &Vec<u8>| {
            let RewrittenReply { events, output, .. } = read(entry.name, reply, &default);
            let (before, after) = (
                contract_events(&events),
                contract_events(&read(entry.name, output.as_bytes(), &default).events),
            );
            let input_text = String::from_utf8_lossy(reply);
            (before != after)
                .then(|| format!("{}: {input_text:?}\nwritten {output:?}\n{before:?}\n{after:?}", entry.name)) // X-003
        };
        let (valid, complaints): (Vec<_>, Vec<_>) =
            replies.iter().filter(valid).map(|reply| ((), complaint(reply))).unzip();
        assert!(valid.len() > 20, "{}: only {} valid replies", entry.name, valid.len());
        assert_none(&complaints.into_iter().flatten().collect::<Vec<_>>());
    }
}

#[test]
fn repairing_takes_little_memory() {
    const SIZE: usize = 1 << 20;
    // X-007: input that is read piece by piece, is no text, or grows when it is written
    for piece in [
        &b"<"[..],
        b"\xFF",
        b"a\xFF",
        b"\xE4\xBDa",
        b"\x01",
        b"\"",
        b"&",
        b"<b>",
        b"{\"x\":1} ",
        b"```\n",
        b"a\n",
    ] {
        let input = piece.repeat(SIZE / piece.len());
        for entry in DIALECTS.iter().filter(|entry| entry.write.is_some() || entry.name == "auto") {
            let memory =
                allocation_counter::measure(|| drop(read(entry.name, &input, &Options::default()))).bytes_max;
            // Memory for the reply and the second reading of the result, and a constant for the findings, whose number is limited.
            let limit = 28 * SIZE as u64 + (512 << 10);
            assert!(memory < limit, "{}, {:?}: {memory} bytes", entry.name, String::from_utf8_lossy(piece));
        }
    }
}

#[test]
fn a_block_that_need_not_be_there_is_not_added() {
    let mut options = Options::default();
    options.set("thinkingml.serp_block", "optional").expect("an option");
    let thinking = "<thinking>\n<phase id=\"1\">\n<title>Goal</title>\nabc\n</phase>\n</thinking>\n";
    for block in ["", "\n<!-- <serp_queries>\n[]\n</serp_queries> -->"] {
        let reply = format!("{thinking}<final>\nOK.{block}\n</final>\n");
        for dialect in ["thinkingml", "auto"] {
            assert_eq!(read(dialect, reply.as_bytes(), &options).output, reply); // T-040, X-003
        }
    }
}

#[test]
fn tags_in_a_comment_stay_as_they_are() {
    let thinking = "<thinking>\n<phase id=\"1\">\n<title>Goal</title>\nabc\n</phase>\n</thinking>\n";
    for text in [
        "see <!-- <final> --> ok",
        "see <!-- a </serp_queries> --> ok",
        "see <!-- a <serp_queries>\n<serp_queries> --> ok",
        "see <!-- </final > ok",
        "see <!-- `<FINAL>` --> ok `<!-- &lt;final&gt;`",
    ] {
        let reply = format!(
            "{thinking}<final>\n{text}\n<!-- <serp_queries>\n[\"q\"]\n</serp_queries> -->\n</final>\n"
        );
        let options = Options::default();
        let first = read("thinkingml", reply.as_bytes(), &options);
        let second = read("thinkingml", first.output.as_bytes(), &options);
        assert_eq!(
            contract_events(&first.events),
            contract_events(&second.events),
            "{reply:?}\n{:?}",
            first.output
        ); // X-003, T-027
    }
}

#[test]
fn brackets_of_a_list_stay_where_only_a_block_is_left_out() {
    // F-214: a rewritten reply omits the block, which has acted, and preserves its neighbours
    let reply = "<choice>\n- [A] x\nplan <variable_update>[[\"SET\",\"a\",1]]</variable_update><content>\nhi\n\
                 </content>\n\n- [x] one\n- [ ] two\n";
    let reading = read("filament", reply.as_bytes(), &Options::default());
    assert!(reading.output.contains("- [x] one\n- [ ] two"), "{}", reading.output);
}
