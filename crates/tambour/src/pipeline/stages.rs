//! Stages that follow a dialect: policy, sequencer, findings, and the result of the reply.

use super::outcome::ReplyOutcome;
use super::reporter::FindingReporter;
use crate::dialect::{Intent, IntentSink, RawQueries, ReplyAction};
use crate::event::{Event, EventKind, Extension, Failure, Sink};
use crate::finding::FindingReport;
use crate::options::Options;
use crate::policy::Policy;
use crate::sequence::Sequencer;
use crate::span::Place;

/// State of all stages that follow the dialect.
pub(super) struct Stages {
    pub(super) policy: Policy,
    pub(super) sequencer: Sequencer,
    pub(super) reporter: FindingReporter,
    /// Set if extension events are sent.
    pub(super) sends_extensions: bool,
    /// Set if findings are also sent as events.
    pub(super) sends_findings: bool,
    /// First reason why the reply is not in the requested format.
    pub(super) unused_reason: Option<&'static str>,
    /// First reason why the stream ends with an `error` event.
    pub(super) failure: Option<Failure>,
    pub(super) outcome: ReplyOutcome,
    /// Set if a reply with calls leaves the stream open for their results ([`Options::tool_loop`]).
    pub(super) is_tool_loop: bool,
    /// Set while the stream is open for the results of this reply's calls.
    pub(super) awaits_results: bool,
}

impl Stages {
    pub(super) fn new(options: &Options) -> Stages {
        Stages {
            policy: Policy::new(options),
            sequencer: Sequencer::new(options),
            reporter: FindingReporter::new(options),
            sends_extensions: false,
            sends_findings: false,
            unused_reason: None,
            failure: None,
            outcome: ReplyOutcome::default(),
            is_tool_loop: options.tool_loop,
            awaits_results: false,
        }
    }

    /// Creates the stages of the next reply in the same stream.
    pub(super) fn next_reply(&self, options: &Options) -> Stages {
        let mut next_stages = Stages::new(options);
        (next_stages.sends_extensions, next_stages.sends_findings) =
            (self.sends_extensions, self.sends_findings);
        next_stages.sequencer = self.sequencer.clone();
        next_stages.sequencer.next_reply();
        next_stages.reporter.carry_over(&self.reporter);
        next_stages.policy.carry_over(&self.policy);
        next_stages.outcome.carry_over(&self.outcome);
        next_stages
    }

    /// Sends an extension event that comes from the reply or from the application.
    pub(super) fn send_extension(&mut self, extension: Extension, sink: &mut dyn Sink) {
        let Stages { sequencer, sends_extensions, outcome, .. } = self;
        route_extension(extension, *sends_extensions, sequencer, outcome, sink);
    }

    /// Sends an event that ends the stream.
    pub(super) fn send(&mut self, event: Event<'_>, sink: &mut dyn Sink) {
        self.outcome.observe(&event);
        sink.event(event);
    }
}

/// Sequences an extension and records it; sends it only with `sends_extensions`.
fn route_extension(
    extension: Extension,
    sends_extensions: bool,
    sequencer: &mut Sequencer,
    outcome: &mut ReplyOutcome,
    sink: &mut dyn Sink,
) {
    sequencer.send_extension(extension, &mut |event| match event {
        Event::Extension(extension) if !sends_extensions => outcome.record(*extension),
        event => {
            outcome.observe(&event);
            sink.event(event);
        }
    });
}

/// Path from a dialect to the sink: policy, sequencer, findings.
pub(super) struct StageOutput<'a> {
    pub(super) stages: &'a mut Stages,
    pub(super) sink: &'a mut dyn Sink,
}

impl StageOutput<'_> {
    /// Applies an intent other than text of a phase or of the answer. The title of a phase beyond the limit
    /// is text of the phase before.
    fn apply_other(&mut self, intent: &Intent<'_>) {
        if let Intent::Phase(title, place) = intent {
            let Stages { policy, reporter, sends_findings, .. } = &mut *self.stages;
            let sink = &mut *self.sink;
            if !policy.begin_phase(*place, &mut |report| reporter.add(report, *sends_findings, sink)) {
                self.apply(&Intent::PhaseText("\n"));
                self.apply(&Intent::PhaseText(title));
                return self.apply(&Intent::PhaseText("\n"));
            }
        }
        self.apply(intent);
    }

    /// Sends the events of an intent.
    fn apply(&mut self, intent: &Intent<'_>) {
        let Stages { sequencer, sends_extensions, .. } = &mut *self.stages;
        let sink = &mut *self.sink;
        sequencer.apply(intent, &mut |event| {
            if *sends_extensions || event.kind() != EventKind::Extension {
                sink.event(event);
            }
        });
    }
}

impl IntentSink for StageOutput<'_> {
    #[inline]
    fn emit_intent(&mut self, intent: Intent<'_>) {
        // Fast path: text is most of a reply. Text intents own nothing, so they are forgotten to skip drop
        // code.
        match intent {
            Intent::FinalText(text) => {
                std::mem::forget(intent);
                let sink = &mut *self.sink;
                self.stages.sequencer.push_final_text(text, &mut |event| sink.event(event));
            }
            Intent::PhaseText(text) => {
                std::mem::forget(intent);
                let Stages { sequencer, sends_extensions, .. } = &mut *self.stages;
                let sink = &mut *self.sink;
                // After thinking the text is an aside, which is an extension event.
                sequencer.push_phase_text(text, &mut |event| {
                    if *sends_extensions || event.kind() != EventKind::Extension {
                        sink.event(event);
                    }
                });
            }
            other => self.apply_other(&other),
        }
    }

    fn emit_queries(&mut self, raw_queries: RawQueries<'_>, place: Place, end: usize) -> Option<usize> {
        let Stages { policy, reporter, sends_findings, .. } = &mut *self.stages;
        let sink = &mut *self.sink;
        let queries = policy.clean_queries(raw_queries, place, end, &mut |report| {
            reporter.add(report, *sends_findings, sink)
        });
        let queries = queries?;
        let count = queries.len();
        self.emit_intent(Intent::Queries(queries));
        Some(count)
    }

    fn emit_action(&mut self, action: ReplyAction) {
        let Stages { policy, sequencer, sends_extensions, outcome, .. } = &mut *self.stages;
        if let ReplyAction::Answer(answer) = &action {
            outcome.answer = Some(answer.clone());
        }
        policy.act(action, *sends_extensions, &mut |extension| {
            route_extension(extension, *sends_extensions, sequencer, outcome, self.sink);
        });
        outcome.applied_updates.extend(policy.take_applied_updates());
    }

    fn report(&mut self, report: FindingReport) {
        self.stages.reporter.add(report, self.stages.sends_findings, self.sink);
    }

    fn fall_back(&mut self, reason: &'static str) {
        self.stages.unused_reason.get_or_insert(reason);
    }

    fn fail(&mut self, code: &'static str, message: &str) {
        let retryable = false;
        self.stages.failure.get_or_insert_with(|| Failure::new(code, message, retryable));
    }
}
