//! A `<final>` before `</thinking>`: the closing tag was forgotten, or thinking only mentions `<final>`, or
//! it is the answer after all.

use super::super::context::{self, LineContent, QuotedFinal, ReaderContext};
use super::super::rules;
use super::super::structure::{self, ThinkingMlElement};
use super::{LateClose, ThinkingOutcome, ThinkingPosition, ThinkingReader, ThinkingReplay};
use crate::dialect::{FAILURE_MARKER, IntentSink};
use crate::finding::Profile;
use crate::lex::markup::{MarkupLexer, MarkupTag, MarkupToken, TagKind};
use crate::span::Place;

/// A `<final>` before `</thinking>` that may be text.
#[derive(Default)]
pub(super) enum HeldFinal {
    /// Nothing is held.
    #[default]
    None,
    /// A tag at the start of a line, with the blanks after it, under `thinkingml.lone_final=close`. It is
    /// held until the line shows whether it is alone there.
    LineStart { raw: String, at: Place },
    /// A tag with everything after it.
    Early(EarlyFinal),
}

impl HeldFinal {
    #[inline]
    pub(super) fn is_none(&self) -> bool {
        matches!(self, HeldFinal::None)
    }

    /// Returns the bytes held.
    pub(super) fn len(&self) -> usize {
        match self {
            HeldFinal::None => 0,
            HeldFinal::LineStart { raw, .. } => raw.len(),
            HeldFinal::Early(early_final) => early_final.len(),
        }
    }
}

/// A `<final>` inside `<thinking>`, and everything after it.
pub(in super::super) struct EarlyFinal {
    /// The tag and everything after it.
    quote: QuotedFinal,
    /// Set if the `<final>` is in the middle of a line. Another one at the start of a line then takes
    /// precedence.
    is_mention: bool,
    /// Set if the `<final>` is directly in `<thinking>`, not in a phase.
    is_direct: bool,
    /// Elements around the `<final>` that are still open after the text held so far.
    open_elements: OpenElements,
}

/// Elements around a held `<final>` that are still open, the fewest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OpenElements {
    None,
    Thinking,
    ThinkingAndPhase,
}

impl EarlyFinal {
    fn len(&self) -> usize {
        self.quote.raw.len()
    }

    /// Returns whether the element directly around the `<final>` has closed.
    fn is_parent_closed(&self) -> bool {
        let parent = if self.is_direct { OpenElements::Thinking } else { OpenElements::ThinkingAndPhase };
        self.open_elements < parent
    }

    /// Returns the held text and its place.
    pub(in super::super) fn text(&self) -> (&str, Place) {
        (&self.quote.raw, self.quote.start)
    }
}

