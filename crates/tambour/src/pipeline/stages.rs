//! Stages behind a dialect: policy, sequencer, findings, and the result of the reply.

use super::outcome::Outcome;
use super::reporter::Reporter;
use crate::dialect::{Action, Intent, Output, Written};
use crate::event::{Event, EventKind, Extension, Failure, Sink};
use crate::finding::Report;
use crate::options::Options;
use crate::policy::Policy;
use crate::sequence::Sequencer;
use crate::span::Place;

/// State of all stages behind the dialect.
pub(super) struct Stages {
    pub(super) policy: Policy,
    pub(super) sequencer: Sequencer,
    pub(super) reporter: Reporter,
    pub(super) extensions: bool,
    pub(super) findings: bool,
    /// Reason why the reply is not in the requested format.
    pub(super) unused: Option<&'static str>,
    /// Reason why the stream ends with `error`.
    pub(super) failure: Option<Failure>,
    pub(super) outcome: Outcome,
    /// Flags: replies with calls leave the stream open for results; this reply has left it open.
    pub(super) looping: bool,
    pub(super) waiting: bool,
}

impl Stages {
    pub(super) fn new(options: &Options) -> Stages {
        Stages {
            policy: Policy::new(options),
            sequencer: Sequencer::new(options),
            reporter: Reporter::new(options),
            extensions: false,
            findings: false,
            unused: None,
            failure: None,
            outcome: Outcome::default(),
            looping: options.tool_loop,
            waiting: false,
        }
    }

    /// Stages of the next reply in the same stream.
    pub(super) fn next_reply(&self, options: &Options) -> Stages {
        let mut next = Stages::new(options);
        (next.extensions, next.findings) = (self.extensions, self.findings);
        next.sequencer = self.sequencer.clone();
        next.sequencer.next_reply();
        next.reporter.go_on(&self.reporter);
        next.policy.follow(&self.policy);
        next.outcome.go_on(&self.outcome);
        next
    }

    /// Sends an extension event, of the reply or of another origin.
    pub(super) fn extension(&mut self, extension: Extension, sink: &mut dyn Sink) {
        let Stages { sequencer, extensions, outcome, .. } = self;
        tell(extension, *extensions, sequencer, outcome, sink);
    }

    /// Sends an event that ends the stream.
    pub(super) fn send(&mut self, event: Event<'_>, sink: &mut dyn Sink) {
        self.outcome.observe(&event);
        sink.event(event);
    }
}

/// Sequences an extension, records it, and sends it if extensions are `wanted`.
fn tell(
    extension: Extension,
    wanted: bool,
    sequencer: &mut Sequencer,
    outcome: &mut Outcome,
    sink: &mut dyn Sink,
) {
    sequencer.extension(extension, &mut |event| match event {
        Event::Extension(extension) if !wanted => outcome.keep(*extension),
        event => {
            outcome.observe(&event);
            sink.event(event);
        }
    });
}

/// Path from a dialect to the sink: policy, sequencer, findings.
pub(super) struct ToSink<'a> {
    pub(super) stages: &'a mut Stages,
    pub(super) sink: &'a mut dyn Sink,
}

impl ToSink<'_> {
    /// Applies an intent that is not text of a phase or of the answer.
    fn other(&mut self, intent: &Intent<'_>) {
        if let Intent::Phase(title, place) = intent {
            let Stages { policy, reporter, findings, .. } = &mut *self.stages;
            let sink = &mut *self.sink;
            if !policy.phase(*place, &mut |report| reporter.add(report, *findings, sink)) {
                self.apply(&Intent::PhaseText("\n"));
                self.apply(&Intent::PhaseText(title));
                return self.apply(&Intent::PhaseText("\n"));
            }
        }
        self.apply(intent);
    }

    fn apply(&mut self, intent: &Intent<'_>) {
        let Stages { sequencer, extensions, .. } = &mut *self.stages;
        let sink = &mut *self.sink;
        sequencer.apply(intent, &mut |event| {
            if *extensions || event.kind() != EventKind::Extension {
                sink.event(event);
            }
        });
    }
}

impl Output for ToSink<'_> {
    #[inline]
    fn intent(&mut self, intent: Intent<'_>) {
        // Fast path: text is most of a reply.
        match intent {
            Intent::FinalText(text) => {
                std::mem::forget(intent);
                let sink = &mut *self.sink;
                self.stages.sequencer.final_text(text, &mut |event| sink.event(event));
            }
            Intent::PhaseText(text) => {
                std::mem::forget(intent);
                let Stages { sequencer, extensions, .. } = &mut *self.stages;
                let sink = &mut *self.sink;
                // After the answer it is an aside, an extension event.
                sequencer.phase_text(text, &mut |event| {
                    if *extensions || event.kind() != EventKind::Extension {
                        sink.event(event);
                    }
                });
            }
            other => self.other(&other),
        }
    }

    fn queries(&mut self, written: Written<'_>, place: Place, end: usize) -> Option<usize> {
        let Stages { policy, reporter, findings, .. } = &mut *self.stages;
        let sink = &mut *self.sink;
        let queries =
            policy.queries(written, place, end, &mut |report| reporter.add(report, *findings, sink));
        let queries = queries?;
        let count = queries.len();
        self.intent(Intent::Queries(queries));
        Some(count)
    }

    fn act(&mut self, action: Action) {
        let Stages { policy, sequencer, extensions, outcome, .. } = &mut *self.stages;
        if let Action::Answer(answer) = &action {
            outcome.answer = Some(answer.clone());
        }
        policy.act(action, *extensions, &mut |extension| {
            tell(extension, *extensions, sequencer, outcome, self.sink);
        });
        outcome.applied.extend(policy.take_applied());
    }

    fn report(&mut self, report: Report) {
        self.stages.reporter.add(report, self.stages.findings, self.sink);
    }

    fn fall_back(&mut self, reason: &'static str) {
        self.stages.unused.get_or_insert(reason);
    }

    fn fail(&mut self, code: &'static str, message: &str) {
        self.stages.failure.get_or_insert_with(|| Failure::new(code, message, false));
    }
}
