//! Checker of event streams: a list, an SSE transcript or JSON Lines, whole or in chunks (J-065).

use serde_json::{Map, Value};

use super::fields::{self, quote_name};
use super::order::{OrderChecker, fault_report};
use super::rules;
use super::transcript::{TranscriptLines, TranscriptReader, split_event};
use crate::event::{Event, EventKind, parse_kind};
use crate::finding::{Finding, FindingReport, Profile, Severity};
use crate::options::Options;
use crate::privacy::DetectorSet;
use crate::span::{Extent, Place};

/// Form of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TranscriptForm {
    /// Server-Sent Events: `event:`, `data:` and `id:` lines.
    Sse,
    /// One event per line.
    JsonLines,
    /// One JSON array of events, parsed at the end of the input.
    Array,
}

/// Options for checking a stream. The default suits continuous integration: strict.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StreamCheckOptions {
    /// General options; the checker uses `profile`, `allow_missing_thinking`, `first_only` and `limits`.
    pub options: Options,
    /// Form of a transcript; detected if `None`.
    pub form: Option<TranscriptForm>,
    /// Requirement that each event carries `message_id` and `request_id` (J-030). `None`: required only in
    /// SSE transcripts.
    pub envelope: Option<bool>,
    /// Requirement that the stream ends with `completed` or `error` (J-035). `None`: required only in SSE
    /// transcripts. In any case there may be only one of these events, and it must be the last.
    pub terminal: Option<bool>,
    /// Sensitive data that queries must not contain (T-048).
    pub privacy: DetectorSet,
}

impl Default for StreamCheckOptions {
    fn default() -> StreamCheckOptions {
        StreamCheckOptions {
            options: Options { profile: Profile::Strict, ..Options::default() },
            form: None,
            envelope: None,
            terminal: None,
            privacy: DetectorSet::default(),
        }
    }
}

impl StreamCheckOptions {
    /// Creates options from general options, whose profile replaces the strict default.
    #[must_use]
    pub fn new(options: Options) -> StreamCheckOptions {
        StreamCheckOptions { options, ..StreamCheckOptions::default() }
    }

    /// Sets the form of the transcript.
    #[must_use]
    pub fn with_form(mut self, form: TranscriptForm) -> StreamCheckOptions {
        self.form = Some(form);
        self
    }

    /// Sets whether each event must carry `message_id` and `request_id`.
    #[must_use]
    pub fn with_envelope(mut self, required: bool) -> StreamCheckOptions {
        self.envelope = Some(required);
        self
    }

    /// Sets whether the stream must end with `completed` or `error`.
    #[must_use]
    pub fn with_terminal(mut self, required: bool) -> StreamCheckOptions {
        self.terminal = Some(required);
        self
    }

    /// Sets the sensitive data that queries must not contain.
    #[must_use]
    pub fn with_privacy(mut self, privacy: DetectorSet) -> StreamCheckOptions {
        self.privacy = privacy;
        self
    }
}

/// Checks a stream of events against the contract as it arrives.
///
/// Feed it a transcript with [`push`](StreamChecker::push), or events with
/// [`push_event`](StreamChecker::push_event) and [`push_value`](StreamChecker::push_value), but not both.
/// Findings of a transcript have byte offsets into it; findings of a list have the index of the event as
/// their offset and count events as lines.
///
/// ```
/// use tambour::contract::{StreamCheckOptions, StreamChecker};
///
/// let mut checker = StreamChecker::new(StreamCheckOptions::default());
/// checker.push(b"{\"event\":\"thinking_start\",\"data\":{}}\n");
/// checker.push(b"{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}\n");
/// let findings = checker.finish();
/// assert!(findings.iter().any(|finding| finding.code == "final_before_thinking_end"));
/// ```
#[derive(Debug)]
pub struct StreamChecker {
    lines: TranscriptLines,
    transcript: TranscriptReader,
    core: CheckerCore,
}

impl StreamChecker {
    /// Creates a checker of one stream.
    #[must_use]
    pub fn new(options: StreamCheckOptions) -> StreamChecker {
        let limit = options.options.limits.input;
        StreamChecker {
            lines: TranscriptLines::new(limit),
            transcript: TranscriptReader::new(options.form, limit),
            core: CheckerCore::new(options),
        }
    }

    /// Reads the next bytes of a transcript.
    pub fn push(&mut self, bytes: &[u8]) {
        let StreamChecker { lines, transcript, core } = self;
        lines.push(bytes, &mut |line| transcript.push_line(line, core));
    }

    /// Reads the next event of a list.
    pub fn push_event(&mut self, event: &Event<'_>) {
        let at = self.core.take_next_extent();
        self.core.push_event(event.name(), event.data().as_object(), None, at);
    }

