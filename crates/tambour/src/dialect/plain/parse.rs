//! Tokens to reasoning and answer.

use super::late::LateLines;
use super::rules;
use crate::dialect::{Intent, MARKER, Output};
use crate::event::AsideKind;
use crate::finding::Report;
use crate::lex::code::{CodeFilter, Piece};
use crate::lex::markup::{TagKind, Token};
use crate::lex::space::{is_blank, is_space};
use crate::options::{Options, PlainReasoning};
use crate::span::Place;

/// Names under which models write reasoning. `thinking` counts only at the start: later it begins a structure.
const NAMES: [&str; 3] = ["think", "reasoning", "thinking"];

/// Bytes kept until it is known what the start of a reply is.
const PENDING: usize = 1023;

pub(super) struct Reader {
    part: Part,
    mode: PlainReasoning,
    /// Whether `auto` chose this dialect.
    detected: bool,
    reported_late: bool,
    late: LateLines,
    filter: CodeFilter<Mark>,
    /// Most bytes the filter holds.
    line: usize,
    /// Name of the tag the reasoning or aside opened with.
    opened: String,
    opened_at: Place,
    /// `<thinking>` or the failure marker at the start and the white space after it, until the next token tells
    /// what it is.
    pending: Option<(String, Place)>,
    in_comment: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Only white space so far.
    Start,
    /// In leading reasoning.
    Reasoning,
    /// In the answer.
    Answer,
    /// In a later `<think>`.
    Aside,
}

/// A tag that matters unless it is code.
#[derive(Clone, Debug)]
struct Mark {
    at: Place,
    name: String,
    close: bool,
}

impl Reader {
    pub(super) fn new(options: &Options, detected: bool) -> Reader {
        let mode = options.plain_reasoning;
        let part = if mode == PlainReasoning::Open { Part::Reasoning } else { Part::Start };
        Reader {
            part,
            mode,
            detected,
            reported_late: false,
            late: LateLines::new(),
            filter: CodeFilter::new(options.limits.line),
            line: options.limits.line,
            opened: String::new(),
            opened_at: Place::START,
            pending: None,
            in_comment: false,
        }
    }

