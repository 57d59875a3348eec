//! Outcome of a reply: a fold of the sent events.

use serde_json::json;
use tambour::event::{EventCollector, FinishReason, Notice, ReplyAppraisal, ReplyWorth};
use tambour::exit::{ExitCriteria, ExitRound};
use tambour::{Event, InputEnd, Options, Pipeline};

const ANSWER: &str = r#"{"assessment":{"understanding_level":85,"has_questions":false,"expressed_understanding":true,
"reasoning":"They said it in their own words."},"response":{"counsellor":"Good."},"should_exit":true,"exit_reason":"done"}"#;

const PLAN: &str = r#"```json
{"thought":"t","response_mode":"TOOL_EXECUTION","direct_response":null,"tool_calls":[{"name":"lintSRSDocument","args":{"userInput":"x"}}]}
```"#;

fn options(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

fn read(dialect: &str, options: &Options, text: &str, end: &InputEnd) -> (Pipeline, EventCollector) {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new(dialect, options).unwrap().with_extensions(true);
    pipeline.push_str(text, &mut sink);
    pipeline.finish(end, &mut sink);
    (pipeline, sink)
}

#[test]
fn the_answer_of_a_round_is_known_whole() {
    // S-051, X-005: also without a round, and with parts that no event holds.
    let (pipeline, sink) = read("ai_say", &Options::default(), ANSWER, &InputEnd::stop());
    let answer = pipeline.outcome().answer.as_ref().expect("an answer");
    assert_eq!(answer.assessment.reasoning, "They said it in their own words.");
    assert_eq!((answer.should_exit, answer.exit_reason.as_str()), (true, "done"));
    assert!(pipeline.outcome().metadata.exit_decision.is_none());
    assert!(sink.events.iter().all(|event| event.name() != "exit_decision"));

    let round = ExitRound { round: 2, max_rounds: 5, criteria: ExitCriteria::default() };
    let options = options(|options| options.round = Some(round));
    let (pipeline, sink) = read("ai_say", &options, ANSWER, &InputEnd::stop());
    let decision = pipeline.outcome().metadata.exit_decision.as_ref().expect("a decision");
    assert!(decision.should_exit);
    let decision_event =
        sink.events.iter().find(|event| event.name() == "exit_decision").expect("it was sent");
    assert_eq!(decision_event.data(), serde_json::to_value(decision).unwrap());
    let Some(Event::Completed(completed)) = sink.events.last() else { panic!("an end") };
    assert_eq!(completed.metadata, pipeline.outcome().metadata);
}

#[test]
fn a_failed_reply_decides_nothing() {
    // S-065, X-014.
    let failure = tambour::event::Failure::new("x", "y", true);
    let round = ExitRound { round: 5, max_rounds: 5, criteria: ExitCriteria::default() };
    let options = options(|options| options.round = Some(round));
    let (pipeline, sink) = read("ai_say", &options, ANSWER, &InputEnd::Failed(failure.clone()));
    assert_eq!(pipeline.outcome().failure, Some(failure));
    assert_eq!((&pipeline.outcome().answer, &pipeline.outcome().metadata.exit_decision), (&None, &None));
    assert_eq!(sink.events.last().map(Event::name), Some("error"));
}

#[test]
fn notices_are_in_the_metadata_of_all_replies() {
    // X-009: notices of each reply of the message, in order.
    let options = options(|options| options.tool_loop = true);
    let (mut first, mut sink) = read("aiplan", &options, PLAN, &InputEnd::stop());
    let notice = |code: &'static str| Notice { code: code.into(), message: "m".into(), reference: None };
    first.insert(notice("one"), &mut sink);
    let mut next = first.next_reply("plain", &options).unwrap();
    next.insert(notice("two"), &mut sink);
    next.push_str("It is 4.", &mut sink);
    next.finish(&InputEnd::stop(), &mut sink);
    let Some(Event::Completed(completed)) = sink.events.last() else { panic!("an end") };
    assert_eq!(completed.metadata.notices, [notice("one"), notice("two")]);
}

#[test]
fn calls_are_counted_through_a_message_and_listed_by_reply() {
    let options = options(|options| options.tool_loop = true);
    let (first, mut sink) = read("aiplan", &options, PLAN, &InputEnd::stop());
    assert_eq!(first.outcome().calls, first.pending_calls());
    assert_eq!(
        (&*first.pending_calls()[0].call_id, &first.pending_calls()[0].args),
        ("call_1", &json!({"userInput": "x"}))
    );
    let mut next = first.next_reply("aiplan", &options).unwrap();
    next.push_str(PLAN, &mut sink);
    next.finish(&InputEnd::stop(), &mut sink);
    assert_eq!(next.pending_calls().iter().map(|call| &*call.call_id).collect::<Vec<_>>(), ["call_2"]);
}

#[test]
fn what_was_cut_is_always_closed() {
    // R-68, X-014: a cut reply never leaves its stream open for calls.
    let options = options(|options| options.tool_loop = true);
    let length = InputEnd::Finished(FinishReason::Length);
    for cut in (0..=PLAN.len()).filter(|at| PLAN.is_char_boundary(*at)) {
        let (pipeline, sink) = read("aiplan", &options, &PLAN[..cut], &length);
        assert!(pipeline.pending_calls().is_empty(), "cut at {cut}");
        assert_eq!(sink.events.last().map(Event::name), Some("completed"), "cut at {cut}");
    }
}

fn worth(sink: &EventCollector) -> ReplyWorth {
    let mut appraisal = ReplyAppraisal::default();
    sink.events.iter().for_each(|event| appraisal.observe_event(event));
    sink.findings.iter().for_each(|finding| appraisal.observe_finding(finding));
    appraisal.worth()
}

#[test]
fn a_reply_is_usable_or_text_or_nothing() {
    let plain = Options::default();
    let with_examples = options(|options| options.examples = vec![ANSWER.to_owned()]);
    let other = ANSWER.replace("Good.", "Very good.");
    let failed_end = InputEnd::Failed(tambour::event::Failure::new("x", "y", true));
    for (dialect, options, text, end, expected) in [
        ("ai_say", &plain, ANSWER, &InputEnd::stop(), ReplyWorth::Usable),
        ("aiplan", &plain, PLAN, &InputEnd::stop(), ReplyWorth::Usable),
        ("ai_say", &plain, "Good.", &InputEnd::stop(), ReplyWorth::Text), // R-53
        ("aiplan", &plain, "Good.", &InputEnd::stop(), ReplyWorth::Text), // R-70
        ("ai_say", &plain, "<<ParsingError>>", &InputEnd::stop(), ReplyWorth::Useless), // J-055
        ("ai_say", &plain, "", &InputEnd::stop(), ReplyWorth::Useless),   // R-08
        ("ai_say", &with_examples, ANSWER, &InputEnd::stop(), ReplyWorth::Useless), // X-011
        ("ai_say", &with_examples, other.as_str(), &InputEnd::stop(), ReplyWorth::Usable),
        ("ai_say", &plain, ANSWER, &failed_end, ReplyWorth::Useless),
    ] {
        let (_, sink) = read(dialect, options, text, end);
        assert_eq!(worth(&sink), expected, "{dialect}: {text}");
    }
    assert!(ReplyWorth::Useless < ReplyWorth::Text && ReplyWorth::Text < ReplyWorth::Usable);
}

#[test]
fn a_reply_with_a_hole_ends_as_the_model_says_and_does_nothing() {
    for reason in [FinishReason::Stop, FinishReason::ToolCalls] {
        let (pipeline, sink) = read("aiplan", &Options::default(), PLAN, &InputEnd::Incomplete(reason));
        let Some(Event::Completed(completed)) = sink.events.last() else { panic!("an end") };
        assert_eq!((completed.finish_reason, completed.metadata.truncated), (reason, true)); // X-014
        assert!(pipeline.outcome().calls.is_empty()); // R-68
        let (pipeline, _) = read("aiplan", &Options::default(), PLAN, &InputEnd::Finished(reason));
        assert_eq!(pipeline.outcome().calls.len(), 1);
    }
}
