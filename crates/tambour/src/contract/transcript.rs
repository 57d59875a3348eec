//! Reader of transcripts: splits their bytes, in chunks of any size, into lines, and turns the lines of an
//! SSE stream, of JSON Lines or of a JSON array into events.

use serde_json::Value;

use super::check::{CheckerCore, TranscriptForm};
use super::fields::quote_name;
use super::order::fault_report;
use super::rules;
use crate::schema::type_name;
use crate::span::{Extent, Place};

/// Turns lines into events.
#[derive(Debug)]
pub(super) struct TranscriptReader {
    /// Maximum length in bytes of the data of one event, or of an array.
    limit: usize,
    /// Form, decided by the first non-blank line unless the caller chose one.
    form: Option<TranscriptForm>,
    /// True until the first line is read.
    is_first_line: bool,
    sse_event: SseEventLines,
    array: EventArray,
}

/// Lines of the current SSE event.
#[derive(Debug, Default)]
struct SseEventLines {
    /// Extent from the first line to the last; `None` before the first.
    extent: Option<Extent>,
    /// Number of `event:` lines.
    event_line_count: usize,
    /// Value of the first `event:` line.
    name: Vec<u8>,
    /// Number of `data:` lines.
    data_line_count: usize,
    /// Values of the `data:` lines, joined by line feeds.
    data: Vec<u8>,
    /// True if a line or the data exceeds the limit.
    is_overlong: bool,
    /// Value of the last `id:` line.
    id: Option<Vec<u8>>,
}

impl TranscriptReader {
    pub(super) fn new(form: Option<TranscriptForm>, limit: usize) -> TranscriptReader {
        TranscriptReader {
            limit,
            form,
            is_first_line: true,
            sse_event: SseEventLines::default(),
            array: EventArray::default(),
        }
    }

    /// Reads the next line.
    pub(super) fn push_line(&mut self, mut line: TranscriptLine<'_>, core: &mut CheckerCore) {
        if std::mem::take(&mut self.is_first_line) {
            // A byte order mark at the start is allowed in SSE and harmless otherwise.
            if let Some(bytes) = line.bytes.strip_prefix(b"\xEF\xBB\xBF") {
                line.bytes = bytes;
                line.extent.place.advance("\u{FEFF}");
            }
        }
        if self.form.is_none() {
            self.form = match line.bytes.trim_ascii_start().first() {
                None => return,
                Some(b'{') => Some(TranscriptForm::JsonLines),
                Some(b'[') => Some(TranscriptForm::Array),
                Some(_) => Some(TranscriptForm::Sse),
            };
        }
        match self.form {
            Some(TranscriptForm::Sse) => {
                core.is_sse = true;
                self.push_sse_line(line, core);
            }
            Some(TranscriptForm::Array) => self.array.push_line(line, self.limit),
            Some(TranscriptForm::JsonLines) | None => read_json_line(line, core),
        }
    }

    /// Handles the end of the input.
    pub(super) fn finish(&mut self, end: Extent, core: &mut CheckerCore) {
        match self.form {
            Some(TranscriptForm::Sse) => {
                core.is_sse = true;
                if let Some(at) = self.sse_event.extent {
                    let message = "the stream ends without the blank line that sends its last event";
                    core.report(fault_report(rules::SSE_UNTERMINATED, at, message));
                    self.dispatch(core);
                }
            }
            Some(TranscriptForm::Array) => self.array.finish(end, core),
            Some(TranscriptForm::JsonLines) | None => {}
        }
    }