    /// Reads the next event of a list in JSON form, `{"event": NAME, "data": {...}}`.
    pub fn push_value(&mut self, event: &Value) {
        self.core.push_listed(event);
    }

    /// Findings so far, in the order of detection.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.core.findings
    }

    /// Ends the stream and returns its findings, in the order of the stream.
    #[must_use]
    pub fn finish(self) -> Vec<Finding> {
        let StreamChecker { mut lines, mut transcript, mut core } = self;
        let end = lines.finish(&mut |line| transcript.push_line(line, &mut core));
        transcript.finish(Extent::empty(end), &mut core);
        // The end of a list is the position after its last event.
        let end = if core.list_len > 0 { core.take_next_extent().place } else { end };
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
    let mut checker = StreamChecker::new(StreamCheckOptions::default());
    for event in events {
        checker.push_event(event);
    }
    checker.finish()
}

/// Findings of a list of events in JSON form.
#[must_use]
pub fn check_values(events: &[Value], options: StreamCheckOptions) -> Vec<Finding> {
    let mut checker = StreamChecker::new(options);
    for event in events {
        checker.push_value(event);
    }
    checker.finish()
}

/// Findings of a whole transcript: SSE, JSON Lines or a JSON array of events.
#[must_use]
pub fn check_transcript(transcript: &[u8], options: StreamCheckOptions) -> Vec<Finding> {
    let mut checker = StreamChecker::new(options);
    checker.push(transcript);
    checker.finish()
}

/// Event of the output protocol `legacy` that carries raw text.
const LEGACY_DELTA: &str = "content_delta";

/// Part of the checker that is common to all forms: events in order, and findings.
#[derive(Debug)]
pub(super) struct CheckerCore {
    options: StreamCheckOptions,
    /// True if the input is an SSE transcript: by default, envelope and terminal event are required then.
    pub(super) is_sse: bool,
    /// Number of events read from a list.
    list_len: usize,
    order: OrderChecker,
    /// Name of the first terminal event, once it was read.
    terminal: Option<&'static str>,
    /// Last valid id of an event.
    last_id: Option<u64>,
    /// First event without an id, until an event with an id is read.
    first_without_id: Option<Extent>,
    /// Findings in the order of detection: at most `limits.findings` of them, plus the first error.
    findings: Vec<Finding>,
    /// Number of findings beyond the limit.
    unlisted_count: usize,
    /// True if a finding was an error.
    has_error: bool,
}

impl CheckerCore {
    fn new(options: StreamCheckOptions) -> CheckerCore {
        CheckerCore {
            order: OrderChecker::new(options.options.allow_missing_thinking),
            options,
            is_sse: false,
            list_len: 0,
            terminal: None,
            last_id: None,
            first_without_id: None,
            findings: Vec::new(),
            unlisted_count: 0,
            has_error: false,
        }
    }

    /// Reads the next event of a list.
    pub(super) fn push_listed(&mut self, event: &Value) {
        let at = self.take_next_extent();
        self.push_value(event, at);
    }

    /// Reads an event in JSON form.
    pub(super) fn push_value(&mut self, event: &Value, at: Extent) {
        if let Some(parts) = split_event(event, at, self) {
            self.push_event(parts.name, parts.data.as_deref(), parts.id.as_deref(), at);
        }
    }

    /// Reads an event; `data` is `None` if it could not be parsed, which is reported separately.
    pub(super) fn push_event(
        &mut self,
        name: &str,
        data: Option<&Map<String, Value>>,
        id: Option<&str>,
        at: Extent,
    ) {
        let mut reports = Vec::new();
        if let Some(terminal) = self.terminal {
            // A second terminal event is one fault, not also an event after the end.
            reports.push(if matches!(name, "completed" | "error") {
                fault_report(rules::TERMINAL_DUPLICATE, at, format!("{name} after {terminal}"))
            } else {
                fault_report(
                    rules::EVENT_AFTER_TERMINAL,
                    at,
                    format!("{} after {terminal}", quote_name(name)),
                )
            });
        }
        if self.options.envelope.unwrap_or(self.is_sse) {
            self.check_envelope(name, data, at, &mut reports);
        }
        let kind = parse_kind(name);
        match kind {
            None => {
                let mut message = format!("{} is not an event of the contract", quote_name(name));
                if name == LEGACY_DELTA {
                    message += ": this is the output protocol `legacy`; ask for `output_protocol=jsonseq_v1`";
                }
                reports.push(fault_report(rules::EVENT_UNKNOWN, at, message));
            }
            Some(EventKind::Contract) => {
                if let Some(event) = fields::check_event(name, data, &self.options.privacy, at, &mut reports)
                {
                    self.order.check_contract_event(event, at, &mut reports);
                }
            }
            Some(EventKind::System) => match name {
                "completed" => self.terminal = self.terminal.or(Some("completed")),
                "error" => self.terminal = self.terminal.or(Some("error")),
                _ => {}
            },
            Some(EventKind::Extension) => self.order.check_extension(name, at, &mut reports),
        }
        if kind.is_some() {
            let is_control = matches!(name, "status" | "heartbeat");
            self.check_id(is_control, name, id, at, &mut reports);
        }
        for report in reports {
            self.report(report);
        }
    }

