//! Text between the objects: line breaks, code fences, SSE framing, and prose, which does not belong there.

use super::reports::PendingReports;
use super::rules;
use crate::dialect::IntentSink;
use crate::finding::{FindingReport, Rule};
use crate::lex::fence::{Fence, is_json};
use crate::span::Place;

/// The current line outside objects, and the prose so far.
#[derive(Clone, Debug, Default)]
pub(super) struct LineSurroundings {
    /// Start of the line, from its first non-blank character.
    line: String,
    /// Set if the line is longer than `line` may be ([`MAX_LINE_PREFIX`]).
    is_full: bool,
    /// Set if more than white space is beyond that.
    is_long: bool,
    /// Place of the line's first non-blank character.
    start: Place,
    /// Offset after the line's last non-blank character.
    end: usize,
    /// Place after all text so far.
    place: Place,
    /// Set if an object has ended on this line.
    has_object: bool,
    /// An `event:` line whose data has not arrived.
    pub(super) open_frame: Option<EventFrame>,
    /// Set once SSE framing was seen and reported.
    is_sse: bool,
    /// Set once a fence was seen and reported.
    is_fenced: bool,
    /// Set once two objects on one line were reported.
    has_glued: bool,
    /// The current line in full, unless `is_discarding`.
    full_line: String,
    /// The line before it in full.
    last_full_line: String,
    /// Lines that are not part of the format: the answer if there is no other.
    prose: String,
    /// Set once no more prose is kept: it exceeds the hold limit, or there is an answer.
    is_discarding: bool,
}

/// An `event:` line, the start of an SSE frame.
#[derive(Clone, Debug)]
pub(super) struct EventFrame {
    /// Name of the event.
    pub(super) name: String,
    /// Start of the line, or the end of a thought after it.
    pub(super) at: Place,
    /// Offset after the line.
    pub(super) end: usize,
}

/// Meaning of the text before an object.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectPrefix {
    /// Set if a `data:` precedes the object: it is the data of the last `event:` line.
    pub(super) is_framed: bool,
    /// Set on the first object that shares a line with another.
    pub(super) is_glued: bool,
    /// Frames that end before the object without data.
    pub(super) ended_frames: Vec<EventFrame>,
}

/// Bytes of a line that suffice to classify it.
const MAX_LINE_PREFIX: usize = 256;

impl LineSurroundings {
    /// Sets the place of the next text.
    pub(super) fn start_at(&mut self, place: Place) {
        self.place = place;
    }

    /// Returns the bytes of prose held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.full_line.len() + self.prose.len()
    }

    /// Discards the prose and keeps no more.
    pub(super) fn stop_keeping_prose(&mut self) {
        self.is_discarding = true;
        (self.full_line, self.prose) = (String::new(), String::new());
    }

    /// Takes the prose around the objects; `None` if there is none.
    pub(super) fn take_prose(&mut self) -> Option<String> {
        let prose = std::mem::take(&mut self.prose);
        Some(prose.trim().to_owned()).filter(|prose| !prose.is_empty())
    }

    /// Keeps more of the current line, in case it is prose; at most `limit` bytes are held back.
    pub(super) fn keep_line(&mut self, piece: &str, limit: usize) {
        if self.is_discarding {
            return;
        }
        if self.held_bytes() + piece.len() > limit {
            return self.stop_keeping_prose();
        }
        self.full_line.push_str(piece);
    }

    /// Reads text of one line outside objects, up to its line break at most. Returns a frame that ended
    /// without data.
    pub(super) fn push(
        &mut self,
        piece: &str,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> Option<EventFrame> {
        let body = if self.line.is_empty() { piece.trim_start() } else { piece };
        let visible = body.trim_end();
        if !visible.is_empty() {
            let body_start = self.place.end_of(&piece[..piece.len() - body.len()]);
            if self.line.is_empty() {
                self.start = body_start;
            }
            self.end = body_start.offset + visible.len();
        }
        self.keep_prefix(body);
        self.place.advance(piece);
        if piece.ends_with('\n') { self.end_line(pending, out) } else { None }
    }

    /// Adds text to the kept start of the line, as far as it fits.
    fn keep_prefix(&mut self, body: &str) {
        let room = MAX_LINE_PREFIX - self.line.len();
        let kept_len = if self.is_full { 0 } else { body.floor_char_boundary(room) };
        self.line.push_str(&body[..kept_len]);
        self.is_full |= kept_len < body.len();
        self.is_long |= !body[kept_len..].trim().is_empty();
    }

    /// Takes the kept start of the line, which ends here.
    fn take_line(&mut self) -> String {
        self.is_full = false;
        self.last_full_line = std::mem::take(&mut self.full_line);
        std::mem::take(&mut self.line)
    }

    /// Begins an object, and returns the meaning of the text before it on the line.
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
        // A bracket between two objects opens an array, which has a finding of its own.
        let is_second = self.has_object && !prefix.contains('[');
        object_prefix.is_glued = is_second && !std::mem::replace(&mut self.has_glued, true);
        object_prefix
    }

    /// Ends an object, whose end is at `place`.
    pub(super) fn end_object(&mut self, place: Place) {
        // An object that ends at the start of a line was ended by the line break, so nothing shares its line.
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

    /// Discards the current line and the prose so far; later prose is kept.
    pub(super) fn discard_line(&mut self) {
        self.take_line();
        self.is_long = false;
        self.prose.clear();
    }

    /// Discards the prose so far, because it was reasoning; later prose is kept.
    pub(super) fn clear_prose(&mut self) {
        self.prose.clear();
    }

    /// Ends a line, also at the end of the input. Returns a frame that ended without data.
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
            // A blank line ends a frame.
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
        } else if !self.is_frame_filler(text) {
            self.report_prose(self.start, pending, out);
        }
        None
    }

    /// Returns true for a line of an SSE frame that carries no content: empty data, an id, a retry time, a
    /// comment.
    fn is_frame_filler(&self, text: &str) -> bool {
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.trim();
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        self.is_sse
            && !self.is_long
            && match field {
                "data" => matches!(value, "" | "[DONE]"),
                "id" | "retry" => is_number,
                "" => value.is_empty(),
                _ => false,
            }
    }

    /// Handles a line that begins like a fence, followed by `info`. Text after the language name is prose.
    fn push_fence(&mut self, text: &str, info: &str, pending: &mut PendingReports, out: &mut dyn IntentSink) {
        let language = info.split(char::is_whitespace).next().unwrap_or("");
        let is_opening = !std::mem::replace(&mut self.is_fenced, true);
        // The first fence is reported with its language, whichever it is.
        let is_known = is_opening || is_json(language);
        let fence_len = text.len() - info.len() + if is_known { language.len() } else { 0 };
        let prose = text[fence_len..].trim_start();
        if is_opening {
            let report = FindingReport::new(
                rules::FENCED_REPLY,
                self.start,
                self.start.offset + fence_len,
                "the lines are in a code fence",
            );
            pending.add(report.with_repair("fence removed"), out);
        }
        if !prose.is_empty() || self.is_long {
            let start = self.start.end_of(&text[..text.len() - prose.len()]);
            self.report_prose(start, pending, out);
        }
    }

    /// Reports the line as prose from `start` on, and keeps it.
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

    /// Reports SSE framing, once.
    fn report_framing(&mut self, pending: &mut PendingReports, out: &mut dyn IntentSink) {
        if !std::mem::replace(&mut self.is_sse, true) {
            let message = "the lines imitate the frames of a transport";
            self.report(rules::SSE_FRAMING, self.start, message, "read as events", pending, out);
        }
    }

    /// Adds a finding on the line from `start` on.
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
