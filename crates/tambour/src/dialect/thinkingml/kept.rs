//! What becomes of the text outside the elements: left out when a structure comes, otherwise the answer (X-013, T-015).

use super::context;
use super::context::Line;
use super::parse::{Mode, Reader};
use super::rules;
use super::structure::Name;
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::markup::Token;
use crate::span::Place;

impl Reader {
    /// What follows the `<!--` outside that hides a structure, if the reply has come to its end without another.
    pub(super) fn take_commented(&mut self) -> Vec<(String, Place)> {
        if self.mode != Mode::Outside || self.seen.contains(&"final") {
            return Vec::new();
        }
        // The mark of the comment is markup: what follows it is as good as at the start of a line.
        (self.in_comment, self.context.line) = (false, Line::Tag);
        let runs = self.outside.take_commented();
        if let Some((_, at)) = runs.first()
            && self.waiting.as_ref().is_some_and(|waiting| waiting.is_behind(*at))
        {
            // The summary is read again with what stands before it.
            self.waiting = None;
            self.seen.retain(|name| *name != "serp");
        }
        runs
    }

    pub(super) fn keep_outside(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) {
        // Text is cut at the limit itself, so that the result does not depend on the chunks.
        let whole = !matches!(token, Token::Text(_));
        let Some((rest, at)) = self.outside.push(token.raw(), at, whole, self.context.options.limits.hold)
        else {
            return;
        };
        if self.seen.contains(&"final") {
            // After the answer only the beginning matters: everything is left out anyway.
            return self.outside.overflow(rest, at);
        }
        // Too much to hold: it is the answer.
        self.drop_waiting(out);
        if !self.seen.contains(&"thinking") {
            out.fall_back("structure_missing");
        }
        context::report(
            rules::LIMIT_EXCEEDED,
            at,
            0,
            "more text before the structure than `limits.hold`",
            "given as the answer",
            out,
        );
        self.seen.push("final");
        self.answer.imply();
        // A tag has been looked at already.
        self.give_outside_as_answer(at.offset + usize::from(whole), out);
        self.replay(rest, at, out);
    }

    /// The text outside becomes answer text; what was wrong in it, up to an offset, has been reported.
    pub(super) fn give_outside_as_answer(&mut self, reported: usize, out: &mut dyn Output) {
        out.intent(Intent::ThinkingEnd);
        self.mode = Mode::Final;
        self.answer.begin_reported(reported);
        (self.in_comment, self.context.line) = (false, Line::Blank);
        for (text, at) in self.outside.take().runs() {
            self.replay(text, at, out);
        }
    }

    /// Text before `<thinking>` or `<final>` is left out and reported.
    pub(super) fn drop_outside(&mut self, next: Name, out: &mut dyn Output) {
        if let Some(marker) = self.marker.take() {
            context::embedded_marker(marker, "left out", out);
        }
        for (start, end) in self.outside.ranges() {
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

    /// Reports the fence around the reply.
    pub(super) fn tell_fence(&mut self, out: &mut dyn Output) {
        let Some(fence) = self.fence.as_mut().filter(|fence| !fence.told) else { return };
        fence.told = true;
        let message = "the reply is wrapped in a code fence";
        let report = Report::new(rules::FENCED_REPLY, fence.place, fence.end, message);
        out.report(report.repaired("fence removed"));
    }
}
