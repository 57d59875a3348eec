//! Checker of event streams: a list, an SSE transcript or JSON Lines, whole or in chunks (J-065).

use serde_json::{Map, Value};

use super::Extent;
use super::fields::{self, shown};
use super::lines::Lines;
use super::order::{Order, fault};
use super::rules;
use super::transcript::{Transcript, parts};
use crate::event::{Event, EventKind, kind_of};
use crate::finding::{Finding, Profile, Report, Severity};
use crate::options::Options;
use crate::privacy::Privacy;
use crate::span::Place;

/// Form of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// `event:`, `data:` and `id:` lines.
    Sse,
    /// One event a line.
    JsonLines,
    /// One JSON array of events, parsed at the end of the input.
    Array,
}

/// Options of checking a stream. The default suits continuous integration: strict.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckOptions {
    /// Profile, `allow_missing_thinking`, `first_only`, limits.
    pub options: Options,
    /// Form of a transcript; detected if `None`.
    pub form: Option<Form>,
    /// Requirement that each event carries `message_id` and `request_id` (J-030). `None`: only in SSE
    /// transcripts.
    pub envelope: Option<bool>,
    /// Requirement that the stream ends with `completed` or `error` (J-035). `None`: only in SSE transcripts.
    /// In any case there may be only one such event, and it must be the last.
    pub terminal: Option<bool>,
    /// Sensitive data that queries must not contain (T-048).
    pub privacy: Privacy,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions {
            options: Options { profile: Profile::Strict, ..Options::default() },
            form: None,
            envelope: None,
            terminal: None,
            privacy: Privacy::default(),
        }
    }
}

impl CheckOptions {
    /// Default options with other general ones, whose profile applies.
    #[must_use]
    pub fn new(options: Options) -> CheckOptions {
        CheckOptions { options, ..CheckOptions::default() }
    }

    /// Sets the form of the transcript.
    #[must_use]
    pub fn form(mut self, form: Form) -> CheckOptions {
        self.form = Some(form);
        self
    }

    /// Sets whether each event must carry `message_id` and `request_id`.
    #[must_use]
    pub fn envelope(mut self, required: bool) -> CheckOptions {
        self.envelope = Some(required);
        self
    }

    /// Sets whether the stream must end with `completed` or `error`.
    #[must_use]
    pub fn terminal(mut self, required: bool) -> CheckOptions {
        self.terminal = Some(required);
        self
    }

    /// Sets the sensitive data that queries must not contain.
    #[must_use]
    pub fn privacy(mut self, privacy: Privacy) -> CheckOptions {
        self.privacy = privacy;
        self
    }
}

/// Checks a stream of events against the contract as it arrives.
///
/// Feed it a transcript with [`push`](Checker::push), or events with [`event`](Checker::event) and
/// [`value`](Checker::value), but not both. Findings of a transcript have byte offsets into it; findings of a
/// list have the index of the event as their offset and count events as lines.
///
/// ```
/// use tambour::contract::{CheckOptions, Checker};
///
/// let mut checker = Checker::new(CheckOptions::default());
/// checker.push(b"{\"event\":\"thinking_start\",\"data\":{}}\n");
/// checker.push(b"{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}\n");
/// let findings = checker.finish();
/// assert!(findings.iter().any(|finding| finding.code == "final_before_thinking_end"));
/// ```
#[derive(Debug)]
pub struct Checker {
    lines: Lines,
    transcript: Transcript,
    core: Core,
}

impl Checker {
    /// Creates a checker of one stream.
    #[must_use]
    pub fn new(options: CheckOptions) -> Checker {
        let limit = options.options.limits.input;
        Checker {
            lines: Lines::new(limit),
            transcript: Transcript::new(options.form, limit),
            core: Core::new(options),
        }
    }

    /// Reads the next bytes of a transcript.
    pub fn push(&mut self, bytes: &[u8]) {
        let Checker { lines, transcript, core } = self;
        lines.push(bytes, &mut |line| transcript.line(line, core));
    }

    /// Reads the next event of a list.
    pub fn event(&mut self, event: &Event<'_>) {
        let at = self.core.next_index();
        self.core.event(event.name(), event.data().as_object(), None, at);
    }

    /// Reads the next event of a list in JSON form, `{"event": NAME, "data": {...}}`.
    pub fn value(&mut self, event: &Value) {
        self.core.listed(event);
    }

