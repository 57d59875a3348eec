//! The frame of a reply: what stands at the top level, and what ends it.

use super::answer::Answer;
use super::block::Block;
use super::outside::{Fence, Outside};
use super::rules;
use super::structure::{self, Name};
use super::thinking::Thinking;
use crate::dialect::MARKER;
use crate::dialect::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::lex::entity::{self, Entities};
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::repair::expected::Misfit;
use crate::span::Place;

/// Reads tokens. Each part of the reply has its own methods; `mode` says which part is under way.
pub(super) struct Reader {
    pub(super) mode: Mode,
    pub(super) options: Options,
    /// Top-level elements that have begun, in order.
    pub(super) seen: Vec<&'static str>,
    pub(super) outside: Outside,
    /// The fence around the reply.
    fence: Option<Fence>,
    pub(super) entities: Entities,
    /// Whether an HTML comment is open; its inside is text (T-027).
    pub(super) in_comment: bool,
    /// Whether only white space came since the last line break.
    pub(super) line_blank: bool,
    think_at: Place,
    /// `<thinking>` inside `<think>`, until the next token tells what it is.
    think_pending: Option<(String, Place)>,
    serp: Serp,
    pub(super) thinking: Thinking,
    pub(super) answer: Answer,
    /// The queries block under way, in or after the answer.
    pub(super) block: Option<Block>,
    /// Where the failure marker stands outside the elements.
    marker: Option<Place>,
    /// Elements that were open at the end of the input.
    pub(super) open_at_end: bool,
}

/// Where the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Before, between or after the elements.
    Outside,
    Think,
    Serp,
    /// Directly in `<thinking>`, or in one of its phases.
    Thinking,
    /// A second `<thinking>`: text of the last phase, up to its end (T-008).
    SecondThinking,
    Final,
    /// In an element that is left out, up to its end.
    Dropped(Name),
}

#[derive(Default)]
struct Serp {
    at: Place,
    text: String,
}

impl Reader {
    pub(super) fn new(options: &Options) -> Reader {
        Reader {
            mode: Mode::Outside,
            options: options.clone(),
            seen: Vec::new(),
            outside: Outside::default(),
            fence: None,
            entities: Entities::default(),
            in_comment: false,
            line_blank: true,
            think_at: Place::START,
            think_pending: None,
            serp: Serp::default(),
            thinking: Thinking::default(),
            answer: Answer::new(options),
            block: None,
            marker: None,
            open_at_end: false,
        }
    }