impl ThinkingReader {
    /// Handles `<final>` directly in `<thinking>`: the closing tag was forgotten, unless it is
    /// mentioned in the middle of a line and another `<final>` follows at the start of a line.
    pub(super) fn handle_direct_final<'a>(
        &mut self,
        is_exact: bool,
        tag: &MarkupTag<'_>,
        at: Place,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> ThinkingOutcome<'a> {
        if self.keeps_finals_as_text() {
            self.keep_tag_as_text(rules::FINAL_LITERAL_IN_THINKING, tag, at, out);
            return ThinkingOutcome::Open;
        }
        let is_mention = context.line == LineContent::Text;
        if is_mention {
            self.hold_final(tag.raw, at, is_mention);
            return ThinkingOutcome::Open;
        }
        let len = tag.raw.len();
        self.close_at_final(at, len, out);
        self.late_close = LateClose::Thinking;
        context::check_tag(ThinkingMlElement::Final, is_exact, tag, at, out);
        ThinkingOutcome::Final { at, len, rest: None }
    }

    /// Closes `<thinking>` at `<final>`.
    fn close_at_final(&mut self, at: Place, len: usize, out: &mut dyn IntentSink) {
        let message = "`<final>` begins before `</thinking>`";
        let repair = "`<thinking>` closed first";
        context::report_at(rules::FINAL_INSIDE_THINKING, at, len, message, repair, out);
        self.end_thinking(out);
    }

    /// Handles `<final>` in an open phase. It is text if thinking continues, or if a `<final>` that begins
    /// the answer follows.
    pub(super) fn handle_phase_final(
        &mut self,
        tag: &MarkupTag<'_>,
        at: Place,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) {
        let is_mention = context.line == LineContent::Text;
        if self.keeps_finals_as_text() || self.is_mention_text && is_mention {
            return self.keep_tag_as_text(rules::FINAL_LITERAL_IN_THINKING, tag, at, out);
        }
        let is_lenient = context.options.profile == Profile::Lenient;
        if context.dialect_options.closes_at_lone_final && is_lenient && context.is_line_blank() {
            self.held_final = HeldFinal::LineStart { raw: tag.raw.to_owned(), at };
            return;
        }
        self.hold_final(tag.raw, at, is_mention);
    }

    /// Begins to hold a `<final>` tag and everything after it.
    fn hold_final(&mut self, raw: &str, start: Place, is_mention: bool) {
        let is_direct = self.position == ThinkingPosition::Direct;
        let open_elements = if is_direct { OpenElements::Thinking } else { OpenElements::ThinkingAndPhase };
        let quote = QuotedFinal { raw: raw.to_owned(), tag_len: raw.len(), start };
        self.held_final = HeldFinal::Early(EarlyFinal { quote, is_mention, is_direct, open_elements });
        self.is_in_comment = false;
    }

    /// Decides after `<final>` at the start of a line whether it is alone on the line.
    pub(super) fn resolve_line_start<'a>(
        &mut self,
        (token, at): (MarkupToken<'a>, Place),
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> ThinkingOutcome<'a> {
        let HeldFinal::LineStart { mut raw, at: start } = std::mem::take(&mut self.held_final) else {
            return ThinkingOutcome::Open;
        };
        if let MarkupToken::Text(text) = token {
            let blank_len = text.len() - text.trim_start_matches([' ', '\t', '\r']).len();
            // Blanks at the end of the line are held only up to a limit.
            let blank_len = blank_len.min(context.options.limits.line.saturating_sub(raw.len()));
            raw.push_str(&text[..blank_len]);
            if blank_len == text.len() {
                self.held_final = HeldFinal::LineStart { raw, at: start };
                return ThinkingOutcome::Open;
            }
            if text[blank_len..].starts_with('\n') {
                let len = "<final>".len();
                context::report_unclosed(ThinkingMlElement::Phase, self.phase_start, start.offset, out);
                self.end_phase(start, out);
                self.close_at_final(start, len, out);
                if self.is_open() {
                    self.late_close = LateClose::Thinking;
                }
                let rest = (MarkupToken::Text(&text[blank_len..]), at.end_of(&text[..blank_len]));
                return ThinkingOutcome::Final { at: start, len, rest: Some(rest) };
            }
            // These blanks are read again with the rest of the token.
            raw.truncate(raw.len() - blank_len);
        }
        let tag_len = raw.trim_end().len();
        let blanks = raw.split_off(tag_len);
        let is_mention = false;
        self.hold_final(&raw, start, is_mention);
        ThinkingOutcome::FinalHeld { blanks: (blanks, start.end_of(&raw)), rest: (token, at) }
    }

    /// Handles a token after a `<final>` that may be only text.
    pub(super) fn push_held_token<'a>(
        &mut self,
        token: MarkupToken<'a>,
        at: Place,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> ThinkingOutcome<'a> {
        let HeldFinal::Early(early_final) = &mut self.held_final else { return ThinkingOutcome::Open };
        match token {
            MarkupToken::CommentOpen => self.is_in_comment = true,
            MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => self.is_in_comment = false,
            MarkupToken::Tag(tag) => {
                let is_closing = tag.kind == TagKind::Close;
                match structure::find_element(tag.name) {
                    Some((ThinkingMlElement::Phase, _)) if is_closing => {
                        early_final.open_elements = early_final.open_elements.min(OpenElements::Thinking);
                    }
                    Some((ThinkingMlElement::Thinking, _)) if is_closing => {
                        early_final.open_elements = OpenElements::None;
                    }
                    // Thinking continues, or the real answer begins: the held tag was text.
                    Some((ThinkingMlElement::Phase, _)) if !self.is_in_comment => {
                        return self.release_as_text((token, at));
                    }
                    Some((ThinkingMlElement::Final, _))
                        if !is_closing
                            && !self.is_in_comment
                            && (early_final.is_parent_closed()
                                || early_final.is_mention && context.line != LineContent::Text) =>
                    {
                        return self.release_as_text((token, at));
                    }
                    _ => {}
                }
            }
            MarkupToken::Text(_) | MarkupToken::Mark(_) | MarkupToken::Reasoning(..) => {}
        }
        let raw = token.raw();
        let room = context.options.limits.hold.saturating_sub(early_final.len());
        if raw.len() <= room {
            early_final.quote.raw.push_str(raw);
            return ThinkingOutcome::Open;
        }
        // Text is cut at the limit itself, so that the result does not depend on the chunks.
        let (fitting_text, token) = match token {
            MarkupToken::Text(text) => {
                let (fitting_text, rest) = text.split_at(text.floor_char_boundary(room));
                (fitting_text, MarkupToken::Text(rest))
            }
            token => ("", token),
        };
        early_final.quote.raw.push_str(fitting_text);
        let rest = (token, at.end_of(fitting_text));
        if early_final.is_direct
            && let Some(answer) = self.take_answer(context, out)
        {
            // No `<final>` followed at the start of a line: the held one is the answer.
            return ThinkingOutcome::Answer { answer, rest };
        }
        let message = "more text after `<final>` in a phase than `limits.hold` allows";
        context::report_at(rules::LIMIT_EXCEEDED, rest.1, 0, message, "read as text of the phase", out);
        self.release_as_text(rest)
    }

    /// Releases the held text, which is text of the phase.
    fn release_as_text<'a>(&mut self, rest: (MarkupToken<'a>, Place)) -> ThinkingOutcome<'a> {
        let Some(early_final) = self.take_early_final() else { return ThinkingOutcome::Open };
        self.replay = ThinkingReplay::ReleasedFinal;
        self.is_in_comment = false;
        ThinkingOutcome::Release { early_final, rest }
    }

    /// Records that the held text was read again as text.
    pub(in super::super) fn finish_release(&mut self, early_final: EarlyFinal) {
        self.replay = ThinkingReplay::None;
        // Since thinking continued after this mention, others in the rest of the phase are text at once.
        self.is_mention_text = self.position != ThinkingPosition::Direct;
        let QuotedFinal { raw, tag_len, start } = early_final.quote;
        if let Some(end) = raw.to_ascii_lowercase().find("</final>") {
            // Text after the closing tag was emitted as text of the phase and is not part of the answer.
            let raw = raw[..end + "</final>".len()].to_owned();
            self.quoted_final = Some(QuotedFinal { raw, tag_len, start });
        }
    }

    /// Ends the input: a held `<final>` was the answer after all.
    pub(in super::super) fn finish_held(
        &mut self,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> Option<QuotedFinal> {
        if let HeldFinal::LineStart { raw, at } = &mut self.held_final {
            let (raw, at) = (std::mem::take(raw), *at);
            let is_mention = false;
            self.hold_final(raw.trim_end(), at, is_mention);
        }
        self.take_answer(context, out)
    }

    /// Takes the held [`EarlyFinal`], if there is one.
    fn take_early_final(&mut self) -> Option<EarlyFinal> {
        match std::mem::take(&mut self.held_final) {
            HeldFinal::Early(early_final) => Some(early_final),
            held_final => {
                self.held_final = held_final;
                None
            }
        }
    }

    /// Takes a held `<final>` as the answer, and closes open elements.
    fn take_answer(&mut self, context: &ReaderContext, out: &mut dyn IntentSink) -> Option<QuotedFinal> {
        let EarlyFinal { quote, is_direct, open_elements, .. } = self.take_early_final()?;
        let parent = if is_direct { "`<thinking>`" } else { "a phase" };
        let message = format!("`<final>` begins inside {parent}");
        let at = quote.start;
        context::report_at(
            rules::FINAL_INSIDE_THINKING,
            at,
            quote.tag_len,
            message,
            "read as the answer",
            out,
        );
        check_final_tag(&quote, context, out);
        self.end_phase(at, out);
        self.end_thinking(out);
        self.late_close = LateClose::Interrupted {
            is_phase_open: open_elements == OpenElements::ThinkingAndPhase,
            is_thinking_open: open_elements != OpenElements::None && self.is_open(),
        };
        Some(quote)
    }

    /// Takes the last complete `<final>` in a phase: it is the answer too if no other one follows.
    pub(in super::super) fn take_quoted(&mut self) -> Option<QuotedFinal> {
        self.quoted_final.take()
    }
}

/// Reports faults of the held `<final>` tag itself.
fn check_final_tag(quote: &QuotedFinal, context: &ReaderContext, out: &mut dyn IntentSink) {
    let mut lexer = MarkupLexer::from_place(quote.start, FAILURE_MARKER, context.options.limits.tag);
    lexer.push(&quote.raw[..quote.tag_len], &mut |token, at| {
        if let MarkupToken::Tag(tag) = token
            && let Some((name, is_exact)) = structure::find_element(tag.name)
        {
            context::check_tag(name, is_exact, &tag, at.resolve(), out);
        }
    });
}