    #[inline]
    pub(super) fn token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.pending.is_some() && self.pending_tag(&token, at, out) {
            return;
        }
        match (self.part, token) {
            (Part::Answer, Token::Text(text)) => self.answer(text, at, out),
            (Part::Reasoning, Token::Text(text)) => out.intent(Intent::PhaseText(text)),
            (Part::Aside, Token::Text(text)) => out.intent(Intent::Aside { kind: AsideKind::Thought, text }),
            (Part::Start, Token::Text(text)) => {
                // A byte order mark is no text, nor is the white space around it.
                let body = text.trim_start_matches(['\u{FEFF}', ' ', '\t', '\r', '\n']);
                if !body.is_empty() {
                    self.part = Part::Answer;
                    self.answer(body, at.after(&text[..text.len() - body.len()]), out);
                }
            }
            (_, Token::Tag(tag)) => {
                let close = tag.kind == TagKind::Close;
                self.tag(tag.raw, Mark { at, name: tag.name.to_owned(), close }, out);
            }
            (Part::Start, Token::Mark(raw)) => self.pending = Some((raw.to_owned(), at)),
            (_, other) => {
                self.in_comment = matches!(other, Token::CommentOpen);
                self.token(Token::Text(other.raw()), at, out);
            }
        }
    }

    fn tag(&mut self, raw: &str, mark: Mark, out: &mut dyn Output) {
        let reasoning = is_reasoning(&mark.name) && self.mode != PlainReasoning::None;
        match self.part {
            // It closes itself: reasoning without text.
            Part::Start if reasoning && raw.ends_with("/>") => {}
            Part::Start if reasoning && !mark.close => {
                if mark.name.eq_ignore_ascii_case("thinking") {
                    self.pending = Some((raw.to_owned(), mark.at));
                } else {
                    self.open(&mark, Part::Reasoning);
                }
            }
            Part::Start if reasoning => self.unopened(raw, mark.at, out),
            Part::Start => {
                self.part = Part::Answer;
                self.tag(raw, mark, out);
            }
            Part::Reasoning if reasoning && mark.close && self.closes(&mark.name) => {
                out.intent(Intent::ThinkingEnd);
                self.part = Part::Answer;
            }
            // A model whose template swallows the opening tag may write it all the same.
            Part::Reasoning if reasoning && !mark.close && self.opened.is_empty() => {
                self.open(&mark, Part::Reasoning)
            }
            Part::Reasoning => out.intent(Intent::PhaseText(raw)),
            Part::Aside if reasoning && mark.close && self.closes(&mark.name) => self.part = Part::Answer,
            Part::Aside => out.intent(Intent::Aside { kind: AsideKind::Thought, text: raw }),
            Part::Answer => {
                let counts = is_late_reasoning(&mark.name) && self.mode != PlainReasoning::None
                    || (self.detected && !self.reported_late && is_structure(&mark.name));
                if counts && !self.in_comment {
                    self.filtered(|filter, pieces| filter.tag(raw, mark, pieces), out);
                } else {
                    self.answer(raw, mark.at, out);
                }
            }
        }
    }

    fn closes(&self, name: &str) -> bool {
        self.opened.is_empty() || self.opened.eq_ignore_ascii_case(name)
    }

    fn open(&mut self, mark: &Mark, part: Part) {
        self.part = part;
        self.opened.clone_from(&mark.name);
        self.opened_at = mark.at;
    }

    /// After a leading `<thinking>`: reasoning, unless a phase follows. Whether the token is used up.
    fn pending_tag(&mut self, token: &Token<'_>, here: Place, out: &mut dyn Output) -> bool {
        let Some((mut raw, at)) = self.pending.take() else { return false };
        if raw.starts_with(MARKER) {
            // Any amount of white space may follow the marker; not all of it is kept.
            let text = if let Token::Text(text) = token { *text } else { "" };
            let rest = text.trim_start_matches(is_space);
            let blanks = text.len() - rest.len();
            raw.push_str(&text[..blanks.min(PENDING - raw.len())]);
            if matches!(token, Token::Text(_)) && rest.is_empty() {
                self.pending = Some((raw, at));
                return true;
            }
            self.part = Part::Answer;
            self.answer(&raw, at, out);
            if !rest.is_empty() {
                self.answer(rest, here.after(&text[..blanks]), out);
            }
            return !rest.is_empty();
        }
        let mark = Mark { at, name: "thinking".to_owned(), close: false };
        match token {
            Token::Text(text) if is_blank(text) && raw.len() + text.len() <= PENDING => {
                raw.push_str(text);
                self.pending = Some((raw, at));
                return true;
            }
            Token::Tag(tag) if tag.name.eq_ignore_ascii_case("phase") => {
                self.part = Part::Answer;
                self.answer(&raw, at, out);
            }
            _ => self.open(&mark, Part::Reasoning),
        }
        false
    }

    #[inline]
    fn answer(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        if self.filter.held() > 0 {
            return self.waiting(text, at, out);
        }
        if self.detected && !self.reported_late {
            self.late_lines(text, at, out);
        }
        // Nothing waits: text passes without the detour.
        self.filter.text(text, &mut |piece| {
            if let Piece::Text(text) = piece {
                out.intent(Intent::FinalText(text));
            }
        });
    }

    /// Text of the answer while tags wait: it goes on in pieces that end where those may be decided, since what
    /// follows an opened aside is no Markdown of the answer.
    fn waiting(&mut self, mut text: &str, mut at: Place, out: &mut dyn Output) {
        while self.part == Part::Answer && self.filter.held() > 0 && !text.is_empty() {
            let room = self.line.saturating_sub(self.filter.held());
            let room = text.floor_char_boundary(room).max(text.chars().next().map_or(0, char::len_utf8));
            let len = memchr::memchr(b'\n', &text.as_bytes()[..room]).map_or(room, |end| end + 1);
            let (piece, rest) = text.split_at(len);
            if self.detected && !self.reported_late {
                self.late_lines(piece, at, out);
            }
            self.filtered(|filter, pieces| filter.text(piece, pieces), out);
            (text, at) = (rest, at.after(piece));
        }
        if !text.is_empty() {
            self.token(Token::Text(text), at, out);
        }
    }

    /// Runs the code filter and carries out what it lets through.
    fn filtered(
        &mut self,
        run: impl FnOnce(&mut CodeFilter<Mark>, &mut dyn FnMut(Piece<'_, Mark>)),
        out: &mut dyn Output,
    ) {
        let mut pieces: Vec<(String, Option<(Mark, bool)>)> = Vec::new();
        run(&mut self.filter, &mut |piece| match piece {
            Piece::Text(text) => pieces.push((text.to_owned(), None)),
            Piece::Tag(raw, mark, in_code) => pieces.push((raw.to_owned(), Some((mark, in_code)))),
        });
        for (text, mark) in pieces {
            match mark {
                Some((mark, in_code)) => self.decided(&text, mark, in_code, out),
                None if self.part == Part::Aside => {
                    out.intent(Intent::Aside { kind: AsideKind::Thought, text: &text });
                }
                None => out.intent(Intent::FinalText(&text)),
            }
        }
    }

    /// A tag in the answer, now that it is known whether it is code.
    fn decided(&mut self, raw: &str, mark: Mark, in_code: bool, out: &mut dyn Output) {
        if self.part == Part::Aside {
            return self.tag(raw, mark, out);
        }
        if in_code {
            return out.intent(Intent::FinalText(raw));
        }
        if !is_late_reasoning(&mark.name) || self.mode == PlainReasoning::None {
            self.late(raw, mark.at, out);
            return out.intent(Intent::FinalText(raw));
        }
        if mark.close {
            return self.unopened(raw, mark.at, out);
        }
        let message = format!("`{raw}` stands in the answer");
        let report = Report::new(rules::THINK_IN_ANSWER, mark.at, mark.at.offset + raw.len(), message);
        out.report(report.repaired("taken out of the answer"));
        if !raw.ends_with("/>") {
            self.open(&mark, Part::Aside);
        }
    }

    /// A structure that begins when the reply has been taken for plain.
    fn late(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        if self.detected && !self.reported_late && is_structure(raw.trim_matches(['<', '>', '/'])) {
            self.reported_late = true;
            let message = format!("`{raw}` begins a structure after the reply was taken for plain text");
            let report = Report::new(rules::STRUCTURE_LATE, at, at.offset + raw.len(), message);
            out.report(report.repaired("kept as text"));
        }
    }

    /// Lines of events that begin when the reply has been taken for plain.
    fn late_lines(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        if let Some(found) = self.late.find(text) {
            self.reported_late = true;
            let place = at.after(&text[..found]);
            let message = "events begin after the reply was taken for plain text";
            out.report(
                Report::new(rules::STRUCTURE_LATE, place, place.offset + 1, message).repaired("kept as text"),
            );
        }
    }

    fn unopened(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        let report =
            Report::new(rules::THINK_UNOPENED, at, at.offset + raw.len(), format!("`{raw}` closes nothing"));
        out.report(report.repaired("left out"));
    }

    /// Reasoning from a field of its own.
    pub(super) fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        match self.part {
            Part::Start | Part::Reasoning => out.intent(Intent::PhaseText(text)),
            Part::Answer | Part::Aside => out.intent(Intent::Aside { kind: AsideKind::Thought, text }),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.filter.held() + self.pending.as_ref().map_or(0, |(raw, _)| raw.len())
    }

    /// Whether an unfinished token at the very end is the beginning of the closing tag that is due.
    pub(super) fn is_half_tag(&self, carry: &str) -> bool {
        let due = matches!(self.part, Part::Reasoning | Part::Aside);
        let name = if self.opened.is_empty() { "think" } else { &self.opened };
        due && carry.len() >= 2 && format!("</{name}>").starts_with(carry)
    }

    pub(super) fn half_tag(&mut self, len: usize, at: Place, out: &mut dyn Output) {
        let report =
            Report::new(rules::THINK_UNCLOSED, at, at.offset + len, "the reply ends inside the closing tag");
        out.report(report.repaired("left out"));
    }

    pub(super) fn finish(&mut self, end: Place, out: &mut dyn Output) {
        if let Some((raw, at)) = self.pending.take() {
            if raw.starts_with(MARKER) {
                let message = "the model declared that it cannot answer";
                let report = Report::new(rules::PARSING_ERROR_MARKER, at, at.offset + MARKER.len(), message);
                out.report(report.repaired("fallback text"));
                return out.fall_back("parsing_error");
            }
            let mark = Mark { at, name: "thinking".to_owned(), close: false };
            self.open(&mark, Part::Reasoning);
            out.intent(Intent::PhaseText(&raw["<thinking>".len()..]));
        }
        self.filtered(|filter, pieces| filter.finish(pieces), out);
        if matches!(self.part, Part::Reasoning | Part::Aside) {
            let at = self.opened_at;
            let report = Report::new(rules::THINK_UNCLOSED, at, end.offset, "reasoning is not closed");
            out.report(report.repaired("closed at the end"));
        }
    }
}

fn is_reasoning(name: &str) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn is_late_reasoning(name: &str) -> bool {
    NAMES[..2].iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn is_structure(name: &str) -> bool {
    matches!(name, "thinking" | "serp" | "final" | "phase")
}
