//! Text between the objects: line breaks, code fences, SSE framing, and prose, which does not belong there.

use super::reports::PendingReports;
use super::rules;
use crate::dialect::IntentSink;
use crate::dialect::surroundings::{KeptText, SurroundingLine, SurroundingLines};
use crate::finding::{FindingReport, Rule};
use crate::lex::fence::{Fence, is_json};
use crate::span::{Extent, Place};

/// The current line outside objects, and the prose so far.
#[derive(Clone, Debug)]
pub(super) struct LineSurroundings {
    lines: SurroundingLines,
    /// Set if an object has ended on this line.
    has_object: bool,
    /// An `event:` line whose data has not arrived.
    pub(super) open_frame: Option<EventFrame>,
    /// Set once SSE framing was seen and reported.
    is_sse: bool,
    /// Set once a fence was seen and reported.
    is_fenced: bool,
    /// Set once two objects on one line were reported.
    has_reported_glued: bool,
    /// Prose: lines that are not part of the format, which become the answer if there is no other.
    /// The current line follows them, in case it is prose.
    kept: KeptText,
    /// Offset of the current line in `kept`.
    line_offset: usize,
}

/// A line outside objects that has ended.
struct EndedLine {
    /// Beginning and extent of the line.
    line: SurroundingLine,
    /// Whole text of the line; empty if no prose is kept.
    full_text: String,
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
    /// Set if `data:` precedes the object: it is the data of the last `event:` line, if there is one.
    pub(super) is_framed: bool,
    /// Set on the first object that shares a line with another.
    pub(super) is_glued: bool,
    /// Frames that end before the object without data.
    pub(super) ended_frames: Vec<EventFrame>,
}

impl LineSurroundings {
    /// Creates surroundings that hold back at most `limit` bytes of prose.
    pub(super) fn new(limit: usize) -> LineSurroundings {
        LineSurroundings {
            lines: SurroundingLines::default(),
            has_object: false,
            open_frame: None,
            is_sse: false,
            is_fenced: false,
            has_reported_glued: false,
            kept: KeptText::new(limit),
            line_offset: 0,
        }
    }

    /// Sets the place of the next text.
    pub(super) fn start_at(&mut self, place: Place) {
        self.lines.move_to(place);
    }

