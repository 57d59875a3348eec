//! Text between the objects: line breaks, code fences, SSE framing, and text that does not belong there.

use super::reports::PendingReports;
use super::rules;
use crate::dialect::IntentSink;
use crate::finding::{FindingReport, Rule};
use crate::lex::fence::{Fence, is_json};
use crate::span::Place;

/// The current line outside objects.
#[derive(Clone, Debug, Default)]
pub(super) struct LineSurroundings {
    /// Start of the line, from its first non-blank character.
    line: String,
    /// Set if the line is longer than the part kept.
    is_full: bool,
    /// Set if the excess is not just blanks.
    is_long: bool,
    /// Place of the first non-blank character.
    start: Place,
    /// Offset after the last non-blank character.
    end: usize,
    /// Place after all text so far.
    place: Place,
    /// Set if an object has ended on this line.
    has_object: bool,
    /// An `event:` line whose data has not arrived.
    pub(super) open_frame: Option<EventFrame>,
    is_sse: bool,
    is_fenced: bool,
    has_glued: bool,
    /// The current line in full.
    full_line: String,
    /// The last line in full.
    last_full_line: String,
    /// Lines that are not part of the format: the answer if there is no other.
    prose: String,
    /// Set when the prose exceeds the hold limit or is not needed any more.
    is_discarding: bool,
}

/// An `event:` line (start of an SSE frame).
#[derive(Clone, Debug)]
pub(super) struct EventFrame {
    pub(super) name: String,
    pub(super) at: Place,
    pub(super) end: usize,
}

/// Meaning of the text before an object.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectPrefix {
    /// Set if the object is the data of an `event:` line.
    pub(super) is_framed: bool,
    /// Set on the first object that shares a line with another.
    pub(super) is_glued: bool,
    /// Frames that end here without data.
    pub(super) ended_frames: Vec<EventFrame>,
}

/// Bytes of a line that suffice to classify it.
const MAX_LINE_PREFIX: usize = 256;

impl LineSurroundings {
    pub(super) fn start_at(&mut self, place: Place) {
        self.place = place;
    }

