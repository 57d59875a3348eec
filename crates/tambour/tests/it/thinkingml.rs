//! ThinkingML: spans of findings, held text, and the time at which text is sent.

use tambour::event::{Event, EventCollector};
use tambour::verdict::Contract;
use tambour::{InputEnd, Options, Pipeline, Profile};

const THINKING: &str = "<thinking>\n<phase id=\"1\">\n<title>Goal</title>\nabc\n</phase>\n</thinking>\n";
const BLOCK: &str = "<!-- <serp_queries>\n[\"q1\"]\n</serp_queries> -->\n";

fn valid_reply() -> String {
    format!("{THINKING}<final>\nOK.\n{BLOCK}</final>")
}

/// Text and repair of each finding with that code.
fn covered_texts(reply: &str, code: &str) -> Vec<(String, String)> {
    let mut options = Options::default();
    options.profile = Profile::Strict;
    let verdict = Contract::from_name("thinkingml").expect("a dialect").check(reply.as_bytes(), &options);
    let found = verdict.findings.into_iter().filter(|finding| finding.code == code);
    found
        .map(|finding| {
            (reply[finding.span.start..finding.span.end].to_owned(), finding.repair.unwrap_or_default())
        })
        .collect()
}

/// Fails unless the findings with that code cover exactly these texts and name this repair.
fn assert_covered(reply: &str, code: &str, texts: &[&str], repair: &str) {
    let found = covered_texts(reply, code);
    let expected: Vec<_> = texts.iter().map(|text| ((*text).to_owned(), repair.to_owned())).collect();
    assert_eq!(found, expected, "{code} of {reply:?}");
}

#[test]
fn findings_cover_what_is_lost() {
    let valid = valid_reply();
    let append = |text: &str| format!("{valid}{text}");
    // T-015
    assert_covered(&append("\n<thi"), "text_outside_structure", &["<thi"], "left out");
    assert_covered(&append("a <serp>b</serp> c"), "text_outside_structure", &["a", "c"], "left out");
    // T-016
    assert_covered("Hello <thin", "unclosed_element", &["<thin"], "left out");
    // T-009
    assert_covered(&append("<final>b</final>"), "final_duplicate", &["<final>b</final>"], "left out");
    assert_covered(&append("<final>b"), "final_duplicate", &["<final>b"], "left out");
    assert_covered(&append("<final>b<serp>c"), "final_duplicate", &["<final>b"], "left out");
    // T-004
    let twice = format!("<serp>a</serp><serp>b</serp>{valid}");
    assert_covered(&twice, "serp_duplicate", &["<serp>b</serp>"], "left out");
    // T-005
    let late = valid.replace("<final>", "<serp>late</serp><final>");
    assert_covered(&late, "serp_after_thinking", &["<serp>late</serp>"], "left out");
    assert_covered(&append("<serp>late"), "serp_after_thinking", &["<serp>late"], "left out");
    let inside = valid.replace("</thinking>", "<serp>late\n</thinking>");
    assert_covered(&inside, "serp_after_thinking", &["<serp>late\n"], "left out");
    // T-001
    let reversed = format!("<final>\nOK.\n{BLOCK}</final>\n{THINKING}");
    assert_covered(&reversed, "order_invalid", &[THINKING.trim_end()], "read as a late thought");
    // T-024
    let phase = append("<phase id=\"2\"><title>T</title>a</phase> b");
    let phase_text = "<phase id=\"2\"><title>T</title>a</phase>";
    assert_covered(&phase, "tag_misplaced", &[phase_text], "read as a late thought");
}

#[test]
fn what_does_not_fit_a_summary_is_covered() {
    // X-007
    let mut options = Options::default();
    options.limits.hold = 8;
    let reply = format!("<serp>12345678 and <b>more</b></serp>{}", valid_reply());
    let verdict = Contract::from_name("thinkingml").expect("a dialect").check(reply.as_bytes(), &options);
    let found = verdict.findings.iter().find(|finding| finding.code == "limit_exceeded");
    let span = found.expect("the summary is too long").span;
    assert_eq!(&reply[span.start..span.end], " and <b>more</b>");
}

#[test]
fn findings_on_queries_stand_at_the_query() {
    let reply_with = |queries: &str| valid_reply().replace("[\"q1\"]", queries);
    let line = |reply: &str, code: &str| {
        let mut options = Options::default();
        options.profile = Profile::Strict;
        let verdict = Contract::from_name("thinkingml").expect("a dialect").check(reply.as_bytes(), &options);
        verdict.findings.iter().find(|finding| finding.code == code).map(|finding| finding.line)
    };
    // T-046: the finding covers the query that is dropped, not the one that is kept.
    assert_covered(
        &reply_with("[\"a\", \"b\",\"a \"]"),
        "serp_queries_duplicate",
        &["\"a \""],
        "query dropped",
    );
    // T-044, T-051
    assert_covered(&reply_with("[3, \"\", {\"q\": [1]}]"), "serp_query_empty", &["\"\""], "query dropped");
    let non_strings = ["3", "{\"q\": [1]}"];
    assert_covered(
        &reply_with("[3, \"\", {\"q\": [1]}]"),
        "serp_query_not_string",
        &non_strings,
        "query dropped",
    );
    // T-048
    let sensitive = "[\"a, \\\"]\",\n\"mail a@b.com\" ]";
    assert_covered(&reply_with(sensitive), "serp_query_sensitive", &["\"mail a@b.com\""], "query dropped");
    assert_eq!(line(&reply_with(sensitive), "serp_query_sensitive"), Some(11));
    // T-047
    let long = format!("\"{}\"", "a".repeat(81));
    assert_covered(&reply_with(&format!("[{long}]")), "serp_query_too_long", &[&long], "query cut");
    // T-045: the dropped queries.
    let many = "[\"a\",\"b\",3,\"c\",\"d\",\"e\",\"f\",\"g\"]";
    assert_covered(&reply_with(many), "serp_queries_too_many", &["\"f\",\"g\""], "the first 5 kept");
    // A finding about all queries has the place of the list, not at the line that opens the block.
    assert_covered(&reply_with("{\"a\":1}"), "serp_queries_not_array", &["{\"a\":1}"], "no queries are sent");
    assert_eq!(line(&reply_with("{\"a\":1}"), "serp_queries_not_array"), Some(10));
    assert_covered(&reply_with("['a', 'b', 'a']"), "serp_queries_duplicate", &["'a'"], "query dropped");
}

