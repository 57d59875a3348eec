//! The content of `<thinking>`: text and tags directly in it and in its phases.

mod early_final;
mod phase;

use super::context::{self, QuotedFinal, ReaderContext};
use super::rules;
use super::structure::{self, ThinkingMlElement};
use crate::dialect::{Intent, IntentSink};
use crate::finding::{FindingReport, Rule};
use crate::lex::entity::EntityDecoder;
use crate::lex::markup::{MarkupTag, MarkupToken, TagKind};
use crate::span::Place;
pub(super) use early_final::EarlyFinal;
use early_final::HeldFinal;

/// Effect of a token on `<thinking>`.
pub(super) enum ThinkingOutcome<'a> {
    /// Thinking continues.
    Open,
    /// Later text is at the top level.
    TopLevel,
    /// `<final>` begins with a tag of `len` bytes, and thinking has ended. `rest` is unread.
    Final { at: Place, len: usize, rest: Option<(MarkupToken<'a>, Place)> },
    /// The held `<final>` is the answer, and thinking has ended. `rest` is unread.
    Answer { answer: QuotedFinal, rest: (MarkupToken<'a>, Place) },
    /// The held `<final>` is text: the frame reads it again, then `rest`.
    Release { early_final: EarlyFinal, rest: (MarkupToken<'a>, Place) },
    /// A `<final>` is held from now on. The blanks after it and `rest` are unread.
    FinalHeld { blanks: (String, Place), rest: (MarkupToken<'a>, Place) },
    /// A late summary begins.
    Summary,
}

/// State of `<thinking>`.
#[derive(Default)]
pub(super) struct ThinkingReader {
    /// Place of the `<thinking>` tag.
    start: Place,
    /// Set while an HTML comment is open; its content is text (T-027).
    is_in_comment: bool,
    entities: EntityDecoder,
    state: ThinkingState,
    /// Set if there are phases but, so far, no `<thinking>` tag.
    is_tagless: bool,
    position: ThinkingPosition,
    /// Start of the current phase.
    phase_start: Place,
    first_phase: FirstPhase,
    /// Set if the current run of text directly in `<thinking>` was reported.
    is_stray_reported: bool,
    /// Id of the last phase; 0 before the first.
    last_id: u64,
    /// The title attribute of `<phase>`, with place and length of the tag, until a `<title>` follows or is
    /// known to be missing.
    title_attribute: Option<(String, Place, usize)>,
    /// Number of phases closed by a phase that began inside them; their closing tags may still come.
    nested_count: u32,
    /// A `<final>` that may be text.
    held_final: HeldFinal,
    /// Set if a `<final>` in the middle of a line of the current phase is known to be text.
    is_mention_text: bool,
    replay: ThinkingReplay,
    /// The last `<final>...</final>` inside a phase after which thinking continued. It is the answer if no
    /// other one follows.
    quoted_final: Option<QuotedFinal>,
    late_close: LateClose,
}

/// State of the `<thinking>` element around the phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThinkingState {
    #[default]
    NotBegun,
    Open,
    Closed,
    /// Closed, or without a tag; phases come outside of it (loose phases).
    Loose,
}

/// Beginning of the first phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstPhase {
    /// No phase so far.
    #[default]
    Absent,
    /// Text before any `<phase>`, and its extent.
    Untagged { start: Place, end: usize },
    /// A `<phase>`.
    Tagged,
}

/// Kind of text that is being read a second time, now that its role is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ThinkingReplay {
    /// Text is read for the first time.
    #[default]
    None,
    /// A `<final>` that is text, and the text after it; every `<final>` in it is text too.
    ReleasedFinal,
    /// A `</thinking>` in the middle of a line, which ends thinking.
    MentionAsEnd,
    /// A `</thinking>` in the middle of a line, which is text, and the text after it; every `<final>` in it
    /// is text too.
    MentionAsText,
}

/// Closing tags that may still come after the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LateClose {
    /// No closing tag is due.
    #[default]
    None,
    /// `</thinking>`, because `<final>` closed thinking.
    Thinking,
    /// Closing tags of open elements that the answer interrupted.
    Interrupted { is_phase_open: bool, is_thinking_open: bool },
}

/// Position of the reader in `<thinking>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum ThinkingPosition {
    /// Directly in `<thinking>`.
    #[default]
    Direct,
    /// In a phase without a title so far: the text read instead, and its place.
    Untitled { text: String, at: Place },
    /// In a title: its text, the place of its tag, and the text before it in the phase.
    Title { text: String, at: Place, before: String },
    /// In the text of a phase.
    Text,
}

impl ThinkingReader {
    /// Begins `<thinking>`.
    pub(super) fn begin(&mut self, start: Place) {
        *self = ThinkingReader { start, state: ThinkingState::Open, ..ThinkingReader::default() };
    }

    /// Begins thinking with its first phase, without a `<thinking>` tag.
    pub(super) fn begin_tagless(&mut self) {
        (self.state, self.is_tagless) = (ThinkingState::Loose, true);
    }

    /// Records that a further phase begins outside of `<thinking>`.
    pub(super) fn set_loose(&mut self) {
        self.state = ThinkingState::Loose;
    }

    /// Handles a tag that comes after phases outside of `<thinking>`: a `<thinking>` at this place, or
    /// `</thinking>` for `None`.
    pub(super) fn handle_late_tag(&mut self, opening: Option<Place>) {
        match opening {
            Some(at) => (self.start, self.state, self.is_tagless) = (at, ThinkingState::Open, false),
            None => self.state = ThinkingState::Closed,
        }
    }

    /// Returns whether the current or last phase is outside of `<thinking>`.
    pub(super) fn is_loose(&self) -> bool {
        self.state == ThinkingState::Loose
    }

    fn is_open(&self) -> bool {
        self.state == ThinkingState::Open
    }

    /// Returns whether `</thinking>` may be a mere mention here.
    pub(super) fn can_be_mentioned(&self) -> bool {
        self.is_open()
            && matches!(self.replay, ThinkingReplay::None | ThinkingReplay::ReleasedFinal)
            && !self.is_in_comment
            && self.held_final.is_none()
    }

    /// Sets the kind of text that is read a second time from here on.
    pub(super) fn set_replay(&mut self, replay: ThinkingReplay) {
        self.replay = replay;
    }

    /// Returns whether every `<final>` is text here.
    fn keeps_finals_as_text(&self) -> bool {
        matches!(self.replay, ThinkingReplay::ReleasedFinal | ThinkingReplay::MentionAsText)
    }

    /// Returns whether there are phases but no `<thinking>` tag.
    pub(super) fn is_tagless(&self) -> bool {
        self.is_tagless
    }

    /// Returns whether later text is at the top level: after a phase without `<thinking>` around it.
    pub(super) fn is_at_top_level(&self) -> bool {
        !self.is_open() && self.position == ThinkingPosition::Direct
    }

    /// Consumes the closing tag of a phase outside of `<thinking>` that another phase closed; returns whether
    /// one was due.
    pub(super) fn take_nested_close(&mut self) -> bool {
        let is_nested = self.is_loose() && self.nested_count > 0;
        self.nested_count -= u32::from(is_nested);
        is_nested
    }

    /// Consumes the `</thinking>` after a `<final>` that closed thinking; returns whether it was due.
    pub(super) fn take_missing_close(&mut self) -> bool {
        let is_due = self.late_close == LateClose::Thinking;
        if is_due {
            self.late_close = LateClose::None;
        }
        is_due
    }

    /// Handles a closing tag that comes after the answer and belongs to an element the answer interrupted.
    pub(super) fn handle_late_close(&mut self, name: ThinkingMlElement) {
        if let LateClose::Interrupted { is_phase_open, is_thinking_open } = &mut self.late_close {
            match name {
                ThinkingMlElement::Phase => *is_phase_open = false,
                _ => *is_thinking_open = false,
            }
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        let position_bytes = match &self.position {
            ThinkingPosition::Untitled { text, .. } => text.len(),
            // The title itself is emitted whole, so it does not count.
            ThinkingPosition::Title { before, .. } => before.len(),
            ThinkingPosition::Direct | ThinkingPosition::Text => 0,
        };
        self.entities.held_bytes() + position_bytes + self.held_final.len()
    }

    /// Returns whether text is emitted at once as text of the phase, so that its place is not needed.
    #[inline]
    pub(super) fn can_pass(&self) -> bool {
        matches!(self.position, ThinkingPosition::Text) && self.held_final.is_none()
    }

    /// Emits text of the phase.
    #[inline]
    pub(super) fn pass(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.entities.push(text, &mut |text| out.emit_intent(Intent::PhaseText(text)));
    }

    /// Ends a run of text.
    pub(super) fn flush(&mut self, out: &mut dyn IntentSink) {
        self.entities.flush(&mut |text| out.emit_intent(Intent::PhaseText(text)));
    }

    /// Handles the next token.
    pub(super) fn push_token<'a>(
        &mut self,
        token: MarkupToken<'a>,
        at: Place,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> ThinkingOutcome<'a> {
        if !matches!(token, MarkupToken::Text(_)) {
            self.flush(out);
        }
        match self.held_final {
            HeldFinal::None => {}
            HeldFinal::LineStart { .. } => return self.resolve_line_start((token, at), context, out),
            HeldFinal::Early(_) => return self.push_held_token(token, at, context, out),
        }
        match token {
            MarkupToken::Text(_) | MarkupToken::Reasoning(..) => {}
            MarkupToken::Tag(tag) => return self.handle_tag(&tag, at, context, out),
            MarkupToken::CommentOpen => self.is_in_comment = true,
            MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => self.is_in_comment = false,
            MarkupToken::Mark(_) => context::report_embedded_marker(at, "kept as text", out),
        }
        self.push_text(token.raw(), at, out);
        ThinkingOutcome::Open
    }

    /// Emits text after a phase outside of `<thinking>` as text of that phase, because thinking continues or
    /// the answer begins. `is_blank` is set if the text is only white space.
    pub(super) fn emit_loose_text<'a>(
        &mut self,
        runs: impl Iterator<Item = (&'a str, Place)>,
        is_blank: bool,
        out: &mut dyn IntentSink,
    ) {
        self.is_stray_reported = false;
        if !is_blank {
            out.emit_intent(Intent::PhaseText("\n"));
        }
        for (text, at) in runs {
            self.push_stray_text(text, at, out);
        }
        self.flush(out);
    }

    /// Closes open elements at the end of the input.
    pub(super) fn close(&mut self, end: Place, out: &mut dyn IntentSink) {
        if self.position != ThinkingPosition::Direct {
            context::report_unclosed(ThinkingMlElement::Phase, self.phase_start, end.offset, out);
            self.end_phase(end, out);
        }
        if self.is_open() {
            context::report_unclosed(ThinkingMlElement::Thinking, self.start, end.offset, out);
        }
        self.end_thinking(out);
    }

    /// Reports elements that the answer interrupted and that were not closed after it.
    pub(super) fn report_interrupted(&self, end: Place, out: &mut dyn IntentSink) {
        let LateClose::Interrupted { is_phase_open, is_thinking_open } = self.late_close else { return };
        if is_phase_open {
            context::report_unclosed(ThinkingMlElement::Phase, self.phase_start, end.offset, out);
        }
        if is_thinking_open {
            context::report_unclosed(ThinkingMlElement::Thinking, self.start, end.offset, out);
        }
    }

    /// Reports a missing `</thinking>` that `<final>` replaced.
    pub(super) fn report_missing_close(&mut self, end: Place, out: &mut dyn IntentSink) {
        if self.take_missing_close() {
            context::report_unclosed(ThinkingMlElement::Thinking, self.start, end.offset, out);
        }
    }

    /// Handles a tag.
    fn handle_tag<'a>(
        &mut self,
        tag: &MarkupTag<'_>,
        at: Place,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> ThinkingOutcome<'a> {
        let len = tag.raw.len();
        let is_closing = tag.kind == TagKind::Close;
        let element = structure::find_element(tag.name);
        if self.is_in_comment {
            // In a comment only the end of an open element counts, so that an unclosed comment swallows
            // nothing.
            let is_end = match element {
                Some((ThinkingMlElement::Phase, _)) => {
                    is_closing && self.position != ThinkingPosition::Direct
                }
                Some((ThinkingMlElement::Title, _)) => {
                    is_closing && matches!(self.position, ThinkingPosition::Title { .. })
                }
                Some((ThinkingMlElement::Thinking, _)) => is_closing,
                _ => false,
            };
            if !is_end {
                self.push_text(tag.raw, at, out);
                return ThinkingOutcome::Open;
            }
            self.is_in_comment = false;
        }
        let Some((name, is_exact)) = element else {
            let message = format!("`{}` is not a tag of ThinkingML", tag.name);
            let report = FindingReport::new(rules::UNEXPECTED_TAG, at, at.offset + len, message);
            out.report(report.with_row("T-037").with_repair("kept as text"));
            self.push_text(tag.raw, at, out);
            return ThinkingOutcome::Open;
        };
        let is_in_phase = self.position != ThinkingPosition::Direct;
        let mut outcome = ThinkingOutcome::Open;
        // Element, and whether the tag closes it.
        match (name, is_closing) {
            (ThinkingMlElement::Thinking, true) if self.replay == ThinkingReplay::MentionAsText => {
                self.keep_tag_as_text(rules::TAG_MISPLACED, tag, at, out);
            }
            (ThinkingMlElement::Thinking, true) => {
                context::check_tag(name, is_exact, tag, at, out);
                if is_in_phase {
                    context::report_unclosed(ThinkingMlElement::Phase, self.phase_start, at.offset, out);
                    self.end_phase(at, out);
                }
                self.end_thinking(out);
                if self.is_open() {
                    self.state = ThinkingState::Closed;
                }
                outcome = ThinkingOutcome::TopLevel;
            }
            (ThinkingMlElement::Phase, false) => {
                context::check_tag(name, is_exact, tag, at, out);
                if is_in_phase {
                    context::report_at(
                        rules::PHASE_NESTED,
                        at,
                        len,
                        "a phase begins inside a phase",
                        "outer phase closed first",
                        out,
                    );
                    self.nested_count += 1;
                    self.end_phase(at, out);
                }
                self.begin_phase(tag, at, out);
                if tag.kind == TagKind::SelfClosing {
                    self.end_phase(at, out);
                }
            }
            (ThinkingMlElement::Phase, true) if is_in_phase => {
                context::check_tag(name, is_exact, tag, at, out);
                self.end_phase(at, out);
                if self.is_at_top_level() {
                    outcome = ThinkingOutcome::TopLevel;
                }
            }
            (ThinkingMlElement::Phase, true) if self.nested_count > 0 => {
                context::check_tag(name, is_exact, tag, at, out);
                self.nested_count -= 1;
            }
            (ThinkingMlElement::Title, _) if is_in_phase => self.handle_title_tag(is_exact, tag, at, out),
            (ThinkingMlElement::Final, false) if !is_in_phase => {
                outcome = self.handle_direct_final(is_exact, tag, at, context, out);
            }
            (ThinkingMlElement::Final, false) => self.handle_phase_final(tag, at, context, out),
            (ThinkingMlElement::Final, true) => {
                self.keep_tag_as_text(rules::FINAL_LITERAL_IN_THINKING, tag, at, out)
            }
            (ThinkingMlElement::Serp, false) if !is_in_phase => {
                self.is_stray_reported = false;
                outcome = ThinkingOutcome::Summary;
            }
            (ThinkingMlElement::Thinking, false)
                if !is_in_phase && self.first_phase == FirstPhase::Absent =>
            {
                context::report_at(
                    rules::THINKING_DUPLICATE,
                    at,
                    len,
                    "`<thinking>` is opened twice",
                    "left out",
                    out,
                );
            }
            (ThinkingMlElement::Thinking, false) => {
                self.keep_tag_as_text(rules::THINKING_DUPLICATE, tag, at, out)
            }
            _ => self.keep_tag_as_text(rules::TAG_MISPLACED, tag, at, out),
        }
        self.is_stray_reported &= !matches!(name, ThinkingMlElement::Phase | ThinkingMlElement::Thinking);
        outcome
    }

    /// Emits a tag as text and reports it.
    fn keep_tag_as_text(
        &mut self,
        rule: &'static Rule,
        tag: &MarkupTag<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let message = format!("`{}` is not allowed here", tag.raw);
        context::report_at(rule, at, tag.raw.len(), message, "kept as text", out);
        self.push_reported_text(tag.raw, at, out);
    }
}
