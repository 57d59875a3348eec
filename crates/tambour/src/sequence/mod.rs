//! State machine that sends events in the order of the event grammar (X-001).
//!
//! ```text
//! serp_summary?  thinking_start  ( phase_start  phase_delta* )+  thinking_end  final_delta+  serp_queries?  final_end
//! ```
//!
//! Intents (what a dialect has read: text, phases, queries) may arrive in any order; the events are valid by
//! construction: missing starts and ends are added, late ones are not sent. The state is a fold of the events
//! so far ([`Sequencer::observe`]), so that it can be rebuilt from a log. The checker in `contract` is
//! written independently of it.

mod trim;

use std::borrow::Cow;

use crate::dialect::Intent;
use crate::event::{AsideKind, Event, Extension};
use crate::lex::space::{self, is_blank};
use crate::options::{Options, Texts};

pub use trim::SpaceTrimmer;

/// Puts intents in the order of the event grammar.
#[derive(Clone, Debug)]
pub struct Sequencer {
    stage: StreamStage,
    /// Set once the summary has been sent.
    has_summary: bool,
    /// Id of the last phase sent; 0 before the first.
    last_phase_id: u32,
    /// Set if the next text of a phase starts a new phase, because a new reply has begun.
    needs_new_phase: bool,
    /// Set if phase text of this reply came after thinking, and was sent as an aside.
    has_late_thought: bool,
    /// Set once answer text has been sent.
    has_answer: bool,
    /// Queries that are sent at the end of the answer.
    queries: Option<Vec<String>>,
    /// Trimmer of the current phase, or of the answer.
    trimmer: SpaceTrimmer,
    texts: Texts,
    /// Set if the stream may begin with the answer (R-24).
    skips_thinking: bool,
    /// Maximum length of a delta in bytes.
    max_delta: usize,
}

/// Progress of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StreamStage {
    NotStarted,
    Thinking,
    Answer,
    Ended,
}

impl Sequencer {
    /// Creates the sequencer of a new stream.
    #[must_use]
    pub fn new(options: &Options) -> Sequencer {
        // A delta must hold at least one character, which has up to four bytes.
        let max_delta = options.limits.delta.max(4);
        Sequencer {
            stage: StreamStage::NotStarted,
            has_summary: false,
            last_phase_id: 0,
            needs_new_phase: false,
            has_late_thought: false,
            has_answer: false,
            queries: None,
            trimmer: SpaceTrimmer::new(options.limits.hold, max_delta),
            texts: options.texts.clone(),
            skips_thinking: false,
            max_delta,
        }
    }