    /// Reads a line of an SSE transcript.
    fn push_sse_line(&mut self, line: TranscriptLine<'_>, core: &mut CheckerCore) {
        if line.bytes.is_empty() {
            return self.dispatch(core);
        }
        if line.bytes[0] == b':' {
            return;
        }
        let event = &mut self.sse_event;
        event.extent = Some(match event.extent {
            None => line.extent,
            Some(at) => Extent { end: line.extent.end, ..at },
        });
        let (field, value) = match memchr::memchr(b':', line.bytes) {
            Some(colon) => (&line.bytes[..colon], &line.bytes[colon + 1..]),
            None => (line.bytes, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        event.is_overlong |= line.is_overlong;
        match field {
            b"event" => {
                event.event_line_count += 1;
                if event.event_line_count == 1 {
                    event.name = value.to_vec();
                }
            }
            b"data" => {
                event.data_line_count += 1;
                if event.data_line_count > 1 {
                    event.data.push(b'\n');
                }
                if event.data.len() + value.len() > self.limit {
                    event.is_overlong = true;
                } else {
                    event.data.extend_from_slice(value);
                }
            }
            b"id" => event.id = Some(value.to_vec()),
            b"retry" => {}
            _ => {
                let message = format!("{} is not an SSE field", quote_name(&String::from_utf8_lossy(field)));
                core.report(fault_report(rules::SSE_FRAMING, line.extent, message));
            }
        }
    }

    /// Handles the blank line that ends an event.
    fn dispatch(&mut self, core: &mut CheckerCore) {
        let event = std::mem::take(&mut self.sse_event);
        let Some(at) = event.extent else { return };
        if event.event_line_count == 0 && event.data_line_count == 0 && event.id.is_none() {
            return; // Only `retry`, or unknown fields, which are reported already.
        }
        let framing_fault = match (event.event_line_count, event.data_line_count) {
            (1, 1) => None,
            (0, _) => Some("an event without an `event:` line"),
            (_, 0) => Some("an event without a `data:` line"),
            (1, _) => Some("an event with several `data:` lines"),
            _ => Some("an event with several `event:` lines"),
        };
        if let Some(message) = framing_fault {
            core.report(fault_report(rules::SSE_FRAMING, at, message));
        }
        let value = if event.is_overlong {
            core.report(fault_report(rules::LIMIT_EXCEEDED, at, "an event is longer than the limit"));
            None
        } else if event.data_line_count == 0 {
            None
        } else {
            parse_event(&event.data, at, core)
        };
        let id = event.id.map(|id| String::from_utf8_lossy(&id).into_owned());
        if event.event_line_count == 0 {
            // The name in the data is used instead, so that one missing line gives one finding.
            if let Some(value) = value.filter(|value| value.get("event").is_some()) {
                core.push_value(&value, at);
            }
            return;
        }
        let name = String::from_utf8_lossy(&event.name);
        if !matches!(value, None | Some(Value::Object(_))) {
            core.report(fault_report(rules::EVENT_SHAPE, at, "the data of an event is not a JSON object"));
        }
        core.push_event(&name, value.as_ref().and_then(Value::as_object), id.as_deref(), at);
    }
}

/// A JSON array of events, parsed at the end of the input.
#[derive(Debug, Default)]
struct EventArray {
    /// Bytes of the array: its lines, as far apart as in the transcript, with line feeds between them.
    bytes: Vec<u8>,
    /// Start of each line: offset in `bytes`, and place in the transcript.
    lines: Vec<(usize, Place)>,
    /// True if a line or the array exceeds the limit; later bytes are not kept.
    is_overlong: bool,
}

impl EventArray {
    /// Adds a line of the array.
    fn push_line(&mut self, line: TranscriptLine<'_>, limit: usize) {
        let place = line.extent.place;
        let array_offset = self.lines.first().map_or(place.offset, |(_, first)| first.offset);
        let at = place.offset - array_offset;
        self.is_overlong |= line.is_overlong || at + line.bytes.len() >= limit;
        // The first line is kept in any case: the report of the limit is placed there.
        if self.is_overlong && !self.lines.is_empty() {
            return;
        }
        self.lines.push((at, place));
        if !self.is_overlong {
            // Line ends are white space in JSON, whatever their form.
            self.bytes.resize(at, b'\n');
            self.bytes.extend_from_slice(line.bytes);
        }
    }

    /// Parses the array and passes its events on.
    fn finish(&self, end: Extent, core: &mut CheckerCore) {
        let start = self.lines.first().map_or(end.place, |(_, place)| *place);
        let extent = Extent { place: start, end: end.end };
        if self.is_overlong {
            return core.report(fault_report(
                rules::LIMIT_EXCEEDED,
                extent,
                "the array is longer than the limit",
            ));
        }
        match serde_json::from_slice::<Vec<Value>>(&self.bytes) {
            Ok(events) => {
                let mut lines = self.lines.iter().peekable();
                // Nearest known position before the event: offset in `bytes`, and place.
                let (mut base_offset, mut base_place) = (0, start);
                for (event, (from, to)) in events.iter().zip(item_ranges(&self.bytes)) {
                    while let Some(line) = lines.next_if(|(at, _)| *at <= from) {
                        (base_offset, base_place) = *line;
                    }
                    let text = String::from_utf8_lossy(&self.bytes[base_offset..from]);
                    (base_offset, base_place) = (from, base_place.end_of(&text));
                    core.push_value(event, Extent { place: base_place, end: start.offset + to });
                }
            }
            Err(error) => core.report(fault_report(
                rules::EVENT_JSON,
                extent,
                format!("the array is not JSON: {error}"),
            )),
        }
    }
}

/// Byte range of each item of a JSON array.
fn item_ranges(array: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let (mut depth, mut is_in_string, mut is_escaped) = (0usize, false, false);
    // Range of the current item, up to its last byte that is not white space.
    let mut item: Option<(usize, usize)> = None;
    array.iter().enumerate().filter_map(move |(at, &byte)| {
        if is_in_string {
            is_in_string = byte != b'"' || is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
        } else {
            match byte {
                b',' if depth == 1 => return item.take(),
                b'[' | b'{' => depth += 1,
                b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return item.take();
                    }
                }
                b'"' => is_in_string = true,
                b' ' | b'\t' | b'\r' | b'\n' => return None,
                _ => {}
            }
            // The bracket that opens the array itself.
            if depth == 1 && byte == b'[' && item.is_none() {
                return None;
            }
        }
        item = Some((item.map_or(at, |(from, _)| from), at + 1));
        None
    })
}