    /// Adds a finding, up to the limit.
    pub(super) fn report(&mut self, report: FindingReport) {
        let options = &self.options.options;
        let limit = options.limits.findings;
        let mut finding = report.judge(options.profile);
        // R-04: a gap in the ids is an error only in the strict profile. Without this, the lenient profile
        // would make it an error too, since the checker repairs nothing.
        if finding.code == rules::PHASE_ID_NOT_CONSECUTIVE.code && options.profile == Profile::Lenient {
            finding.severity = Severity::Warning;
        }
        // The first error decides a verdict, so it is listed even if other findings have used up the limit.
        let is_first_error =
            finding.severity == Severity::Error && !std::mem::replace(&mut self.has_error, true);
        if self.findings.len() < limit || is_first_error {
            self.findings.push(finding);
        } else {
            self.unlisted_count += 1;
        }
    }

    /// Counts the next event of a list and returns its extent, which is in events instead of bytes and lines.
    fn take_next_extent(&mut self) -> Extent {
        let index = self.list_len;
        self.list_len += 1;
        let line = u32::try_from(self.list_len).unwrap_or(u32::MAX);
        Extent { place: Place { offset: index, line, column: 1 }, end: index + 1 }
    }

    /// Checks that the data of an event has the envelope (J-030). Reports at most one missing field.
    fn check_envelope(
        &self,
        name: &str,
        data: Option<&Map<String, Value>>,
        at: Extent,
        out: &mut Vec<FindingReport>,
    ) {
        let Some(data) = data else { return };
        for field in ["message_id", "request_id"] {
            if data.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                out.push(fault_report(
                    rules::ENVELOPE_MISSING,
                    at,
                    format!("{} has no {field}", quote_name(name)),
                ));
                return;
            }
        }
    }

    /// Checks the id of an event (J-036); a control event must have none. Ids are required only if some event
    /// has one: a stream without ids cannot be resumed, which is allowed.
    fn check_id(
        &mut self,
        is_control: bool,
        name: &str,
        id: Option<&str>,
        at: Extent,
        out: &mut Vec<FindingReport>,
    ) {
        match id {
            None if is_control => {}
            None if self.last_id.is_some() => {
                out.push(fault_report(
                    rules::EVENT_ID_MISSING,
                    at,
                    format!("{name} has no id, unlike events before it"),
                ));
            }
            None => {
                self.first_without_id.get_or_insert(at);
            }
            Some(_) if is_control => {
                out.push(fault_report(rules::CONTROL_EVENT_WITH_ID, at, format!("{name} has an id")));
            }
            Some(id) => {
                let number = Some(id)
                    .filter(|id| id.bytes().all(|b| b.is_ascii_digit()))
                    .and_then(|id| id.parse().ok());
                let Some(number) = number else {
                    out.push(fault_report(
                        rules::EVENT_ID_INVALID,
                        at,
                        format!("{} is not an event id: expected a whole number", quote_name(id)),
                    ));
                    return;
                };
                if let Some(first_extent) = self.first_without_id.take() {
                    out.push(fault_report(
                        rules::EVENT_ID_MISSING,
                        first_extent,
                        "an event has no id, unlike events after it",
                    ));
                }
                if let Some(last) = self.last_id.filter(|&last| number <= last) {
                    let message = format!("the id {number} comes after {last}");
                    out.push(fault_report(rules::EVENT_ID_NOT_INCREASING, at, message));
                }
                self.last_id = Some(number);
            }
        }
    }

    /// Ends the stream at `end` and returns the findings in the order of the stream, or only the finding that
    /// decides the verdict if `first_only`.
    fn finish(mut self, end: Extent) -> Vec<Finding> {
        let mut reports = Vec::new();
        self.order.finish(self.terminal == Some("error"), end, &mut reports);
        if self.terminal.is_none() && self.options.terminal.unwrap_or(self.is_sse) {
            reports.push(fault_report(
                rules::TERMINAL_MISSING,
                end,
                "the stream ends without completed or error",
            ));
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
        if self.unlisted_count > 0 {
            let message = format!("{} more findings are not listed", self.unlisted_count);
            self.findings
                .push(fault_report(rules::LIMIT_EXCEEDED, end, message).judge(self.options.options.profile));
        }
        self.findings
    }
}