    /// Bytes of prose held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.full_line.len() + self.prose.len()
    }

    /// Discards the prose: there is an answer.
    pub(super) fn discard_prose(&mut self) {
        self.is_discarding = true;
        (self.full_line, self.prose) = (String::new(), String::new());
    }

    /// Takes the prose around the objects.
    pub(super) fn take_prose(&mut self) -> Option<String> {
        let prose = std::mem::take(&mut self.prose);
        Some(prose.trim().to_owned()).filter(|prose| !prose.is_empty())
    }

    /// Keeps more of the current line; at most `limit` bytes are held back.
    pub(super) fn keep_line(&mut self, piece: &str, limit: usize) {
        if self.is_discarding {
            return;
        }
        if self.held_bytes() + piece.len() > limit {
            return self.discard_prose();
        }
        self.full_line.push_str(piece);
    }

    /// Pushes text of one line outside objects. Returns a frame that ended without data.
    pub(super) fn push(
        &mut self,
        piece: &str,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> Option<EventFrame> {
        let body = if self.line.is_empty() { piece.trim_start() } else { piece };
        let visible = body.trim_end();
        if !visible.is_empty() {
            let from = self.place.end_of(&piece[..piece.len() - body.len()]);
            if self.line.is_empty() {
                self.start = from;
            }
            self.end = from.offset + visible.len();
        }
        self.keep_prefix(body);
        self.place.advance(piece);
        if piece.ends_with('\n') { self.end_line(pending, out) } else { None }
    }

    fn keep_prefix(&mut self, body: &str) {
        let room = if self.is_full { 0 } else { body.floor_char_boundary(MAX_LINE_PREFIX - self.line.len()) };
        self.line.push_str(&body[..room]);
        self.is_full |= room < body.len();
        self.is_long |= !body[room..].trim().is_empty();
    }

    fn take_line(&mut self) -> String {
        self.is_full = false;
        self.last_full_line = std::mem::take(&mut self.full_line);
        std::mem::take(&mut self.line)
    }

    /// Begins an object.
    pub(super) fn begin_object(
        &mut self,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> ObjectPrefix {
        let prefix = self.take_line();
        let prefix = prefix.trim();
        let mut object_prefix =
            ObjectPrefix { is_framed: prefix == "data:" && !self.is_long, ..ObjectPrefix::default() };
        if object_prefix.is_framed {
            self.report_framing(pending, out);
        } else if self.is_long || !prefix.is_empty() {
            object_prefix.ended_frames.extend(self.classify(prefix, pending, out));
        }
        if !object_prefix.is_framed {
            object_prefix.ended_frames.extend(self.open_frame.take());
        }
        self.is_long = false;
        let is_second = self.has_object && !prefix.contains('[');
        object_prefix.is_glued = is_second && !std::mem::replace(&mut self.has_glued, true);
        object_prefix
    }

    pub(super) fn end_object(&mut self, place: Place) {
        // If the next line ended the object, the object is the last of its own line.
        self.has_object = place.column > 1;
        self.place = place;
    }

    /// Begins a thought. The text before it on the line counts as a separate line. Returns a frame that ended
    /// without data.
    pub(super) fn begin_thought(
        &mut self,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> Option<EventFrame> {
        let line = self.take_line();
        let text = line.trim();
        let ended_frame = if text.is_empty() { None } else { self.classify(text, pending, out) };
        self.is_long = false;
        ended_frame
    }

    /// Discards the current line and the prose.
    pub(super) fn discard_line(&mut self) {
        self.take_line();
        self.is_long = false;
        self.prose.clear();
    }

    /// Discards the prose: the text so far was reasoning.
    pub(super) fn drop_prose(&mut self) {
        self.prose.clear();
    }

    /// Ends a line, also at the end of the input.
    pub(super) fn end_line(
        &mut self,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> Option<EventFrame> {
        let line = self.take_line();
        let text = line.trim();
        if text.is_empty() && !self.prose.is_empty() && !self.is_discarding {
            self.prose.push('\n');
        }
        let ended_frame = match text {
            "" if self.has_object => None,
            "" => self.open_frame.take(),
            _ => self.classify(text, pending, out),
        };
        self.is_long = false;
        self.has_object = false;
        ended_frame
    }

    /// Classifies the text of a line. Returns a frame that ends here without data, because the next one
    /// begins.
    fn classify(
        &mut self,
        text: &str,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> Option<EventFrame> {
        if let Some((_, info)) = Fence::parse(text) {
            self.push_fence(text, info.trim_start(), pending, out);
        } else if let Some(name) = text.strip_prefix("event:").filter(|_| !self.is_long) {
            self.report_framing(pending, out);
            let frame = EventFrame { name: name.trim().to_owned(), at: self.start, end: self.end };
            return self.open_frame.replace(frame);
        } else if !self.is_frame(text) {
            self.report_prose(self.start, pending, out);
        }
        None
    }

    /// Returns true if the line is part of a frame and carries no content.
    fn is_frame(&self, text: &str) -> bool {
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.trim();
        let number = value.bytes().all(|byte| byte.is_ascii_digit());
        self.is_sse
            && !self.is_long
            && match field {
                "data" => matches!(value, "" | "[DONE]"),
                "id" | "retry" => number,
                "" => value.is_empty(),
                _ => false,
            }
    }

    /// Handles a line that begins like a fence, followed by `info`. Anything after the language name is text.
    fn push_fence(&mut self, text: &str, info: &str, pending: &mut PendingReports, out: &mut dyn IntentSink) {
        let language = info.split(char::is_whitespace).next().unwrap_or("");
        let is_opening = !std::mem::replace(&mut self.is_fenced, true);
        // The first fence is reported with its language, whichever it is.
        let is_known = is_opening || is_json(language);
        let mark = text.len() - info.len() + if is_known { language.len() } else { 0 };
        let rest = text[mark..].trim_start();
        if is_opening {
            let report = FindingReport::new(
                rules::FENCED_REPLY,
                self.start,
                self.start.offset + mark,
                "the lines are in a code fence",
            );
            pending.add(report.with_repair("fence removed"), out);
        }
        if !rest.is_empty() || self.is_long {
            let start = self.start.end_of(&text[..text.len() - rest.len()]);
            self.report_prose(start, pending, out);
        }
    }

    fn report_prose(&mut self, start: Place, pending: &mut PendingReports, out: &mut dyn IntentSink) {
        let last_line = std::mem::take(&mut self.last_full_line);
        let text = last_line.trim();
        if !self.is_discarding && !text.is_empty() {
            self.prose.push_str(text);
            self.prose.push('\n');
        }
        let repair = if self.is_discarding { "left out" } else { "not used, unless there is no answer" };
        self.report(rules::LINE_NOT_OBJECT, start, "this is not a JSON object", repair, pending, out);
    }

    fn report_framing(&mut self, pending: &mut PendingReports, out: &mut dyn IntentSink) {
        if !std::mem::replace(&mut self.is_sse, true) {
            let message = "the lines imitate the frames of a transport";
            self.report(rules::SSE_FRAMING, self.start, message, "read as events", pending, out);
        }
    }

    fn report(
        &self,
        rule: &'static Rule,
        start: Place,
        message: &str,
        repair: &str,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) {
        pending.add(FindingReport::new(rule, start, self.end, message).with_repair(repair), out);
    }
}
