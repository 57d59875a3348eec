//! `<final>` before `</thinking>`: a forgotten closing tag, a mention, or the answer.

use super::super::context::{self, Context, Line, Quote};
use super::super::rules;
use super::super::structure::{self, Name};
use super::{Outcome, Part, Thinking};
use crate::dialect::{MARKER, Output};
use crate::finding::Profile;
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::span::Place;

/// A `<final>` inside `<thinking>`, and everything after it.
pub(in super::super) struct EarlyFinal {
    quote: Quote,
    /// Set if it is in the middle of a line, so that one at the start of a line takes precedence.
    mentioned: bool,
    /// Set if it is directly in `<thinking>`.
    direct: bool,
    closed_phase: bool,
    closed_thinking: bool,
}

impl EarlyFinal {
    pub(super) fn len(&self) -> usize {
        self.quote.raw.len()
    }

    /// Returns the held text and its place.
    pub(in super::super) fn text(&self) -> (&str, Place) {
        (&self.quote.raw, self.quote.at)
    }
}

impl Thinking {
    /// Handles `<final>` directly in `<thinking>`: the closing tag was forgotten, unless it is
    /// mentioned in the middle of a line and another one follows at the start of a line.
    pub(super) fn final_in_thinking<'a>(
        &mut self,
        exact: bool,
        tag: &Tag<'_>,
        at: Place,
        context: &Context,
        out: &mut dyn Output,
    ) -> Outcome<'a> {
        if self.again {
            self.literal(rules::FINAL_LITERAL_IN_THINKING, tag, at, out);
            return Outcome::Open;
        }
        if context.line == Line::Text {
            self.hold_from(tag.raw, at, true);
            return Outcome::Open;
        }
        let len = tag.raw.len();
        self.close_at_final(at, len, out);
        self.forgotten = true;
        context::check_tag(Name::Final, exact, tag, at, out);
        Outcome::Final { at, len, rest: None }
    }

    /// Closes `<thinking>` at `<final>`.
    fn close_at_final(&mut self, at: Place, len: usize, out: &mut dyn Output) {
        let message = "`<final>` begins before `</thinking>`";
        let repair = "`<thinking>` closed first";
        context::report(rules::FINAL_INSIDE_THINKING, at, len, message, repair, out);
        self.end_thinking(out);
    }

    /// Handles `<final>` in an open phase: text, unless no real one follows.
    pub(super) fn final_in_phase(
        &mut self,
        tag: &Tag<'_>,
        at: Place,
        context: &Context,
        out: &mut dyn Output,
    ) {
        let mentioned = context.line == Line::Text;
        if self.again || self.literal && mentioned {
            return self.literal(rules::FINAL_LITERAL_IN_THINKING, tag, at, out);
        }
        let lenient = context.options.profile == Profile::Lenient;
        if context.own.lone_final_closes && lenient && context.line_blank() {
            self.lone = Some((tag.raw.to_owned(), at));
            return;
        }
        self.hold_from(tag.raw, at, mentioned);
    }

    fn hold_from(&mut self, raw: &str, at: Place, mentioned: bool) {
        let direct = self.part == Part::Direct;
        let quote = Quote { raw: raw.to_owned(), tag_len: raw.len(), at };
        self.hold =
            Some(EarlyFinal { quote, mentioned, direct, closed_phase: direct, closed_thinking: false });
        self.in_comment = false;
    }

    /// Decides after `<final>` at the start of a line whether it is alone on the line.
    pub(super) fn lone_final<'a>(
        &mut self,
        mut raw: String,
        start: Place,
        (token, at): (Token<'a>, Place),
        context: &Context,
        out: &mut dyn Output,
    ) -> Outcome<'a> {
        if let Token::Text(text) = token {
            let blanks = text.len() - text.trim_start_matches([' ', '\t', '\r']).len();
            // Blanks at the end of the line are held up to a limit only.
            let blanks = blanks.min(context.options.limits.line.saturating_sub(raw.len()));
            raw.push_str(&text[..blanks]);
            if blanks == text.len() {
                self.lone = Some((raw, start));
                return Outcome::Open;
            }
            if text[blanks..].starts_with('\n') {
                let len = "<final>".len();
                context::unclosed(Name::Phase, self.phase_at, start.offset, out);
                self.end_phase(start, out);
                self.close_at_final(start, len, out);
                self.forgotten = self.open;
                let rest = (Token::Text(&text[blanks..]), at.after(&text[..blanks]));
                return Outcome::Final { at: start, len, rest: Some(rest) };
            }
            raw.truncate(raw.len() - blanks);
        }
        let tag_len = raw.trim_end().len();
        let blanks = raw.split_off(tag_len);
        self.hold_from(&raw, start, false);
        Outcome::Held { blanks: (blanks, start.after(&raw)), rest: (token, at) }
    }

    /// Handles a token after a `<final>` that may be only text.
    pub(super) fn held_token<'a>(
        &mut self,
        token: Token<'a>,
        at: Place,
        context: &Context,
        out: &mut dyn Output,
    ) -> Outcome<'a> {
        let Some(hold) = &mut self.hold else { return Outcome::Open };
        match token {
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose | Token::CommentEnd(_) => self.in_comment = false,
            Token::Tag(tag) => {
                let close = tag.kind == TagKind::Close;
                match structure::find(tag.name) {
                    Some((Name::Phase, _)) if close => hold.closed_phase = true,
                    Some((Name::Thinking, _)) if close => {
                        hold.closed_phase = true;
                        hold.closed_thinking = true;
                    }
                    // Thinking continues, or the real answer begins: the held tag was text.
                    Some((Name::Phase, _)) if !self.in_comment => return self.release((token, at)),
                    Some((Name::Final, _)) if !close && !self.in_comment => {
                        let closed = if hold.direct { hold.closed_thinking } else { hold.closed_phase };
                        if closed || hold.mentioned && context.line != Line::Text {
                            return self.release((token, at));
                        }
                    }
                    _ => {}
                }
            }
            Token::Text(_) | Token::Mark(_) | Token::Reasoning(..) => {}
        }
        let raw = token.raw();
        let room = context.options.limits.hold.saturating_sub(hold.len());
        if raw.len() <= room {
            hold.quote.raw.push_str(raw);
            return Outcome::Open;
        }
        // Text is cut at the limit itself, so that the result does not depend on the chunks.
        let (kept, token) = match token {
            Token::Text(text) => {
                let (kept, rest) = text.split_at(text.floor_char_boundary(room));
                (kept, Token::Text(rest))
            }
            token => ("", token),
        };
        hold.quote.raw.push_str(kept);
        let rest = (token, at.after(kept));
        if hold.direct
            && let Some(answer) = self.take_answer(context, out)
        {
            // None followed at the start of a line: it is the answer.
            return Outcome::Answer { answer, rest };
        }
        let message = "more text after `<final>` in a phase than `limits.hold`";
        context::report(rules::LIMIT_EXCEEDED, rest.1, 0, message, "read as text of the phase", out);
        self.release(rest)
    }

    /// Releases the held text as text of the phase.
    fn release<'a>(&mut self, rest: (Token<'a>, Place)) -> Outcome<'a> {
        let Some(hold) = self.hold.take() else { return Outcome::Open };
        self.again = true;
        self.in_comment = false;
        Outcome::Release { hold, rest }
    }

    /// Records that the held text was read again as text.
    pub(in super::super) fn released(&mut self, hold: EarlyFinal) {
        self.again = false;
        // Once thinking continued, a mention in the rest of the phase is text.
        self.literal = self.part != Part::Direct;
        let Quote { raw, tag_len, at } = hold.quote;
        if let Some(end) = raw.to_ascii_lowercase().find("</final>") {
            // Text after it was emitted as text of the phase.
            let raw = raw[..end + "</final>".len()].to_owned();
            self.quoted = Some(Quote { raw, tag_len, at });
        }
    }

    /// Ends the input: a held `<final>` was the answer after all.
    pub(in super::super) fn end_of_input(
        &mut self,
        context: &Context,
        out: &mut dyn Output,
    ) -> Option<Quote> {
        if let Some((raw, at)) = self.lone.take() {
            self.hold_from(raw.trim_end(), at, false);
        }
        self.take_answer(context, out)
    }

    /// Takes a held `<final>` as the answer, and closes open elements.
    fn take_answer(&mut self, context: &Context, out: &mut dyn Output) -> Option<Quote> {
        let EarlyFinal { quote, direct, closed_phase, closed_thinking, .. } = self.hold.take()?;
        let place = if direct { "`<thinking>`" } else { "a phase" };
        let message = format!("`<final>` begins inside {place}");
        let at = quote.at;
        context::report(rules::FINAL_INSIDE_THINKING, at, quote.tag_len, message, "read as the answer", out);
        check(&quote, context, out);
        self.end_phase(at, out);
        self.end_thinking(out);
        self.phase_open_late = !closed_phase;
        self.thinking_open_late = !closed_thinking && self.open;
        Some(quote)
    }

    /// Takes the complete `<final>` that a phase held: it is the answer too if no other one follows.
    pub(in super::super) fn take_quoted(&mut self) -> Option<Quote> {
        self.quoted.take()
    }
}

/// Checks the held `<final>` tag.
fn check(quote: &Quote, context: &Context, out: &mut dyn Output) {
    let mut lexer = Markup::at(quote.at, MARKER, context.options.limits.tag);
    lexer.push(&quote.raw[..quote.tag_len], &mut |token, at| {
        if let Token::Tag(tag) = token
            && let Some((name, exact)) = structure::find(tag.name)
        {
            context::check_tag(name, exact, &tag, at.get(), out);
        }
    });
}