    /// Findings so far, in the order of detection.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.core.findings
    }

    /// All findings, in the order of the stream.
    #[must_use]
    pub fn finish(self) -> Vec<Finding> {
        let Checker { mut lines, mut transcript, mut core } = self;
        let end = lines.finish(&mut |line| transcript.line(line, &mut core));
        transcript.finish(Extent::empty(end), &mut core);
        let end = if core.listed > 0 { core.next_index().place } else { end };
        core.finish(Extent::empty(end))
    }
}

/// Findings of a list of events, judged strictly.
///
/// ```
/// use tambour::event::Event;
///
/// let findings = tambour::contract::check_events(&[Event::ThinkingStart, Event::FinalEnd]);
/// assert!(findings.iter().any(|finding| finding.code == "final_delta_missing"));
/// ```
#[must_use]
pub fn check_events(events: &[Event<'_>]) -> Vec<Finding> {
    let mut checker = Checker::new(CheckOptions::default());
    for event in events {
        checker.event(event);
    }
    checker.finish()
}

/// Findings of a list of events in JSON form.
#[must_use]
pub fn check_values(events: &[Value], options: CheckOptions) -> Vec<Finding> {
    let mut checker = Checker::new(options);
    for event in events {
        checker.value(event);
    }
    checker.finish()
}

/// Findings of a whole transcript: SSE, JSON Lines or a JSON array of events.
#[must_use]
pub fn check_transcript(transcript: &[u8], options: CheckOptions) -> Vec<Finding> {
    let mut checker = Checker::new(options);
    checker.push(transcript);
    checker.finish()
}

/// Event of the output protocol `legacy` that carries raw text.
const LEGACY: &str = "content_delta";

/// Part of the checker that is common to all forms: events in order, and findings.
#[derive(Debug)]
pub(super) struct Core {
    options: CheckOptions,
    /// True if this is a transcript of bytes sent over the network.
    pub(super) wire: bool,
    /// Number of events read from a list.
    listed: usize,
    order: Order,
    /// Name of the terminal event.
    terminal: Option<&'static str>,
    last_id: Option<u64>,
    /// First event without an id, as long as no event has one.
    without_id: Option<Extent>,
    findings: Vec<Finding>,
    unlisted: usize,
    /// True if an error was found.
    failed: bool,
}

impl Core {
    fn new(options: CheckOptions) -> Core {
        Core {
            order: Order::new(options.options.allow_missing_thinking),
            options,
            wire: false,
            listed: 0,
            terminal: None,
            last_id: None,
            without_id: None,
            findings: Vec::new(),
            unlisted: 0,
            failed: false,
        }
    }

    /// Reads the next event of a list.
    pub(super) fn listed(&mut self, event: &Value) {
        let at = self.next_index();
        self.value(event, at);
    }

    /// Reads an event in JSON form.
    pub(super) fn value(&mut self, event: &Value, at: Extent) {
        if let Some(parts) = parts(event, at, self) {
            self.event(parts.name, parts.data.as_deref(), parts.id.as_deref(), at);
        }
    }

    /// Reads an event; `data` is `None` if it could not be parsed, which is reported separately.
    pub(super) fn event(
        &mut self,
        name: &str,
        data: Option<&Map<String, Value>>,
        id: Option<&str>,
        at: Extent,
    ) {
        let mut reports = Vec::new();
        if let Some(terminal) = self.terminal {
            // Two terminal events are one fault, not an end and a later event.
            reports.push(if matches!(name, "completed" | "error") {
                fault(rules::TERMINAL_DUPLICATE, at, format!("{name} after {terminal}"))
            } else {
                fault(rules::EVENT_AFTER_TERMINAL, at, format!("{} after {terminal}", shown(name)))
            });
        }
        if self.options.envelope.unwrap_or(self.wire) {
            self.envelope(name, data, at, &mut reports);
        }
        let kind = kind_of(name);
        match kind {
            None => {
                let mut message = format!("there is no event {}", shown(name));
                if name == LEGACY {
                    message += " in the contract: this is the output protocol `legacy`; ask for `output_protocol=jsonseq_v1`";
                }
                reports.push(fault(rules::EVENT_UNKNOWN, at, message));
            }
            Some(EventKind::Contract) => {
                if let Some(part) = fields::read(name, data, &self.options.privacy, at, &mut reports) {
                    self.order.contract(part, at, &mut reports);
                }
            }
            Some(EventKind::System) => match name {
                "completed" => self.terminal = self.terminal.or(Some("completed")),
                "error" => self.terminal = self.terminal.or(Some("error")),
                _ => {}
            },
            Some(EventKind::Extension) => self.order.extension(name, at, &mut reports),
        }
        if kind.is_some() {
            self.stream_id(matches!(name, "status" | "heartbeat"), name, id, at, &mut reports);
        }
        for report in reports {
            self.report(report);
        }
    }

    /// Adds a finding, up to the limit.
    pub(super) fn report(&mut self, report: Report) {
        let options = &self.options.options;
        let limit = options.limits.findings;
        let mut finding = report.judge(options.profile);
        // R-04: a gap is an error only in strict, although nothing is repaired here.
        if finding.code == rules::PHASE_ID_NOT_CONSECUTIVE.code && options.profile == Profile::Lenient {
            finding.severity = Severity::Warning;
        }
        // The first error decides a verdict, so it is listed no matter how many lesser findings came before
        // it.
        let decides = finding.severity == Severity::Error && !std::mem::replace(&mut self.failed, true);
        if self.findings.len() < limit || decides {
            self.findings.push(finding);
        } else {
            self.unlisted += 1;
        }
    }

    /// Extent of the next event of a list.
    fn next_index(&mut self) -> Extent {
        let index = self.listed;
        self.listed += 1;
        let line = u32::try_from(self.listed).unwrap_or(u32::MAX);
        Extent { place: Place { offset: index, line, column: 1 }, end: index + 1 }
    }

    /// Checks the envelope (J-030).
    fn envelope(&self, name: &str, data: Option<&Map<String, Value>>, at: Extent, out: &mut Vec<Report>) {
        let Some(data) = data else { return };
        for field in ["message_id", "request_id"] {
            if data.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                out.push(fault(rules::ENVELOPE_MISSING, at, format!("{} has no {field}", shown(name))));
                return;
            }
        }
    }

    /// Checks the id (J-036). Ids are required only if some event has one: a stream without ids cannot be
    /// resumed, which is allowed.
    fn stream_id(&mut self, control: bool, name: &str, id: Option<&str>, at: Extent, out: &mut Vec<Report>) {
        match id {
            None if control => {}
            None if self.last_id.is_some() => {
                out.push(fault(
                    rules::EVENT_ID_MISSING,
                    at,
                    format!("{name} has no id, unlike events before it"),
                ));
            }
            None => {
                self.without_id.get_or_insert(at);
            }
            Some(_) if control => {
                out.push(fault(rules::CONTROL_EVENT_WITH_ID, at, format!("{name} has an id")));
            }
            Some(id) => {
                let number = Some(id)
                    .filter(|id| id.bytes().all(|b| b.is_ascii_digit()))
                    .and_then(|id| id.parse().ok());
                let Some(number) = number else {
                    out.push(fault(
                        rules::EVENT_ID_INVALID,
                        at,
                        format!("{} is no id of an event", shown(id)),
                    ));
                    return;
                };
                if let Some(earlier) = self.without_id.take() {
                    out.push(fault(
                        rules::EVENT_ID_MISSING,
                        earlier,
                        "an event has no id, unlike events after it",
                    ));
                }
                if let Some(last) = self.last_id.filter(|&last| number <= last) {
                    let message = format!("the id {number} comes after {last}");
                    out.push(fault(rules::EVENT_ID_NOT_INCREASING, at, message));
                }
                self.last_id = Some(number);
            }
        }
    }

    fn finish(mut self, end: Extent) -> Vec<Finding> {
        let mut reports = Vec::new();
        self.order.finish(self.terminal == Some("error"), end, &mut reports);
        if self.terminal.is_none() && self.options.terminal.unwrap_or(self.wire) {
            reports.push(fault(rules::TERMINAL_MISSING, end, "the stream ends without completed or error"));
        }
        for report in reports {
            self.report(report);
        }
        // Missing events are detected only at the end but belong to an earlier place.
        self.findings.sort_by_key(|finding| finding.span.start);
        if self.options.options.first_only {
            // The first error decides; without one, the first finding.
            let error = self.findings.iter().position(|finding| finding.severity == Severity::Error);
            return self.findings.into_iter().nth(error.unwrap_or(0)).into_iter().collect();
        }
        if self.unlisted > 0 {
            let message = format!("{} more findings are not listed", self.unlisted);
            self.findings
                .push(fault(rules::LIMIT_EXCEEDED, end, message).judge(self.options.options.profile));
        }
        self.findings
    }
}
