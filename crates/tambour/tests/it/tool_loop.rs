//! Several replies as one stream: the events between them, and its end (X-004).

use std::borrow::Cow;

use serde_json::json;
use tambour::dialect::Intent;
use tambour::event::{
    AsideKind, EventCollector, EventKind, Failure, FinishReason, Sink, ToolResult, ToolStart,
};
use tambour::sequence::Sequencer;
use tambour::{Event, InputEnd, Options, Pipeline, Severity, contract};

const PLAN: &str = "```json\n{\"thought\": \"look first\", \"response_mode\": \"TOOL_EXECUTION\", \"direct_response\": null, \
    \"tool_calls\": [{\"name\": \"lintSRSDocument\", \"args\": {\"userInput\": \"x\"}}]}\n```";
const ANSWER: &str = "```json\n{\"thought\": \"now I know\", \"response_mode\": \"KNOWLEDGE_QA\", \
    \"direct_response\": \"It is fine.\", \"tool_calls\": []}\n```";

fn options() -> Options {
    let mut options = Options::default();
    options.tool_loop = true;
    options
}

fn push(pipeline: &mut Pipeline, text: &str, size: usize, sink: &mut EventCollector) {
    text.as_bytes().chunks(size).for_each(|chunk| pipeline.push(chunk, sink));
}

/// Begins a stream whose one call has run.
fn run_one_call(size: usize, sink: &mut EventCollector) -> Pipeline {
    let mut pipeline = Pipeline::new("aiplan", &options()).unwrap().with_extensions(true);
    push(&mut pipeline, PLAN, size, sink);
    pipeline.finish(&InputEnd::stop(), sink);
    let call = pipeline.pending_calls()[0].clone();
    let start = ToolStart { call_id: call.call_id.clone(), name: call.name };
    pipeline.insert(start, sink);
    let result =
        ToolResult { call_id: call.call_id, ok: true, result: Some(json!(1)), error: None, elapsed_ms: 1 };
    pipeline.insert(result, sink);
    pipeline
}

fn names(sink: &EventCollector) -> Vec<&'static str> {
    sink.join_deltas().iter().map(Event::name).collect()
}

fn assert_valid(sink: &EventCollector) {
    let plain: Vec<Event<'static>> =
        sink.events.iter().filter(|event| event.kind() != EventKind::Extension).cloned().collect();
    for events in [&sink.events, &plain] {
        let mut findings = contract::check_events(events);
        findings.retain(|finding| finding.severity == Severity::Error);
        assert!(findings.is_empty(), "{findings:?}\n{events:?}"); // X-010
    }
}

#[test]
fn the_thought_of_each_reply_is_the_next_phase() {
    for size in [1, 3, 1000] {
        let mut sink = EventCollector::default();
        let pipeline = run_one_call(size, &mut sink);
        let mut next = pipeline.next_reply("aiplan", &options()).unwrap();
        push(&mut next, ANSWER, size, &mut sink);
        next.finish(&InputEnd::stop(), &mut sink);
        assert!(next.pending_calls().is_empty());
        assert_eq!(
            names(&sink),
            [
                "thinking_start",
                "phase_start",
                "phase_delta",
                "plan",
                "tool_call",
                "tool_start",
                "tool_result",
                "phase_start",
                "phase_delta",
                "thinking_end",
                "final_delta",
                "plan",
                "final_end",
                "completed"
            ]
        ); // X-004
        let phases: Vec<Event<'static>> =
            sink.join_deltas().into_iter().filter(|event| event.name() == "phase_delta").collect();
        assert_eq!(phases[0], Event::PhaseDelta { id: 1, text: Cow::Borrowed("look first") });
        assert_eq!(phases[1], Event::PhaseDelta { id: 2, text: Cow::Borrowed("now I know") });
        assert_valid(&sink);
    }
}

