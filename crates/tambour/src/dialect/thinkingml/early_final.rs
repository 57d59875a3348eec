//! `<final>` before `</thinking>`: a closing tag that was forgotten, a remark, or the answer.

use super::context;
use super::context::Line;
use super::parse::{Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use super::think::Quote;
use super::thinking::{Hold, Part};
use crate::dialect::{MARKER, Output};
use crate::finding::Profile;
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::span::Place;

impl Reader {
    /// `<final>` directly in `<thinking>`: its closing tag was forgotten, unless it is mentioned in the middle of a
    /// line and another one comes at the start of one (R-75).
    pub(super) fn final_in_thinking(&mut self, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        if self.thinking.again {
            self.literal(rules::FINAL_LITERAL_IN_THINKING, tag, at, out);
        } else if self.context.line == Line::Text {
            self.hold_from(tag.raw, at, true);
        } else {
            self.forgotten_close(exact, tag, at, out);
        }
    }

    fn forgotten_close(&mut self, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let message = "`<final>` begins before `</thinking>`";
        context::report(
            rules::FINAL_INSIDE_THINKING,
            at,
            tag.raw.len(),
            message,
            "`<thinking>` closed first",
            out,
        );
        self.end_thinking(out);
        self.thinking.forgotten = true;
        self.mode = Mode::Outside;
        context::check_tag(Name::Final, exact, tag, at, out);
        self.begin(Name::Final, at, tag.raw.len(), out);
    }

    /// `<final>` in an open phase: text, unless no real one comes.
    pub(super) fn final_in_phase(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let mentioned = self.context.line == Line::Text;
        if self.thinking.again || self.thinking.literal && mentioned {
            return self.literal(rules::FINAL_LITERAL_IN_THINKING, tag, at, out);
        }
        if self.context.own.lone_final_closes
            && self.context.options.profile == Profile::Lenient
            && self.context.line_blank()
        {
            self.thinking.lone = Some((tag.raw.to_owned(), at));
            return;
        }
        self.hold_from(tag.raw, at, mentioned);
    }

    fn hold_from(&mut self, raw: &str, at: Place, mentioned: bool) {
        let direct = self.thinking.part == Part::Direct;
        self.thinking.hold = Some(Hold {
            raw: raw.to_owned(),
            tag_len: raw.len(),
            at,
            mentioned,
            direct,
            closed_phase: direct,
            closed_thinking: false,
        });
        self.in_comment = false;
    }

    /// After `<final>` at the start of a line: whether the line holds nothing else.
    pub(super) fn lone_final(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
        let Some((mut raw, start)) = self.thinking.lone.take() else { return false };
        if let Token::Text(text) = token {
            let blanks = text.len() - text.trim_start_matches([' ', '\t', '\r']).len();
            // Blanks at the end of the line are not kept without limit.
            let blanks = blanks.min(self.context.options.limits.line.saturating_sub(raw.len()));
            raw.push_str(&text[..blanks]);
            if blanks == text.len() {
                self.thinking.lone = Some((raw, start));
                return true;
            }
            if text[blanks..].starts_with('\n') {
                self.close_at_lone_final(start, out);
                let rest = &text[blanks..];
                self.token(Token::Text(rest), at.after(&text[..blanks]), out);
                return true;
            }
            raw.truncate(raw.len() - blanks);
        }
        let tag_len = raw.trim_end().len();
        let blanks = raw.split_off(tag_len);
        self.hold_from(&raw, start, false);
        if !blanks.is_empty() {
            self.held_token(Token::Text(&blanks), start.after(&raw), out);
        }
        self.thinking_token(*token, at, out);
        true
    }

    pub(super) fn close_at_lone_final(&mut self, at: Place, out: &mut dyn Output) {
        context::unclosed(Name::Phase, self.thinking.phase_at, at.offset, out);
        self.end_phase(at, out);
        let message = "`<final>` begins before `</thinking>`";
        context::report(
            rules::FINAL_INSIDE_THINKING,
            at,
            "<final>".len(),
            message,
            "`<thinking>` closed first",
            out,
        );
        self.end_thinking(out);
        self.thinking.forgotten = self.thinking.open;
        self.mode = Mode::Outside;
        self.begin(Name::Final, at, "<final>".len(), out);
    }

    /// A token after a `<final>` that may be only text.
    pub(super) fn held_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(hold) = &mut self.thinking.hold else { return };
        match token {
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose => self.in_comment = false,
            Token::Tag(tag) => {
                let close = tag.kind == TagKind::Close;
                match structure::find(tag.name) {
                    Some((Name::Phase, _)) if close => hold.closed_phase = true,
                    Some((Name::Thinking, _)) if close => {
                        hold.closed_phase = true;
                        hold.closed_thinking = true;
                    }
                    // Thinking goes on, or the real answer begins: it was text.
                    Some((Name::Phase, _)) if !self.in_comment => return self.release(token, at, out),
                    Some((Name::Final, _)) if !close && !self.in_comment => {
                        let closed = if hold.direct { hold.closed_thinking } else { hold.closed_phase };
                        if closed || hold.mentioned && self.context.line != Line::Text {
                            return self.release(token, at, out);
                        }
                    }
                    _ => {}
                }
            }
            Token::Text(_) | Token::Mark(_) | Token::Reasoning(..) => {}
        }
        let raw = token.raw();
        let room = self.context.options.limits.hold.saturating_sub(hold.raw.len());
        if raw.len() > room {
            // Text is cut at the limit itself, so that the result does not depend on the chunks.
            let (kept, token) = match token {
                Token::Text(text) => {
                    let (kept, rest) = text.split_at(text.floor_char_boundary(room));
                    (kept, Token::Text(rest))
                }
                token => ("", token),
            };
            hold.raw.push_str(kept);
            let at = at.after(kept);
            if hold.direct {
                // None came at the start of a line: it is the answer.
                self.accept(out);
                return self.token(token, at, out);
            }
            let message = "more text after `<final>` in a phase than `limits.hold`";
            context::report(rules::LIMIT_EXCEEDED, at, 0, message, "read as text of the phase", out);
            return self.release(token, at, out);
        }
        hold.raw.push_str(raw);
    }

    /// The held text is text of the phase; goes on with `token`.
    pub(super) fn release(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(hold) = self.thinking.hold.take() else { return };
        self.thinking.again = true;
        self.in_comment = false;
        self.replay(&hold.raw, hold.at, out);
        self.thinking.again = false;
        // Once thinking went on, a mention in the rest of the phase is text.
        self.thinking.literal = self.thinking.part != Part::Direct;
        if let Some(end) = hold.raw.to_ascii_lowercase().find("</final>") {
            // What follows it has been told as text of the phase.
            let raw = hold.raw[..end + "</final>".len()].to_owned();
            self.thinking.quoted = Some(Hold { raw, ..hold });
        }
        self.token(token, at, out);
    }

    /// Reads text again, now that it is known what it is.
    pub(super) fn replay(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        let mut lexer = Markup::at(at, MARKER, self.context.options.limits.tag);
        lexer.push(raw, &mut |token, at| self.token(token, at, out));
        lexer.finish(&mut |token, at| self.token(token, at, out));
    }

    /// The input ends: a held `<final>` was the answer after all.
    pub(super) fn thinking_end_of_input(&mut self, end: Place, out: &mut dyn Output) {
        if let Some((raw, at)) = self.thinking.lone.take() {
            self.hold_from(raw.trim_end(), at, false);
        }
        self.accept(out);
        if self.thinking.phase_open_late {
            context::unclosed(Name::Phase, self.thinking.phase_at, end.offset, out);
        }
        if self.thinking.thinking_open_late {
            context::unclosed(Name::Thinking, self.thinking.at, end.offset, out);
        }
    }

    /// A held `<final>` is the answer.
    fn accept(&mut self, out: &mut dyn Output) {
        let Some(hold) = self.thinking.hold.take() else { return };
        let place = if hold.direct { "`<thinking>`" } else { "a phase" };
        let message = format!("`<final>` begins inside {place}");
        let at = hold.at;
        context::report(rules::FINAL_INSIDE_THINKING, at, hold.tag_len, message, "read as the answer", out);
        self.check_held(&hold, out);
        self.end_phase(at, out);
        self.end_thinking(out);
        self.thinking.phase_open_late = !hold.closed_phase;
        self.thinking.thinking_open_late = !hold.closed_thinking && self.thinking.open;
        self.mode = Mode::Outside;
        self.answer.interrupt();
        self.begin(Name::Final, at, hold.tag_len, out);
        self.replay(&hold.raw[hold.tag_len..], at.after(&hold.raw[..hold.tag_len]), out);
    }

    /// Checks the `<final>` that was held.
    fn check_held(&mut self, hold: &Hold, out: &mut dyn Output) {
        let mut lexer = Markup::at(hold.at, MARKER, self.context.options.limits.tag);
        lexer.push(&hold.raw[..hold.tag_len], &mut |token, at| {
            if let Token::Tag(tag) = token
                && let Some((name, exact)) = structure::find(tag.name)
            {
                context::check_tag(name, exact, &tag, at.get(), out);
            }
        });
    }

    /// No answer came, but a phase held a whole one: it is the answer too. Whether there was one.
    pub(super) fn quoted_answer(&mut self, out: &mut dyn Output) -> bool {
        let Some(hold) = self.thinking.quoted.take() else { return false };
        self.answer.interrupt();
        self.answer_too("a phase", Quote { raw: hold.raw, tag_len: hold.tag_len, at: hold.at }, out);
        true
    }

    /// `<final>` that has been told as text of `place` is the answer too.
    pub(super) fn answer_too(&mut self, place: &str, quote: Quote, out: &mut dyn Output) {
        let Quote { raw, tag_len, at } = quote;
        let message = format!("`<final>` begins inside {place}, and no other one comes");
        context::report(rules::FINAL_INSIDE_THINKING, at, raw.len(), message, "read as the answer too", out);
        self.mode = Mode::Outside;
        self.begin(Name::Final, at, tag_len, out);
        self.replay(&raw[tag_len..], at.after(&raw[..tag_len]), out);
    }

    /// Whether `</thinking>` never came although `<final>` did.
    pub(super) fn thinking_left_open(&mut self, end: Place, out: &mut dyn Output) {
        if std::mem::take(&mut self.thinking.forgotten) {
            context::unclosed(Name::Thinking, self.thinking.at, end.offset, out);
        }
    }
}
