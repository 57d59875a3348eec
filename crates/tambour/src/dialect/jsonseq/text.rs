//! What stands between the objects: line breaks, fences, frames of a transport, and what does not belong there.

use super::rules;
use crate::dialect::{MARKER, Output};
use crate::finding::{Report, Rule};
use crate::span::Place;

/// The line under way, outside of objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Between {
    line: String,
    /// Where `line` starts, and where it has come to.
    start: Place,
    at: Place,
    /// Whether an object has ended on this line.
    object: bool,
    /// Name of an `event:` line whose data is due.
    pub(super) named: Option<(String, Place)>,
    sse: bool,
    fenced: bool,
    glued: bool,
}

/// Bytes of a line that are kept to see what it is.
const KEPT: usize = 256;

impl Between {
    pub(super) fn start_at(&mut self, place: Place) {
        self.start = place;
        self.at = place;
    }

    /// Text of one line outside of objects. Gives the name of an event whose frame has ended without data.
    pub(super) fn push(&mut self, piece: &str, out: &mut dyn Output) -> Option<(String, Place)> {
        let room = piece.floor_char_boundary(KEPT.saturating_sub(self.line.len()));
        self.line.push_str(&piece[..room]);
        self.at.advance(piece);
        if piece.ends_with('\n') { self.end_line(out) } else { None }
    }

    /// An object begins. Whether it is the data of an `event:` line.
    pub(super) fn object_begins(&mut self, place: Place, out: &mut dyn Output) -> bool {
        let prefix = std::mem::take(&mut self.line);
        let prefix = prefix.trim();
        let data = prefix == "data:";
        if data {
            self.framing(out);
        } else if !matches!(prefix, "" | "," | "[") {
            self.judge(prefix, out);
        }
        if self.object && !prefix.contains('[') && !std::mem::replace(&mut self.glued, true) {
            let report = Report::new(rules::LINES_GLUED, place, place.offset + 1, "two objects on one line");
            out.report(report.repaired("read one after the other"));
        }
        data
    }

    pub(super) fn object_ends(&mut self, place: Place) {
        self.object = true;
        self.start = place;
        self.at = place;
    }

    /// The end of a line, or of the input.
    pub(super) fn end_line(&mut self, out: &mut dyn Output) -> Option<(String, Place)> {
        let line = std::mem::take(&mut self.line);
        let text = line.trim();
        let mut ended = None;
        if text.is_empty() {
            ended = if self.object { None } else { self.named.take() };
        } else {
            self.judge(text, out);
        }
        self.object = false;
        self.start = self.at;
        ended
    }

    fn judge(&mut self, text: &str, out: &mut dyn Output) {
        let word = text.split(':').next().unwrap_or("");
        if text.starts_with("```") || text.starts_with("~~~") {
            if !std::mem::replace(&mut self.fenced, true) {
                self.report(rules::FENCED_REPLY, "the lines stand in a code fence", "fence removed", out);
            }
        } else if let Some(name) = text.strip_prefix("event:") {
            self.framing(out);
            self.named = Some((name.trim().to_owned(), self.start));
        } else if self.sse && matches!(word, "data" | "id" | "retry" | "")
            || matches!(text, "," | "]" | "[" | MARKER)
        {
            // Part of a frame, or of an array; the failure marker is judged at the end.
        } else {
            self.report(rules::LINE_NOT_OBJECT, "this is not a JSON object", "left out", out);
        }
    }

    fn framing(&mut self, out: &mut dyn Output) {
        if !std::mem::replace(&mut self.sse, true) {
            let message = "the lines imitate the frames of a transport";
            self.report(rules::SSE_FRAMING, message, "read as events", out);
        }
    }

    fn report(&self, rule: &'static Rule, message: &str, repair: &str, out: &mut dyn Output) {
        out.report(Report::new(rule, self.start, self.start.offset + 1, message).repaired(repair));
    }
}