#[test]
fn answers_of_several_replies_are_paragraphs() {
    let mut options = options();
    options.set("aiplan.variant", "v2").unwrap();
    let first = PLAN.replace("TOOL_EXECUTION", "KNOWLEDGE_QA").replace("null", "\"Let me look.\"");
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("aiplan", &options).unwrap().with_extensions(true);
    push(&mut pipeline, &first, 5, &mut sink);
    pipeline.finish(&InputEnd::stop(), &mut sink);
    assert_eq!(pipeline.pending_calls().len(), 1); // R-30
    let mut next = pipeline.next_reply("aiplan", &options).unwrap();
    push(&mut next, ANSWER, 5, &mut sink);
    next.finish(&InputEnd::stop(), &mut sink);
    let texts = sink.join_deltas();
    let texts = texts.iter().filter(|event| event.name() == "final_delta");
    let text: String = texts.map(|event| event.data()["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(text, "Let me look.\n\nIt is fine.");
    assert_valid(&sink);
}

#[test]
fn a_thought_after_the_answer_is_an_aside() {
    let mut options = options();
    options.set("aiplan.variant", "v2").unwrap();
    let first = PLAN.replace("TOOL_EXECUTION", "KNOWLEDGE_QA").replace("null", "\"Let me look.\"");
    for size in [1, 4, 1000] {
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new("aiplan", &options).unwrap().with_extensions(true);
        push(&mut pipeline, &first, size, &mut sink);
        pipeline.finish(&InputEnd::stop(), &mut sink);
        let mut next = pipeline.next_reply("aiplan", &options).unwrap();
        push(&mut next, ANSWER, size, &mut sink);
        next.finish(&InputEnd::stop(), &mut sink);
        let asides: Vec<Event<'static>> =
            sink.join_deltas().into_iter().filter(|event| event.name() == "aside").collect();
        // X-004, X-010: the first reply has answered, which ends the thinking of the stream.
        let text = Cow::Borrowed("now I know");
        assert_eq!(asides, [Event::Aside { kind: AsideKind::Thought, text }]);
        assert_valid(&sink);
    }
}

#[test]
fn late_phases_are_one_aside_in_each_reply() {
    let mut sequencer = Sequencer::new(&options());
    let mut sink = EventCollector::default();
    let mut out = |event: Event<'_>| sink.event(event);
    let place = tambour::span::Place::START;
    let phase = |title: &'static str| Intent::Phase(title.into(), place);
    for intent in [Intent::FinalText("Hi."), phase(" Goal "), Intent::PhaseText("a")] {
        sequencer.apply(&intent, &mut out);
    }
    for intent in [Intent::PhaseText("b"), phase(""), Intent::PhaseText("c"), phase("Plan")] {
        sequencer.apply(&intent, &mut out);
    }
    sequencer.apply(&Intent::FinalText(" Yes."), &mut out);
    sequencer.next_reply();
    sequencer.apply(&Intent::PhaseText("\n"), &mut out);
    sequencer.apply(&Intent::PhaseText("d"), &mut out);
    sequencer.finish(&mut out);
    let texts: Vec<String> = sink
        .join_deltas()
        .iter()
        .filter(|event| event.name() == "aside")
        .map(|event| event.data()["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["Goal\nab\nc\nPlan\n", "d"]); // X-010, X-012
    assert_valid(&sink);
}

#[test]
fn calls_are_numbered_through_the_replies() {
    let mut sink = EventCollector::default();
    let pipeline = run_one_call(7, &mut sink);
    let mut next = pipeline.next_reply("aiplan", &options()).unwrap();
    push(&mut next, PLAN, 7, &mut sink);
    next.finish(&InputEnd::stop(), &mut sink);
    assert_eq!(next.pending_calls()[0].call_id, "call_2");
}

#[test]
fn a_stream_can_end_after_its_calls() {
    let failure = Failure::new("tool_loop", "x", false);
    for (end, last) in
        [(InputEnd::Failed(failure), "error"), (InputEnd::Finished(FinishReason::Cancelled), "completed")]
    {
        let mut sink = EventCollector::default();
        let mut pipeline = run_one_call(7, &mut sink);
        pipeline.set_usage(json!({"tokens": 3}));
        pipeline.abandon(&end, &mut sink);
        assert_eq!(names(&sink)[7..], ["thinking_end", "final_delta", "final_end", last]); // J-035
        if let Some(Event::Completed(completed)) = sink.events.last() {
            assert_eq!(completed.finish_reason, FinishReason::Cancelled); // X-014
            assert_eq!(completed.usage, json!({"tokens": 3}));
        }
        let count = sink.events.len();
        pipeline.abandon(&end, &mut sink);
        assert_eq!(sink.events.len(), count, "it ends once");
        assert_valid(&sink);
    }
}

#[test]
fn findings_are_counted_through_the_replies() {
    let mut options = options();
    options.limits.findings = 1;
    // Each plan lacks its fence and has an extra comma.
    let [plan, answer] = [PLAN, ANSWER]
        .map(|reply| reply.trim_start_matches("```json\n").trim_end_matches("\n```").replace("]}", "],}"));
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("aiplan", &options).unwrap();
    push(&mut pipeline, &plan, 1000, &mut sink);
    pipeline.finish(&InputEnd::stop(), &mut sink);
    assert_eq!((pipeline.pending_calls().len(), sink.findings.len()), (1, 1), "{:?}", sink.findings);
    let mut next = pipeline.next_reply("aiplan", &options).unwrap();
    push(&mut next, &answer, 1000, &mut sink);
    next.finish(&InputEnd::stop(), &mut sink);
    let [_, last] = sink.findings.as_slice() else { panic!("{:?}", sink.findings) };
    // X-007
    assert_eq!(
        (last.code.as_ref(), last.message.as_str()),
        ("findings_limit", "3 more findings are not listed")
    );
}

#[test]
fn the_summary_of_a_later_reply_is_an_aside() {
    let summary = |text: &'static str| Intent::Summary(text.into());
    for has_answer in [false, true] {
        let mut sequencer = Sequencer::new(&options());
        let mut sink = EventCollector::default();
        let mut out = |event: Event<'_>| sink.event(event);
        let first = if has_answer { Intent::FinalText("Hi.") } else { Intent::PhaseText("a") };
        for intent in [summary(" One. "), first] {
            sequencer.apply(&intent, &mut out);
        }
        sequencer.next_reply();
        for intent in [summary(" "), summary("\nTwo.\n"), Intent::FinalText("Yes.")] {
            sequencer.apply(&intent, &mut out);
        }
        sequencer.finish(&mut out);
        let summaries: Vec<Event<'static>> = sink
            .join_deltas()
            .into_iter()
            .filter(|event| matches!(event.name(), "serp_summary" | "aside"))
            .collect();
        let aside = Event::Aside { kind: AsideKind::Thought, text: Cow::Borrowed("Two.") };
        assert_eq!(summaries, [Event::SerpSummary { text: Cow::Borrowed("One.") }, aside]); // X-004, X-010
        assert_valid(&sink);
    }
}

#[test]
fn a_second_summary_is_an_aside() {
    let mut sequencer = Sequencer::new(&options());
    let mut sink = EventCollector::default();
    for text in ["One.", "Two."] {
        sequencer.apply(&Intent::Summary(text.into()), &mut |event| sink.event(event));
    }
    sequencer.finish(&mut |event| sink.event(event));
    assert_eq!(names(&sink)[..3], ["serp_summary", "thinking_start", "aside"]); // X-010
    assert_valid(&sink);
}
