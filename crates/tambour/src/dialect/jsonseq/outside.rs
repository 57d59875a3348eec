//! Text between the objects: line breaks, code fences, SSE framing, and text that does not belong there.

use super::rules;
use super::told::Told;
use crate::dialect::Output;
use crate::finding::{Report, Rule};
use crate::lex::fence::{Fence, is_json};
use crate::span::Place;

/// The current line outside objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    /// Start of the line, from its first non-blank character.
    line: String,
    /// Set if the line is longer than the part kept.
    full: bool,
    /// Set if the excess is not just blanks.
    long: bool,
    /// Place of the first non-blank character.
    start: Place,
    /// Offset after the last non-blank character.
    end: usize,
    /// Place after all text so far.
    at: Place,
    /// Set if an object has ended on this line.
    object: bool,
    /// An `event:` line whose data has not arrived.
    pub(super) named: Option<Named>,
    sse: bool,
    fenced: bool,
    glued: bool,
    /// The current line in full.
    whole: String,
    /// The last line in full.
    kept: String,
    /// Lines that are not part of the format: the answer if there is no other.
    prose: String,
    /// Set when the prose exceeds the hold limit or is not needed any more.
    over: bool,
}

/// An `event:` line (start of an SSE frame).
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) at: Place,
    pub(super) end: usize,
}

/// Meaning of the text before an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Begins {
    /// Set if the object is the data of an `event:` line.
    pub(super) framed: bool,
    /// Set on the first object that shares a line with another.
    pub(super) glued: bool,
    /// Frames that end here without data.
    pub(super) ended: Vec<Named>,
}

/// Bytes of a line that suffice to classify it.
const KEPT: usize = 256;

impl Outside {
    pub(super) fn start_at(&mut self, place: Place) {
        self.at = place;
    }

    /// Bytes of prose held back.
    pub(super) fn held(&self) -> usize {
        self.whole.len() + self.prose.len()
    }

    /// Discards the prose: there is an answer.
    pub(super) fn leave_prose(&mut self) {
        self.over = true;
        (self.whole, self.prose) = (String::new(), String::new());
    }

    /// Takes the prose around the objects.
    pub(super) fn take_prose(&mut self) -> Option<String> {
        let prose = std::mem::take(&mut self.prose);
        Some(prose.trim().to_owned()).filter(|prose| !prose.is_empty())
    }

    /// Keeps more of the current line; at most `limit` bytes are held back.
    pub(super) fn keep_whole(&mut self, piece: &str, limit: usize) {
        if self.over {
            return;
        }
        if self.held() + piece.len() > limit {
            return self.leave_prose();
        }
        self.whole.push_str(piece);
    }

    /// Pushes text of one line outside objects. Returns a frame that ended without data.
    pub(super) fn push(&mut self, piece: &str, told: &mut Told, out: &mut dyn Output) -> Option<Named> {
        let body = if self.line.is_empty() { piece.trim_start() } else { piece };
        let seen = body.trim_end();
        if !seen.is_empty() {
            let from = self.at.after(&piece[..piece.len() - body.len()]);
            if self.line.is_empty() {
                self.start = from;
            }
            self.end = from.offset + seen.len();
        }
        self.keep(body);
        self.at.advance(piece);
        if piece.ends_with('\n') { self.end_line(told, out) } else { None }
    }

    fn keep(&mut self, body: &str) {
        let room = if self.full { 0 } else { body.floor_char_boundary(KEPT - self.line.len()) };
        self.line.push_str(&body[..room]);
        self.full |= room < body.len();
        self.long |= !body[room..].trim().is_empty();
    }

    fn take(&mut self) -> String {
        self.full = false;
        self.kept = std::mem::take(&mut self.whole);
        std::mem::take(&mut self.line)
    }

    /// Begins an object.
    pub(super) fn object_begins(&mut self, told: &mut Told, out: &mut dyn Output) -> Begins {
        let prefix = self.take();
        let prefix = prefix.trim();
        let mut begins = Begins { framed: prefix == "data:" && !self.long, ..Begins::default() };
        if begins.framed {
            self.framing(told, out);
        } else if self.long || !prefix.is_empty() {
            begins.ended.extend(self.judge(prefix, told, out));
        }
        if !begins.framed {
            begins.ended.extend(self.named.take());
        }
        self.long = false;
        let second = self.object && !prefix.contains('[');
        begins.glued = second && !std::mem::replace(&mut self.glued, true);
        begins
    }