/// Reads a line of JSON Lines; blank ones are skipped.
fn read_json_line(line: TranscriptLine<'_>, core: &mut CheckerCore) {
    if line.bytes.trim_ascii().is_empty() {
        return;
    }
    if line.is_overlong {
        core.report(fault_report(rules::LIMIT_EXCEEDED, line.extent, "a line is longer than the limit"));
    } else if let Some(value) = parse_event(line.bytes, line.extent, core) {
        core.push_value(&value, line.extent);
    }
}

/// Parses an event, or the data of an event; reports a fault and returns `None` if it is not JSON.
fn parse_event(bytes: &[u8], at: Extent, core: &mut CheckerCore) -> Option<Value> {
    if std::str::from_utf8(bytes).is_err() {
        core.report(fault_report(rules::EVENT_JSON, at, "an event is not UTF-8"));
        return None;
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            let message = match error.classify() {
                serde_json::error::Category::Eof => "an event is not complete JSON",
                _ => "an event is not JSON",
            };
            core.report(fault_report(rules::EVENT_JSON, at, message));
            None
        }
    }
}

/// Parts of an event in JSON form.
pub(super) struct EventParts<'a> {
    pub(super) name: &'a str,
    /// Fields, or `None` if they are not an object, which is reported already.
    pub(super) data: Option<std::borrow::Cow<'a, serde_json::Map<String, Value>>>,
    pub(super) id: Option<String>,
}