    /// The next token.
    #[inline]
    pub(super) fn token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if !matches!(token, Token::Text(_)) {
            self.flush_entities(out);
        }
        match self.mode {
            Mode::Final => self.answer_token(token, at, out),
            Mode::Thinking => self.thinking_token(token, at, out),
            Mode::Outside => self.outside_token(token, at, out),
            Mode::Think => self.think_token(token, at, out),
            Mode::Serp => self.serp_token(token, at, out),
            Mode::SecondThinking => self.second_thinking(token, at, out),
            Mode::Dropped(name) => self.dropped(name, token, at, out),
        }
        self.line_blank = match token {
            // Most pieces end in a word.
            Token::Text(text) if !text.ends_with([' ', '\n', '\t', '\r']) => false,
            Token::Text(text) => match crate::lex::scan::rfind(b'\n', text.as_bytes()) {
                Some(last) => is_blank(&text[last + 1..]),
                None => self.line_blank && is_blank(text),
            },
            _ => false,
        };
    }

    pub(super) fn held(&self) -> usize {
        self.entities.held()
            + self.answer.held()
            + self.thinking.held()
            + if self.seen.contains(&"final") { 0 } else { self.outside.len() }
    }

    /// Reports a rule over a tag or other short token.
    pub(super) fn report(
        &self,
        rule: &'static Rule,
        at: Place,
        len: usize,
        message: impl Into<String>,
        repair: &str,
        out: &mut dyn Output,
    ) {
        out.report(Report::new(rule, at, at.offset + len, message).repaired(repair));
    }

    /// Reports attributes and case of a tag that is read as a tag.
    pub(super) fn check_tag(&self, name: Name, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let len = tag.raw.len();
        if !exact {
            let message = format!("`{}` is written in lower case: `{}`", tag.name, name.text());
            self.report(rules::TAG_CASE, at, len, message, "read as the lower-case tag", out);
        }
        let bare = tag.rest().trim().is_empty();
        if !bare && (name != Name::Phase || tag.kind == TagKind::Close) {
            let message = format!("`{}` carries no attributes", name.text());
            self.report(rules::ATTR_UNEXPECTED, at, len, message, "attributes left out", out);
        }
        if tag.kind == TagKind::SelfClosing {
            let message = format!("`{}` does not close itself", name.text());
            self.report(rules::SELF_CLOSING, at, len, message, "read as an empty element", out);
        }
    }

    fn flush_entities(&mut self, out: &mut dyn Output) {
        let mut entities = std::mem::take(&mut self.entities);
        entities.flush(&mut |text| match self.mode {
            Mode::Think => out.intent(Intent::Draft(text)),
            Mode::Thinking => self.thinking.plain(text, out),
            _ => {}
        });
        self.entities = entities;
    }

    // ---- outside the elements ------------------------------------------------------------------------------

    fn outside_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.block.is_some() {
            return self.block_token(token, at, out);
        }
        let after_final = self.seen.contains(&"final");
        match token {
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose => self.in_comment = false,
            Token::Mark(_) => {
                self.marker.get_or_insert(at);
                if after_final {
                    self.embedded_marker(at, "left out", out);
                }
            }
            Token::Tag(tag) if after_final && tag.name == "serp_queries" && tag.kind == TagKind::Open => {
                self.block = Some(Block::begin(&self.outside_comment(), at, false));
                return;
            }
            Token::Tag(tag) if !self.in_comment && self.outside_tag(&tag, at, out) => return,
            Token::Tag(_) | Token::Text(_) => {}
        }
        self.keep_outside(token.raw(), at, out);
    }

    /// Takes an open `<!--` from the end of the text outside: it belongs to a queries block.
    fn outside_comment(&mut self) -> String {
        let (text, start) = self.outside.take();
        let body = text.trim_end();
        match body.strip_suffix("<!--") {
            Some(before) => {
                self.outside.push(before, start);
                text[before.len()..].to_owned()
            }
            None => {
                self.outside.push(&text, start);
                String::new()
            }
        }
    }

    /// A tag at the top level; `false` when it is only text there.
    fn outside_tag(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) -> bool {
        let len = tag.raw.len();
        let Some((name, exact)) = structure::find(tag.name) else {
            if !self.seen.contains(&"final") {
                let message = format!("`{}` is not a tag of ThinkingML", tag.name);
                self.report(rules::UNEXPECTED_TAG, at, len, message, "read as text", out);
            }
            return false;
        };
        if tag.kind == TagKind::Close && self.answer.moved && matches!(name, Name::Phase | Name::Thinking) {
            // These close what the answer interrupted.
            self.thinking.closed_late(name);
            return true;
        }
        if tag.kind == TagKind::Close && name == Name::Thinking && self.thinking.forgotten {
            self.thinking.forgotten = false;
            return true;
        }
        if tag.kind == TagKind::Close && name == Name::Final {
            let message = "`</final>` closes nothing here";
            self.report(rules::TAG_MISPLACED, at, len, message, "left out", out);
            return true;
        }
        if tag.kind == TagKind::Close || !name.is_top() {
            let message = format!("`{}` does not stand at the top level here", tag.raw);
            self.report(rules::TAG_MISPLACED, at, len, message, "read as text", out);
            return false;
        }
        self.check_tag(name, exact, tag, at, out);
        self.begin(name, at, len, out);
        if tag.kind == TagKind::SelfClosing {
            let close = format!("</{}>", name.text());
            let mut lexer = Markup::at(at, "", close.len() + 1);
            lexer.push(&close, &mut |token, _| self.token(token, at, out));
        }
        true
    }

    fn keep_outside(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        let blank = self.outside.len() == 0 && is_blank(raw);
        if blank {
            return;
        }
        let after_final = self.seen.contains(&"final");
        let fits = self.outside.len() + raw.len() <= self.options.limits.hold;
        if fits || after_final {
            // After the answer only the beginning matters: everything is left out anyway.
            if fits {
                self.outside.push(raw, at);
            }
            return;
        }
        // Too much to hold: it is the answer.
        self.report(
            rules::LIMIT_EXCEEDED,
            at,
            0,
            "more text before the structure than `limits.hold`",
            "given as the answer",
            out,
        );
        self.seen.push("final");
        self.answer.implied = true;
        self.give_outside_as_answer(out);
        self.mode = Mode::Final;
        let (token, limit) = (raw.to_owned(), self.options.limits.tag);
        let mut lexer = Markup::at(at, MARKER, limit);
        self.answer.quiet = true;
        lexer.push(&token, &mut |token, at| self.answer_token(token, at, out));
        lexer.finish(&mut |token, at| self.answer_token(token, at, out));
        self.answer.quiet = false;
    }

    /// The text outside becomes answer text; what was wrong in it has been reported.
    fn give_outside_as_answer(&mut self, out: &mut dyn Output) {
        let (text, start) = self.outside.take();
        out.intent(Intent::ThinkingEnd);
        self.mode = Mode::Final;
        self.answer.quiet = true;
        let mut lexer = Markup::at(start, MARKER, self.options.limits.tag);
        lexer.push(&text, &mut |token, at| self.answer_token(token, at, out));
        lexer.finish(&mut |token, at| self.answer_token(token, at, out));
        self.answer.quiet = false;
    }

    /// A top-level element begins.
    pub(super) fn begin(&mut self, name: Name, at: Place, len: usize, out: &mut dyn Output) {
        self.in_comment = false;
        if self.fence.is_none()
            && !self.seen.contains(&"final")
            && let Some(fence) = self.outside.take_fence()
        {
            let message = "the reply is wrapped in a code fence";
            let (start, end) = (fence.place, fence.end);
            out.report(Report::new(rules::FENCED_REPLY, start, end, message).repaired("fence removed"));
            self.fence = Some(fence);
        }
        let misfit = structure::expected().misfit(name.text(), &self.seen);
        if let Some(misfit) = misfit {
            self.misfit(name, misfit, at, len, out);
            return;
        }
        if matches!(name, Name::Thinking | Name::Final) {
            self.drop_outside(name, out);
        }
        self.seen.push(name.text());
        match name {
            Name::Think => {
                self.think_at = at;
                self.mode = Mode::Think;
            }
            Name::Serp => {
                self.serp.at = at;
                self.mode = Mode::Serp;
            }
            Name::Thinking => {
                self.thinking.begin(at);
                out.intent(Intent::ThinkingStart);
                self.mode = Mode::Thinking;
            }
            Name::Final => {
                out.intent(Intent::ThinkingEnd);
                self.answer.begin(at);
                self.mode = Mode::Final;
            }
            Name::Phase | Name::Title => {}
        }
    }

    /// A top-level element that comes twice or too late.
    fn misfit(&mut self, name: Name, misfit: Misfit<'_>, at: Place, len: usize, out: &mut dyn Output) {
        let after_final = self.seen.contains(&"final");
        let text = name.text();
        let (rule, message) = match (name, misfit) {
            (Name::Serp, Misfit::Late(_)) => {
                (rules::SERP_AFTER_THINKING, "`<serp>` stands before `<thinking>`".to_owned())
            }
            (_, Misfit::Late(other)) => {
                (rules::ORDER_INVALID, format!("`<{text}>` stands before `<{other}>`"))
            }
            (Name::Think, _) => (rules::THINK_DUPLICATE, "a second `<think>`".to_owned()),
            (Name::Serp, _) => (rules::SERP_DUPLICATE, "a second `<serp>`".to_owned()),
            (Name::Thinking, _) => (rules::THINKING_DUPLICATE, "a second `<thinking>`".to_owned()),
            _ => (rules::FINAL_DUPLICATE, "a second `<final>`".to_owned()),
        };
        self.seen.push(text);
        let (mode, repair) = match name {
            Name::Think => (Mode::Think, "read as a draft"),
            Name::Thinking if !after_final => (Mode::SecondThinking, "read as text of the last phase"),
            _ => (Mode::Dropped(name), "left out"),
        };
        self.report(rule, at, len, message, repair, out);
        self.mode = mode;
        if mode == Mode::Think {
            self.think_at = at;
        } else if mode == Mode::SecondThinking {
            out.intent(Intent::PhaseText("<thinking>"));
        }
    }

    /// Text before `<thinking>` or `<final>` is left out and reported.
    fn drop_outside(&mut self, next: Name, out: &mut dyn Output) {
        if let Some(marker) = self.marker.take() {
            self.embedded_marker(marker, "left out", out);
        }
        let (start, end) = self.outside.range();
        if !self.outside.is_blank() {
            let between = next == Name::Final && self.seen.contains(&"thinking");
            let (rule, message) = if between {
                (rules::FINAL_NOT_ADJACENT, "text between `</thinking>` and `<final>`")
            } else {
                (rules::TEXT_OUTSIDE_STRUCTURE, "text before the structure")
            };
            out.report(Report::new(rule, start, end, message).repaired("left out"));
        }
        self.outside.take();
    }

    pub(super) fn embedded_marker(&self, at: Place, repair: &str, out: &mut dyn Output) {
        let message = "the failure marker stands beside other content";
        self.report(rules::PARSING_ERROR_EMBEDDED, at, MARKER.len(), message, repair, out);
    }

    // ---- think and serp ------------------------------------------------------------------------------------

    fn think_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if let Some((raw, place)) = self.think_pending.take() {
            match token {
                Token::Text(text) if is_blank(text) && raw.len() < self.options.limits.tag => {
                    self.think_pending = Some((raw + text, place));
                    return;
                }
                Token::Tag(tag) if structure::find(tag.name).is_some_and(|(name, _)| name == Name::Phase) => {
                    self.end_think(place, out);
                    self.begin(Name::Thinking, place, "<thinking>".len(), out);
                    return self.token(token, at, out);
                }
                _ => {
                    self.tag_in_plain_text("thinking", place, raw.trim_end().len(), "kept as text", out);
                    out.intent(Intent::Draft(&raw));
                }
            }
        }
        match token {
            Token::Text(text) => {
                self.entities.push(text, &mut |text| out.intent(Intent::Draft(text)));
            }
            Token::Tag(tag) if !self.in_comment || tag.kind == TagKind::Close => {
                match structure::find(tag.name) {
                    Some((Name::Think, exact)) if tag.kind == TagKind::Close => {
                        self.check_tag(Name::Think, exact, &tag, at, out);
                        self.in_comment = false;
                        self.mode = Mode::Outside;
                        return;
                    }
                    Some((name, exact))
                        if name.is_top() && name != Name::Think && tag.kind == TagKind::Open =>
                    {
                        if self.line_blank {
                            self.end_think(at, out);
                            self.check_tag(name, exact, &tag, at, out);
                            return self.begin(name, at, tag.raw.len(), out);
                        }
                        if name == Name::Thinking {
                            self.think_pending = Some((tag.raw.to_owned(), at));
                            return;
                        }
                    }
                    _ => {}
                }
                if !self.in_comment {
                    self.tag_in_plain_text(tag.name, at, tag.raw.len(), "kept as text", out);
                }
                out.intent(Intent::Draft(tag.raw));
            }
            other => {
                self.plain_token(&other, at, out);
                out.intent(Intent::Draft(other.raw()));
            }
        }
    }

    /// Comment marks and the failure marker in plain text.
    pub(super) fn plain_token(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) {
        match token {
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose => self.in_comment = false,
            Token::Mark(_) => self.embedded_marker(at, "kept as text", out),
            Token::Text(_) | Token::Tag(_) => {}
        }
    }

    fn tag_in_plain_text(&self, name: &str, at: Place, len: usize, repair: &str, out: &mut dyn Output) {
        let message = format!("`{name}` is a tag in plain text");
        self.report(rules::TAG_IN_PLAIN_TEXT, at, len, message, repair, out);
    }

    fn end_think(&mut self, at: Place, out: &mut dyn Output) {
        self.unclosed(Name::Think, self.think_at, at.offset, out);
        self.mode = Mode::Outside;
    }

    /// Reports an element that ends at `end` without its closing tag (T-016).
    pub(super) fn unclosed(&mut self, name: Name, start: Place, end: usize, out: &mut dyn Output) {
        let message = format!("`<{}>` is not closed", name.text());
        let report = Report::new(rules::UNCLOSED_ELEMENT, start, end, message);
        out.report(report.repaired("closed here"));
    }

    fn serp_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        match token {
            Token::Text(text) => self.serp_text(text, at, out),
            Token::Tag(tag) => match structure::find(tag.name) {
                Some((Name::Serp, exact)) if tag.kind == TagKind::Close => {
                    self.check_tag(Name::Serp, exact, &tag, at, out);
                    self.end_serp(out);
                }
                Some((name, exact)) if name.is_top() && name != Name::Serp && tag.kind == TagKind::Open => {
                    self.unclosed(Name::Serp, self.serp.at, at.offset, out);
                    self.end_serp(out);
                    self.check_tag(name, exact, &tag, at, out);
                    self.begin(name, at, tag.raw.len(), out);
                }
                _ if self.in_comment => self.serp_text(tag.raw, at, out),
                _ => self.tag_in_plain_text(tag.name, at, tag.raw.len(), "tag removed", out),
            },
            other => {
                self.plain_token(&other, at, out);
                self.serp_text(other.raw(), at, out);
            }
        }
    }

    fn serp_text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        let limit = self.options.limits.hold;
        if self.serp.text.len() > limit {
            return;
        }
        let room = text.floor_char_boundary(limit - self.serp.text.len());
        self.serp.text.push_str(&text[..room]);
        if room < text.len() {
            let message = "`<serp>` is longer than `limits.hold`";
            self.report(rules::LIMIT_EXCEEDED, at.after(&text[..room]), 0, message, "the rest left out", out);
            self.serp.text.push_str(&" ".repeat(limit + 1 - self.serp.text.len()));
        }
    }

    fn end_serp(&mut self, out: &mut dyn Output) {
        self.mode = Mode::Outside;
        self.in_comment = false;
        out.intent(Intent::Summary(entity::decode(&std::mem::take(&mut self.serp.text)).into()));
    }

    // ---- elements that are left out, and a second thinking --------------------------------------------------

    fn dropped(&mut self, name: Name, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Token::Tag(tag) = token else { return };
        match structure::find(tag.name) {
            Some((found, _)) if found == name && tag.kind == TagKind::Close => self.mode = Mode::Outside,
            Some((found, exact)) if found.is_top() && found != name && tag.kind == TagKind::Open => {
                self.mode = Mode::Outside;
                self.check_tag(found, exact, &tag, at, out);
                self.begin(found, at, tag.raw.len(), out);
            }
            _ => {}
        }
    }

    fn second_thinking(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if let Token::Tag(tag) = token
            && let Some((name, _)) = structure::find(tag.name)
        {
            if name == Name::Thinking && tag.kind == TagKind::Close {
                self.mode = Mode::Outside;
            } else if name == Name::Final && tag.kind == TagKind::Open {
                self.mode = Mode::Outside;
                return self.begin(name, at, tag.raw.len(), out);
            }
        }
        out.intent(Intent::PhaseText(token.raw()));
    }

    // ---- the end -------------------------------------------------------------------------------------------

    /// Whether an unfinished token at the very end is the beginning of a tag that would have been read here.
    pub(super) fn is_half_tag(&self, carry: &str) -> bool {
        // `<` alone is text, unless only a queries block can have begun.
        if carry.len() < 2 {
            return carry == "<" && self.answer.comment_begins();
        }
        let expected: &[&str] = match self.mode {
            Mode::Final => &["</final>", "<!--", "<serp_queries>"],
            Mode::Thinking => &["</phase>", "</title>", "</thinking>", "<phase id=", "<title>", "<final>"],
            Mode::Think => &["</think>"],
            Mode::Serp => &["</serp>"],
            Mode::Outside => &["<thinking>", "<final>", "<think>", "<serp>", MARKER],
            Mode::SecondThinking => &["</thinking>"],
            Mode::Dropped(_) => &[],
        };
        expected
            .iter()
            .any(|tag| tag.starts_with(carry) || (carry.starts_with("<phase ") && *tag == "<phase id="))
    }

    /// Leaves out a tag that was cut at the very end.
    pub(super) fn half_tag(&mut self, half: &str, at: Place, out: &mut dyn Output) {
        if self.block.is_none() && self.mode != Mode::Outside {
            let message = format!("the reply ends inside a tag: `{half}`");
            self.report(rules::UNCLOSED_ELEMENT, at, half.len(), message, "left out", out);
        }
    }

    /// The end of the input. Returns whether elements were open.
    pub(super) fn finish(&mut self, end: Place, out: &mut dyn Output) -> bool {
        self.flush_entities(out);
        if let Some((raw, _)) = self.think_pending.take() {
            out.intent(Intent::Draft(&raw));
        }
        self.thinking_end_of_input(end, out);
        self.close_at_end(end, out);
        self.thinking_left_open(end, out);
        let has_final = self.seen.contains(&"final");
        if !has_final {
            self.finish_without_answer(end, out);
        } else if !self.outside.is_blank() {
            if let Some(fence) = &self.fence {
                self.outside.take_closing(&fence.clone());
            }
            if !self.outside.is_blank() {
                let (start, end) = self.outside.range();
                let report = Report::new(rules::TEXT_OUTSIDE_STRUCTURE, start, end, "text after `</final>`");
                out.report(report.repaired("left out"));
            }
        }
        if !self.seen.contains(&"thinking") {
            let report = Report::new(rules::THINKING_MISSING, end, end.offset, "there is no `<thinking>`");
            out.report(report.repaired("a phase with the fallback title"));
        }
        self.open_at_end
    }

    /// Closes whatever element is under way.
    fn close_at_end(&mut self, end: Place, out: &mut dyn Output) {
        match self.mode {
            Mode::Outside | Mode::Dropped(_) => {
                if self.block.is_some() {
                    self.end_block(end, false, out);
                }
                return;
            }
            Mode::Think => self.unclosed(Name::Think, self.think_at, end.offset, out),
            Mode::Serp => {
                self.unclosed(Name::Serp, self.serp.at, end.offset, out);
                self.end_serp(out);
            }
            Mode::Thinking | Mode::SecondThinking => {
                self.close_thinking(end, out);
            }
            Mode::Final => {
                let open = !self.answer.implied;
                self.end_answer(end, out);
                if !open {
                    return;
                }
                self.unclosed(Name::Final, self.answer.at, end.offset, out);
            }
        }
        self.open_at_end = true;
    }

    /// A reply without `<final>`: what stands outside is the answer, or there is none.
    fn finish_without_answer(&mut self, end: Place, out: &mut dyn Output) {
        let declared = self.outside.text().trim() == MARKER && self.seen.is_empty();
        let marker = self.marker.take();
        match marker {
            Some(at) if declared => {
                let message = "the model declared that it cannot answer in this form";
                let report = Report::new(rules::PARSING_ERROR_MARKER, at, at.offset + MARKER.len(), message);
                out.report(report.repaired("fallback text"));
                out.fall_back("parsing_error");
            }
            Some(at) => self.embedded_marker(at, "escaped", out),
            None => {}
        }
        let structured = self.seen.contains(&"thinking");
        if declared {
            self.outside.take();
        } else if !self.outside.is_blank() {
            if !structured && let Some(fence) = &self.fence.clone() {
                self.outside.take_closing(fence);
            }
            self.give_outside_as_answer(out);
            self.answer.quiet = true;
            self.end_answer(end, out);
        }
        let report = Report::new(rules::FINAL_MISSING, end, end.offset, "there is no `<final>`");
        out.report(report.repaired("text outside the elements or the fallback text as the answer"));
        if structured {
            self.open_at_end = true;
        }
    }
}