    pub(super) fn object_ends(&mut self, place: Place) {
        // If the next line ended the object, the object is the last of its own line.
        self.object = place.column > 1;
        self.at = place;
    }

    /// Begins a thought. The text before it on the line counts as a separate line. Returns a frame that ended
    /// without data.
    pub(super) fn thought_begins(&mut self, told: &mut Told, out: &mut dyn Output) -> Option<Named> {
        let line = self.take();
        let text = line.trim();
        let ended = if text.is_empty() { None } else { self.judge(text, told, out) };
        self.long = false;
        ended
    }

    /// Discards the current line and the prose.
    pub(super) fn forget(&mut self) {
        self.take();
        self.long = false;
        self.prose.clear();
    }

    /// Discards the prose: the text so far was reasoning.
    pub(super) fn drop_prose(&mut self) {
        self.prose.clear();
    }

    /// Ends a line, also at the end of the input.
    pub(super) fn end_line(&mut self, told: &mut Told, out: &mut dyn Output) -> Option<Named> {
        let line = self.take();
        let text = line.trim();
        if text.is_empty() && !self.prose.is_empty() && !self.over {
            self.prose.push('\n');
        }
        let ended = match text {
            "" if self.object => None,
            "" => self.named.take(),
            _ => self.judge(text, told, out),
        };
        self.long = false;
        self.object = false;
        ended
    }

    /// Classifies the text of a line. Returns a frame that ends here without data, because the next one
    /// begins.
    fn judge(&mut self, text: &str, told: &mut Told, out: &mut dyn Output) -> Option<Named> {
        if let Some((_, info)) = Fence::of(text) {
            self.fence(text, info.trim_start(), told, out);
        } else if let Some(name) = text.strip_prefix("event:").filter(|_| !self.long) {
            self.framing(told, out);
            let named = Named { name: name.trim().to_owned(), at: self.start, end: self.end };
            return self.named.replace(named);
        } else if !self.is_frame(text) {
            self.left_out(self.start, told, out);
        }
        None
    }

    /// Returns true if the line is part of a frame and carries no content.
    fn is_frame(&self, text: &str) -> bool {
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.trim();
        let number = value.bytes().all(|byte| byte.is_ascii_digit());
        self.sse
            && !self.long
            && match field {
                "data" => matches!(value, "" | "[DONE]"),
                "id" | "retry" => number,
                "" => value.is_empty(),
                _ => false,
            }
    }

    /// Handles a line that begins like a fence, followed by `info`. Anything after the language name is text.
    fn fence(&mut self, text: &str, info: &str, told: &mut Told, out: &mut dyn Output) {
        let language = info.split(char::is_whitespace).next().unwrap_or("");
        let opens = !std::mem::replace(&mut self.fenced, true);
        // The first fence is reported with its language, whichever it is.
        let known = opens || is_json(language);
        let mark = text.len() - info.len() + if known { language.len() } else { 0 };
        let rest = text[mark..].trim_start();
        if opens {
            let report = Report::new(
                rules::FENCED_REPLY,
                self.start,
                self.start.offset + mark,
                "the lines stand in a code fence",
            );
            told.add(report.repaired("fence removed"), out);
        }
        if !rest.is_empty() || self.long {
            let start = self.start.after(&text[..text.len() - rest.len()]);
            self.left_out(start, told, out);
        }
    }

    fn left_out(&mut self, start: Place, told: &mut Told, out: &mut dyn Output) {
        let kept = std::mem::take(&mut self.kept);
        let text = kept.trim();
        if !self.over && !text.is_empty() {
            self.prose.push_str(text);
            self.prose.push('\n');
        }
        let repair = if self.over { "left out" } else { "not used, unless there is no answer" };
        self.report(rules::LINE_NOT_OBJECT, start, "this is not a JSON object", repair, told, out);
    }

    fn framing(&mut self, told: &mut Told, out: &mut dyn Output) {
        if !std::mem::replace(&mut self.sse, true) {
            let message = "the lines imitate the frames of a transport";
            self.report(rules::SSE_FRAMING, self.start, message, "read as events", told, out);
        }
    }

    fn report(
        &self,
        rule: &'static Rule,
        start: Place,
        message: &str,
        repair: &str,
        told: &mut Told,
        out: &mut dyn Output,
    ) {
        told.add(Report::new(rule, start, self.end, message).repaired(repair), out);
    }
}