    /// Records an event that was sent. Folding all events of a log rebuilds the state of its stream, except
    /// for queries and white space that are held back.
    #[inline]
    pub fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::SerpSummary { .. } => self.has_summary = true,
            Event::ThinkingStart => self.stage = StreamStage::Thinking,
            Event::PhaseStart { id, .. } => {
                self.last_phase_id = *id;
                self.needs_new_phase = false;
            }
            Event::ThinkingEnd => self.stage = StreamStage::Answer,
            Event::FinalDelta { .. } => {
                self.stage = StreamStage::Answer;
                self.has_answer = true;
            }
            Event::SerpQueries { .. } => self.queries = None,
            Event::FinalEnd => self.stage = StreamStage::Ended,
            _ => {}
        }
    }

    /// Returns whether an event of the grammar has been sent.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.stage > StreamStage::NotStarted || self.has_summary
    }

    /// Prepares for another reply in the same stream: its thinking begins a new phase (X-004), and its answer
    /// begins a new paragraph.
    pub fn next_reply(&mut self) {
        self.needs_new_phase = true;
        self.has_late_thought = false;
        if self.stage == StreamStage::Answer && self.has_answer {
            // Held back, as it may be trailing white space of the answer.
            self.trimmer.push("\n\n", &mut |_| {});
        }
    }

    /// Returns whether answer text has been sent.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        self.has_answer
    }

    /// Returns the number of phases sent.
    #[must_use]
    pub fn phase_count(&self) -> u32 {
        self.last_phase_id
    }

    /// Returns the length of the white space held back, in bytes (R-22).
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.trimmer.held_bytes()
    }

    /// Applies one intent and passes the resulting events to `out`. An intent that comes too late gives no
    /// events, but a late thought, phase title or summary becomes an aside.
    #[inline]
    pub fn apply(&mut self, intent: &Intent<'_>, out: &mut impl FnMut(Event<'_>)) {
        match intent {
            Intent::FinalText(text) => self.push_final_text(text, out),
            Intent::PhaseText(text) => self.push_phase_text(text, out),
            Intent::Draft(text) => {
                if self.stage < StreamStage::Ended && !text.is_empty() {
                    self.send(Event::DraftDelta { text: Cow::Borrowed(text) }, out);
                }
            }
            Intent::Phase(title, _) => self.start_phase(title, out),
            Intent::ThinkingStart => {
                if self.stage == StreamStage::NotStarted {
                    self.send(Event::ThinkingStart, out);
                }
            }
            Intent::ThinkingEnd => {
                if self.stage < StreamStage::Answer {
                    self.end_thinking(out);
                }
            }
            Intent::Summary(text) => {
                let text = space::trim(text);
                // `space::trim` keeps U+3000 as text (R-22), `str::trim` does not.
                match text.trim().is_empty() {
                    true => {}
                    false if self.stage == StreamStage::NotStarted && !self.has_summary => {
                        self.send(Event::SerpSummary { text: Cow::Borrowed(text) }, out);
                    }
                    // A summary that comes too late, as in a later reply of a tool loop.
                    false => self.send_aside(AsideKind::Thought, text, out),
                }
            }
            Intent::SkipThinking => self.skips_thinking = true,
            Intent::Queries(queries) => self.queries = Some(queries.clone()),
            Intent::Aside { kind, text } => self.send_aside(*kind, text, out),
        }
    }

    /// Sends an extension event between `thinking_start` and `final_end`.
    pub fn send_extension(&mut self, extension: Extension, out: &mut impl FnMut(Event<'_>)) {
        if self.stage < StreamStage::Ended {
            if self.stage == StreamStage::NotStarted {
                self.send(Event::ThinkingStart, out);
            }
            self.send(Event::Extension(Box::new(extension)), out);
        }
    }

    /// Ends thinking and the answer; an answer without text gets the fallback text (R-08). Returns whether
    /// the fallback text was sent.
    pub fn finish(&mut self, out: &mut impl FnMut(Event<'_>)) -> bool {
        if self.stage == StreamStage::Ended {
            return false;
        }
        let needs_fallback = !self.has_answer;
        if needs_fallback {
            self.trimmer.reset();
            let text = self.texts.fallback.clone();
            self.push_final_text(&text, out);
        }
        self.trimmer.reset();
        if let Some(queries) = self.queries.take() {
            self.send(Event::SerpQueries { queries }, out);
        }
        self.send(Event::FinalEnd, out);
        needs_fallback
    }

    /// Sends text of the answer.
    #[inline]
    pub fn push_final_text(&mut self, text: &str, out: &mut impl FnMut(Event<'_>)) {
        if self.stage != StreamStage::Answer && !self.begin_answer(text, out) {
            return;
        }
        let (max_delta, has_answer) = (self.max_delta, &mut self.has_answer);
        self.trimmer.push(text, &mut |text| {
            *has_answer = true;
            split_delta(text, max_delta, |text| out(Event::FinalDelta { text: Cow::Borrowed(text) }));
        });
    }

    /// Sends text of the current phase, or of a new phase with the fallback title. After thinking the text is
    /// an aside.
    #[inline]
    pub fn push_phase_text(&mut self, text: &str, out: &mut impl FnMut(Event<'_>)) {
        if self.stage >= StreamStage::Answer {
            return self.send_late_thought(text, out);
        }
        if self.last_phase_id == 0 || self.needs_new_phase {
            if is_blank(text) {
                return;
            }
            self.start_phase("", out);
        }
        let (max_delta, id) = (self.max_delta, self.last_phase_id);
        self.trimmer.push(text, &mut |text| {
            split_delta(text, max_delta, |text| out(Event::PhaseDelta { id, text: Cow::Borrowed(text) }));
        });
    }

    /// Ends thinking so that the answer can begin with `text`. Returns false, and ends nothing, if `text` is
    /// blank or the stream has ended.
    fn begin_answer(&mut self, text: &str, out: &mut impl FnMut(Event<'_>)) -> bool {
        if self.stage == StreamStage::Ended || is_blank(text) {
            return false;
        }
        if self.stage == StreamStage::NotStarted && self.skips_thinking {
            self.stage = StreamStage::Answer;
        } else {
            self.end_thinking(out);
        }
        true
    }

    /// Sends an aside; at the start of the stream `thinking_start` is sent first.
    fn send_aside(&mut self, kind: AsideKind, text: &str, out: &mut impl FnMut(Event<'_>)) {
        if self.stage < StreamStage::Ended && !text.is_empty() {
            if self.stage == StreamStage::NotStarted {
                self.send(Event::ThinkingStart, out);
            }
            self.send(Event::Aside { kind, text: Cow::Borrowed(text) }, out);
        }
    }

    /// Sends phase text that comes after thinking as an aside.
    fn send_late_thought(&mut self, text: &str, out: &mut impl FnMut(Event<'_>)) {
        // Leading white space is dropped, however it is cut into chunks.
        let text = if self.has_late_thought { text } else { text.trim_start_matches(space::is_space) };
        if self.stage == StreamStage::Ended || text.is_empty() {
            return;
        }
        self.has_late_thought = true;
        self.send(Event::Aside { kind: AsideKind::Thought, text: Cow::Borrowed(text) }, out);
    }

    /// Starts a phase; a blank title becomes the fallback title. After thinking the title is an aside.
    fn start_phase(&mut self, title: &str, out: &mut impl FnMut(Event<'_>)) {
        if self.stage >= StreamStage::Answer {
            let title = space::trim(title);
            if self.has_late_thought {
                self.send_late_thought("\n", out);
            }
            if !title.is_empty() {
                self.send_late_thought(title, out);
                self.send_late_thought("\n", out);
            }
            return;
        }
        if self.stage == StreamStage::NotStarted {
            self.send(Event::ThinkingStart, out);
        }
        self.trimmer.reset();
        let fallback_title = self.texts.phase_title.clone();
        let title = space::trim(title);
        let title = if title.trim().is_empty() { fallback_title.as_ref() } else { title };
        self.send(Event::PhaseStart { id: self.last_phase_id + 1, title: Cow::Borrowed(title) }, out);
    }

    /// Starts a phase if there is none: thinking has at least one.
    fn ensure_phase(&mut self, out: &mut impl FnMut(Event<'_>)) {
        if self.last_phase_id == 0 {
            self.start_phase("", out);
        }
    }

    fn end_thinking(&mut self, out: &mut impl FnMut(Event<'_>)) {
        self.ensure_phase(out);
        self.trimmer.reset();
        self.send(Event::ThinkingEnd, out);
    }

    #[inline]
    fn send(&mut self, event: Event<'_>, out: &mut impl FnMut(Event<'_>)) {
        self.observe(&event);
        out(event);
    }
}

/// Splits a long delta into pieces of at most `max` bytes, never inside a character (J-039).
#[inline]
fn split_delta(text: &str, max: usize, mut out: impl FnMut(&str)) {
    let mut unsent = text;
    while unsent.len() > max {
        let (piece, remainder) = unsent.split_at(unsent.floor_char_boundary(max));
        out(piece);
        unsent = remainder;
    }
    if !unsent.is_empty() {
        out(unsent);
    }
}