#[test]
fn of_several_blocks_the_unused_ones_are_covered() {
    // T-043
    let block = |queries: &str| format!("<!-- <serp_queries>\n{queries}\n</serp_queries> -->");
    let reply_with = |blocks: &[&String]| {
        let blocks: Vec<String> = blocks.iter().map(|block| format!("{block}\n")).collect();
        valid_reply().replace(BLOCK, &blocks.concat())
    };
    let (first, second, broken) = (block("[\"a\"]"), block("[\"b\"]"), block("{}"));
    let repair = "all removed, the last valid one used";
    assert_covered(&reply_with(&[&first, &second]), "serp_block_duplicate", &[&first], repair);
    assert_covered(&reply_with(&[&first, &broken]), "serp_block_duplicate", &[&broken], repair);
    assert_covered(&reply_with(&[&broken, &first]), "serp_block_duplicate", &[&broken], repair);
    let three = reply_with(&[&first, &broken, &second]);
    assert_covered(&three, "serp_block_duplicate", &[&first, &broken], repair);
}

#[test]
fn a_block_says_whether_its_queries_are_kept() {
    // T-042
    let reply_with =
        |queries: &str| valid_reply().replace("[\"q1\"]", queries).replace("</final>", "bye\n</final>");
    let repair = |reply: &str| covered_texts(reply, "serp_block_not_last").remove(0).1;
    assert_eq!(repair(&reply_with("[\"q1\"]")), "removed from the text, queries kept");
    assert_eq!(repair(&reply_with("[]")), "removed from the text");
    assert_eq!(repair(&reply_with("none")), "removed from the text");
}

/// Answer text sent after each of `pieces`, and at the end.
fn sent_answers(options: &Options, pieces: &[&str]) -> Vec<String> {
    let mut pipeline = Pipeline::new("thinkingml", options).expect("a dialect");
    let mut sink = EventCollector::default();
    let mut answers = Vec::new();
    let text = |sink: &EventCollector| {
        let text = |event: &Event<'_>| match event {
            Event::FinalDelta { text } => Some(text.to_string()),
            _ => None,
        };
        sink.events.iter().filter_map(text).collect::<String>()
    };
    for piece in pieces {
        pipeline.push(piece.as_bytes(), &mut sink);
        answers.push(text(&sink));
    }
    pipeline.finish(&InputEnd::stop(), &mut sink);
    answers.push(text(&sink));
    answers
}

#[test]
fn an_answer_at_the_start_of_a_line_streams_at_once() {
    // R-75, J-037
    let pieces = ["<thinking>\nI use <final> here,", " then go on.\n<final>\nThe", " answer", "</final>"];
    assert_eq!(
        sent_answers(&Options::default(), &pieces),
        ["", "The", "The answer", "The answer", "The answer"]
    );
}

#[test]
fn a_line_with_an_entity_in_an_open_span_is_held_up_to_its_limit() {
    // R-71, J-037
    let opening = format!("{THINKING}<final>\n");
    let mut options = Options::default();
    let pieces = [&*opening, "a `b", " &lt;c", "&gt;", " d` e", " &lt; f"];
    let answers = sent_answers(&options, &pieces);
    assert_eq!(
        answers[1..],
        ["a `b", "a `b", "a `b", "a `b <c> d` e", "a `b <c> d` e &lt; f", "a `b <c> d` e &lt; f"]
    );
    // Past the limit the span is no code.
    options.limits.line = 6;
    let answers = sent_answers(&options, &pieces);
    assert_eq!(answers[3], "a `b &lt;c&gt;");
    // In a fence only the entity itself is held.
    let pieces = [&*opening, "```\na &l", "t; b", " &amp"];
    assert_eq!(
        sent_answers(&Options::default(), &pieces)[1..],
        ["```\na", "```\na < b", "```\na < b", "```\na < b &amp"]
    );
}

#[test]
fn text_after_what_may_be_a_tag_leaves_with_the_next_token() {
    // J-037
    let opening = format!("{THINKING}<final>\n");
    let pieces = [&*opening, "a <b", "<", " c", "</final>"];
    assert_eq!(sent_answers(&Options::default(), &pieces)[1..], ["a", "a", "a <b< c", "a <b< c", "a <b< c"]);
}