/// Reads `{"event": NAME, "data": {...}}`, or the flat form `{"event": NAME, ...}` with the fields in the
/// same object (J-050). Reports a value without a name and returns `None`.
pub(super) fn split_event<'a>(
    value: &'a Value,
    at: Extent,
    core: &mut CheckerCore,
) -> Option<EventParts<'a>> {
    use std::borrow::Cow;
    let Value::Object(object) = value else {
        core.report(fault_report(
            rules::EVENT_SHAPE,
            at,
            format!("an event is {}, not an object", type_name(value)),
        ));
        return None;
    };
    let Some(Value::String(name)) = object.get("event") else {
        core.report(fault_report(rules::EVENT_SHAPE, at, "an object without the name of its event"));
        return None;
    };
    match object.get("data") {
        Some(Value::Object(data)) => {
            let id = object.get("id").filter(|id| !id.is_null());
            let id = id.map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
            Some(EventParts { name, data: Some(Cow::Borrowed(data)), id })
        }
        Some(other) => {
            let message = format!("the data of an event is {}, not an object", type_name(other));
            core.report(fault_report(rules::EVENT_SHAPE, at, message));
            Some(EventParts { name, data: None, id: None })
        }
        None => {
            if object.len() > 1 {
                core.report(fault_report(
                    rules::EVENT_FLAT,
                    at,
                    format!("{} has its fields beside `event`, not in `data`", quote_name(name)),
                ));
            }
            let mut data = object.clone();
            data.shift_remove("event");
            Some(EventParts { name, data: Some(Cow::Owned(data)), id: None })
        }
    }
}

/// Splits bytes that arrive in chunks into lines: a line feed, a carriage return or both end a line.
#[derive(Debug)]
pub(super) struct TranscriptLines {
    /// Maximum number of bytes of a line that are kept.
    limit: usize,
    /// Kept bytes of the current line.
    buffer: Vec<u8>,
    /// Number of bytes of the current line, kept or not.
    length: usize,
    /// Number of Unicode scalar values of the current line, kept or not.
    scalar_count: u32,
    /// Start of the current line.
    place: Place,
    /// True if the last byte was a carriage return: a line feed after it belongs to the same line end.
    is_after_cr: bool,
}

/// One line, without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct TranscriptLine<'a> {
    /// Bytes, truncated at the limit if the line is longer.
    pub(super) bytes: &'a [u8],
    pub(super) extent: Extent,
    pub(super) is_overlong: bool,
}

impl TranscriptLines {
    pub(super) fn new(limit: usize) -> TranscriptLines {
        TranscriptLines {
            limit,
            buffer: Vec::new(),
            length: 0,
            scalar_count: 0,
            place: Place::START,
            is_after_cr: false,
        }
    }

    /// Reads the next bytes and passes on each completed line.
    pub(super) fn push(&mut self, mut bytes: &[u8], out: &mut dyn FnMut(TranscriptLine<'_>)) {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.is_after_cr) && first == b'\n' {
                self.place = Place { offset: self.place.offset + 1, line: self.place.line + 1, column: 1 };
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            self.append(piece);
            let Some(end) = end else { return };
            self.end_line(out);
            // A carriage return ends a line of the transcript, but places count only line feeds ([`Place`]).
            self.place = if bytes[end] == b'\n' {
                Place { offset: self.place.offset + 1, line: self.place.line + 1, column: 1 }
            } else {
                self.is_after_cr = true;
                Place { offset: self.place.offset + 1, column: self.place.column + 1, ..self.place }
            };
            bytes = &bytes[end + 1..];
        }
    }

    /// Passes on the last line if its end is missing; returns the place of the end.
    pub(super) fn finish(&mut self, out: &mut dyn FnMut(TranscriptLine<'_>)) -> Place {
        if self.length > 0 {
            self.end_line(out);
        }
        self.place
    }

    /// Appends bytes to the current line.
    fn append(&mut self, piece: &[u8]) {
        let room = self.limit.saturating_sub(self.buffer.len());
        self.buffer.extend_from_slice(&piece[..room.min(piece.len())]);
        self.length += piece.len();
        // Counts the first byte of each scalar value: the others have the form 0b10xxxxxx, below -64 as `i8`.
        self.scalar_count += piece.iter().map(|&byte| u32::from(byte as i8 >= -64)).sum::<u32>();
    }

    /// Passes on the current line and begins the next one at its end.
    fn end_line(&mut self, out: &mut dyn FnMut(TranscriptLine<'_>)) {
        let end = self.place.offset + self.length;
        let extent = Extent { place: self.place, end };
        out(TranscriptLine { bytes: &self.buffer, extent, is_overlong: self.length > self.buffer.len() });
        self.place =
            Place { offset: end, column: self.place.column.saturating_add(self.scalar_count), ..self.place };
        self.buffer.clear();
        self.length = 0;
        self.scalar_count = 0;
    }
}