    /// Returns the bytes of prose held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.kept.held_bytes()
    }

    /// Discards the prose and keeps no more.
    pub(super) fn stop_keeping_prose(&mut self) {
        self.kept.stop();
    }

    /// Takes the prose around the objects; `None` if there is none.
    pub(super) fn take_prose(&mut self) -> Option<String> {
        let prose = self.kept.take();
        self.line_offset = 0;
        Some(prose.trim().to_owned()).filter(|prose| !prose.is_empty())
    }

    /// Keeps more of the current line, in case it is prose.
    pub(super) fn keep_line(&mut self, piece: &str) {
        self.kept.push(piece);
    }

    /// Reads text of one line outside objects, which may end with its line break. Returns a frame that ended
    /// without data.
    pub(super) fn push(
        &mut self,
        piece: &str,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> Option<EventFrame> {
        self.lines.push(piece);
        if piece.ends_with('\n') { self.end_line(pending, out) } else { None }
    }

    /// Takes the line, which ends here.
    fn take_line(&mut self) -> EndedLine {
        EndedLine { line: self.lines.take_line(), full_text: self.kept.split_off(self.line_offset) }
    }

    /// Begins an object, and returns the meaning of the text before it on the line.
    pub(super) fn begin_object(
        &mut self,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> ObjectPrefix {
        let ended_line = self.take_line();
        let line = &ended_line.line;
        let prefix = line.text();
        let mut object_prefix =
            ObjectPrefix { is_framed: prefix == "data:" && !line.is_cut(), ..ObjectPrefix::default() };
        if object_prefix.is_framed {
            self.report_framing(line, pending, out);
        } else if !prefix.is_empty() {
            object_prefix.ended_frames.extend(self.classify(&ended_line, pending, out));
        }
        if !object_prefix.is_framed {
            object_prefix.ended_frames.extend(self.open_frame.take());
        }
        // A bracket between two objects opens an array, which is reported separately.
        let is_second = self.has_object && !prefix.contains('[');
        object_prefix.is_glued = is_second && !std::mem::replace(&mut self.has_reported_glued, true);
        object_prefix
    }

    /// Ends an object; `place` is the place after it.
    pub(super) fn end_object(&mut self, place: Place) {
        // An object that ends at the start of a line was ended by the line break, so nothing shares its line.
        self.has_object = place.column > 1;
        self.lines.move_to(place);
    }

    /// Begins a thought. The text before it on the line counts as a separate line. Returns a frame that ended
    /// without data.
    pub(super) fn begin_thought(
        &mut self,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> Option<EventFrame> {
        let ended_line = self.take_line();
        if ended_line.line.text().is_empty() { None } else { self.classify(&ended_line, pending, out) }
    }

    /// Discards the current line and the prose so far; later prose is kept.
    pub(super) fn discard_line(&mut self) {
        self.take_line();
        self.clear_prose();
    }

    /// Discards the prose so far, because it was reasoning; later prose is kept.
    pub(super) fn clear_prose(&mut self) {
        self.kept.clear();
        self.line_offset = 0;
    }

    /// Ends a line, also at the end of the input. Returns a frame that ended without data.
    pub(super) fn end_line(
        &mut self,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> Option<EventFrame> {
        let ended_line = self.take_line();
        let text = ended_line.line.text();
        if text.is_empty() && self.kept.held_bytes() > 0 {
            self.keep_prose("");
        }
        let ended_frame = match text {
            "" if self.has_object => None,
            // A blank line ends a frame.
            "" => self.open_frame.take(),
            _ => self.classify(&ended_line, pending, out),
        };
        self.has_object = false;
        ended_frame
    }

    /// Classifies a line that is not blank. Returns a frame that ends here without data, because the next one
    /// begins.
    fn classify(
        &mut self,
        ended_line: &EndedLine,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) -> Option<EventFrame> {
        let line = &ended_line.line;
        if let Some((_, info)) = Fence::parse(line.text()) {
            self.push_fence(ended_line, info.trim_start(), pending, out);
        } else if let Some(name) = line.text().strip_prefix("event:").filter(|_| !line.is_cut()) {
            self.report_framing(line, pending, out);
            let Extent { place, end } = line.extent();
            let frame = EventFrame { name: name.trim().to_owned(), at: place, end };
            return self.open_frame.replace(frame);
        } else if !self.is_frame_filler(line) {
            self.report_prose(ended_line, line.extent().place, pending, out);
        }
        None
    }

    /// Returns true for a line of an SSE frame that says nothing about an event: empty data or `[DONE]`, a
    /// numeric id, a retry time, an empty comment.
    fn is_frame_filler(&self, line: &SurroundingLine) -> bool {
        let (field, value) = line.text().split_once(':').unwrap_or((line.text(), ""));
        let value = value.trim();
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        self.is_sse
            && !line.is_cut()
            && match field {
                "data" => matches!(value, "" | "[DONE]"),
                "id" | "retry" => is_number,
                "" => value.is_empty(),
                _ => false,
            }
    }

    /// Handles a line that begins like a fence, followed by `info`. Text after the language name is prose.
    fn push_fence(
        &mut self,
        ended_line: &EndedLine,
        info: &str,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) {
        let (line, text) = (&ended_line.line, ended_line.line.text());
        let place = line.extent().place;
        let language = info.split(char::is_whitespace).next().unwrap_or("");
        let is_opening = !std::mem::replace(&mut self.is_fenced, true);
        // The first fence is reported with its language, whichever it is.
        let is_known = is_opening || is_json(language);
        let fence_len = text.len() - info.len() + if is_known { language.len() } else { 0 };
        let prose = text[fence_len..].trim_start();
        if is_opening {
            let extent = Extent { place, end: place.offset + fence_len };
            let message = "the lines are in a code fence";
            pending.add(line_report(rules::FENCED_REPLY, extent, message, "fence removed"), out);
        }
        if !prose.is_empty() || line.is_cut() {
            let start = place.end_of(&text[..text.len() - prose.len()]);
            self.report_prose(ended_line, start, pending, out);
        }
    }

    /// Reports the line as prose from `start` on, and keeps it.
    fn report_prose(
        &mut self,
        ended_line: &EndedLine,
        start: Place,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) {
        let text = ended_line.full_text.trim();
        if !text.is_empty() {
            self.keep_prose(text);
        }
        let is_keeping = self.kept.is_keeping();
        let repair = if is_keeping { "not used, unless there is no answer" } else { "left out" };
        let extent = Extent { place: start, end: ended_line.line.extent().end };
        let message = "this is not a JSON object";
        pending.add(line_report(rules::LINE_NOT_OBJECT, extent, message, repair), out);
    }

    /// Keeps a line as prose; the current line has ended.
    fn keep_prose(&mut self, line: &str) {
        self.kept.push_line(line);
        self.line_offset = self.kept.held_bytes();
    }

    /// Reports SSE framing, once.
    fn report_framing(
        &mut self,
        line: &SurroundingLine,
        pending: &mut PendingReports,
        out: &mut dyn IntentSink,
    ) {
        if !std::mem::replace(&mut self.is_sse, true) {
            let message = "the lines imitate the frames of a transport";
            pending.add(line_report(rules::SSE_FRAMING, line.extent(), message, "read as events"), out);
        }
    }
}

/// Builds the finding on a part of a line.
fn line_report(rule: &'static Rule, extent: Extent, message: &str, repair: &str) -> FindingReport {
    FindingReport::new(rule, extent.place, extent.end, message).with_repair(repair)
}
