//! Reader of transcripts: turns the lines of an SSE stream, JSON Lines or a JSON array into events.

use serde_json::Value;

use super::Extent;
use super::check::{Core, Form};
use super::fields::shown;
use super::lines::Line;
use super::order::fault;
use super::rules;
use crate::schema::type_name;
use crate::span::Place;

/// Turns lines into events.
#[derive(Debug)]
pub(super) struct Transcript {
    /// Most bytes of the data of one event, or of an array.
    limit: usize,
    /// Form, decided by the first non-blank line unless it was given.
    form: Option<Form>,
    first: bool,
    block: Block,
    array: Array,
}

/// Lines of the current SSE event.
#[derive(Debug, Default)]
struct Block {
    /// Extent from the first line to the last; `None` before the first.
    at: Option<Extent>,
    events: usize,
    name: Vec<u8>,
    datas: usize,
    data: Vec<u8>,
    overlong: bool,
    id: Option<Vec<u8>>,
    retry: bool,
}

impl Transcript {
    pub(super) fn new(form: Option<Form>, limit: usize) -> Transcript {
        Transcript { limit, form, first: true, block: Block::default(), array: Array::default() }
    }

    /// Reads the next line.
    pub(super) fn line(&mut self, mut line: Line<'_>, core: &mut Core) {
        if std::mem::take(&mut self.first) {
            // A byte order mark at the start is allowed in SSE and harmless otherwise.
            if let Some(bytes) = line.bytes.strip_prefix(b"\xEF\xBB\xBF") {
                line.bytes = bytes;
                line.at.place.advance("\u{FEFF}");
            }
        }
        if self.form.is_none() {
            self.form = match line.bytes.trim_ascii_start().first() {
                None => return,
                Some(b'{') => Some(Form::JsonLines),
                Some(b'[') => Some(Form::Array),
                Some(_) => Some(Form::Sse),
            };
        }
        match self.form {
            Some(Form::Sse) => {
                core.wire = true;
                self.sse(line, core);
            }
            Some(Form::Array) => self.array.line(line, self.limit),
            Some(Form::JsonLines) | None => json_line(line, core),
        }
    }

    /// Handles the end of the input.
    pub(super) fn finish(&mut self, end: Extent, core: &mut Core) {
        match self.form {
            Some(Form::Sse) => {
                core.wire = true;
                if let Some(at) = self.block.at {
                    let message = "the stream ends without the blank line that sends its last event";
                    core.report(fault(rules::SSE_UNTERMINATED, at, message));
                    self.dispatch(core);
                }
            }
            Some(Form::Array) => self.array.finish(end, core),
            Some(Form::JsonLines) | None => {}
        }
    }

    fn sse(&mut self, line: Line<'_>, core: &mut Core) {
        if line.bytes.is_empty() {
            return self.dispatch(core);
        }
        if line.bytes[0] == b':' {
            return;
        }
        let block = &mut self.block;
        block.at = Some(match block.at {
            None => line.at,
            Some(at) => Extent { end: line.at.end, ..at },
        });
        let (field, value) = match memchr::memchr(b':', line.bytes) {
            Some(colon) => (&line.bytes[..colon], &line.bytes[colon + 1..]),
            None => (line.bytes, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        block.overlong |= line.overlong;
        match field {
            b"event" => {
                block.events += 1;
                if block.events == 1 {
                    block.name = value.to_vec();
                }
            }
            b"data" => {
                block.datas += 1;
                if block.datas > 1 {
                    block.data.push(b'\n');
                }
                if block.data.len() + value.len() > self.limit {
                    block.overlong = true;
                } else {
                    block.data.extend_from_slice(value);
                }
            }
            b"id" => block.id = Some(value.to_vec()),
            b"retry" => block.retry = true,
            _ => {
                let message = format!("{} is no field of SSE", shown(&String::from_utf8_lossy(field)));
                core.report(fault(rules::SSE_FRAMING, line.at, message));
            }
        }
    }

    /// Handles the blank line that ends an event.
    fn dispatch(&mut self, core: &mut Core) {
        let block = std::mem::take(&mut self.block);
        let Some(at) = block.at else { return };
        if block.events == 0 && block.datas == 0 && block.id.is_none() {
            return; // Only `retry`, or lines that have their finding.
        }
        let framing = match (block.events, block.datas) {
            (1, 1) => None,
            (0, _) => Some("an event without an `event:` line"),
            (_, 0) => Some("an event without a `data:` line"),
            (1, _) => Some("an event with several `data:` lines"),
            _ => Some("an event with several `event:` lines"),
        };
        if let Some(message) = framing {
            core.report(fault(rules::SSE_FRAMING, at, message));
        }
        let value = if block.overlong {
            core.report(fault(rules::LIMIT_EXCEEDED, at, "an event is longer than the limit"));
            None
        } else if block.datas == 0 {
            None
        } else {
            parse(&block.data, at, core)
        };
        let id = block.id.map(|id| String::from_utf8_lossy(&id).into_owned());
        if block.events == 0 {
            // The name in the data is used instead, so that one missing line gives one finding.
            if let Some(value) = value.filter(|value| value.get("event").is_some()) {
                core.value(&value, at);
            }
            return;
        }
        let name = String::from_utf8_lossy(&block.name);
        if !matches!(value, None | Some(Value::Object(_))) {
            core.report(fault(rules::EVENT_SHAPE, at, "the data of an event is not a JSON object"));
        }
        core.event(&name, value.as_ref().and_then(Value::as_object), id.as_deref(), at);
    }
}

/// A JSON array of events, parsed at the end of the input.
#[derive(Debug, Default)]
struct Array {
    /// Bytes of the array, at the same distances as in the transcript.
    bytes: Vec<u8>,
    /// Offset of each line in the bytes, and its place.
    lines: Vec<(usize, Place)>,
    overlong: bool,
}

impl Array {
    fn line(&mut self, line: Line<'_>, limit: usize) {
        let place = line.at.place;
        let first = self.lines.first().map_or(place.offset, |(_, first)| first.offset);
        let at = place.offset - first;
        self.overlong |= line.overlong || at + line.bytes.len() >= limit;
        if self.overlong && !self.lines.is_empty() {
            return;
        }
        self.lines.push((at, place));
        if !self.overlong {
            // Line ends are white space in JSON, whatever their form.
            self.bytes.resize(at, b'\n');
            self.bytes.extend_from_slice(line.bytes);
        }
    }

    fn finish(&self, end: Extent, core: &mut Core) {
        let start = self.lines.first().map_or(end.place, |(_, place)| *place);
        let whole = Extent { place: start, end: end.end };
        if self.overlong {
            return core.report(fault(rules::LIMIT_EXCEEDED, whole, "the array is longer than the limit"));
        }
        match serde_json::from_slice::<Vec<Value>>(&self.bytes) {
            Ok(events) => {
                let mut lines = self.lines.iter().peekable();
                // Last computed place, and its offset in the bytes.
                let mut known = (0, start);
                for (event, (from, to)) in events.iter().zip(items(&self.bytes)) {
                    while let Some(line) = lines.next_if(|(at, _)| *at <= from) {
                        known = *line;
                    }
                    let passed = String::from_utf8_lossy(&self.bytes[known.0..from]);
                    known = (from, known.1.after(&passed));
                    core.value(event, Extent { place: known.1, end: start.offset + to });
                }
            }
            Err(error) => {
                core.report(fault(rules::EVENT_JSON, whole, format!("the array is not JSON: {error}")))
            }
        }
    }
}

/// Byte range of each item of a JSON array.
fn items(array: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let (mut depth, mut string, mut escaped) = (0usize, false, false);
    // Current item, up to its last byte that is not white space.
    let mut item: Option<(usize, usize)> = None;
    array.iter().enumerate().filter_map(move |(at, &byte)| {
        if string {
            string = byte != b'"' || escaped;
            escaped = byte == b'\\' && !escaped;
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
                b'"' => string = true,
                b' ' | b'\t' | b'\r' | b'\n' => return None,
                _ => {}
            }
            if depth == 1 && byte == b'[' && item.is_none() {
                return None;
            }
        }
        item = Some((item.map_or(at, |(from, _)| from), at + 1));
        None
    })
}

fn json_line(line: Line<'_>, core: &mut Core) {
    if line.bytes.trim_ascii().is_empty() {
        return;
    }
    if line.overlong {
        core.report(fault(rules::LIMIT_EXCEEDED, line.at, "a line is longer than the limit"));
    } else if let Some(value) = parse(line.bytes, line.at, core) {
        core.value(&value, line.at);
    }
}

fn parse(bytes: &[u8], at: Extent, core: &mut Core) -> Option<Value> {
    if std::str::from_utf8(bytes).is_err() {
        core.report(fault(rules::EVENT_JSON, at, "an event is not UTF-8"));
        return None;
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            let message = match error.classify() {
                serde_json::error::Category::Eof => "an event is not complete JSON",
                _ => "an event is not JSON",
            };
            core.report(fault(rules::EVENT_JSON, at, message));
            None
        }
    }
}

/// Parts of an event in JSON form: name, data and id.
pub(super) struct Parts<'a> {
    pub(super) name: &'a str,
    pub(super) data: Option<std::borrow::Cow<'a, serde_json::Map<String, Value>>>,
    pub(super) id: Option<String>,
}

/// Reads `{"event": NAME, "data": {...}}`, or the flat form with fields beside the name (J-050).
pub(super) fn parts<'a>(value: &'a Value, at: Extent, core: &mut Core) -> Option<Parts<'a>> {
    use std::borrow::Cow;
    let Value::Object(object) = value else {
        core.report(fault(
            rules::EVENT_SHAPE,
            at,
            format!("an event is {}, not an object", type_name(value)),
        ));
        return None;
    };
    let Some(Value::String(name)) = object.get("event") else {
        core.report(fault(rules::EVENT_SHAPE, at, "an object without the name of its event"));
        return None;
    };
    match object.get("data") {
        Some(Value::Object(data)) => {
            let id = object.get("id").filter(|id| !id.is_null());
            let id = id.map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
            Some(Parts { name, data: Some(Cow::Borrowed(data)), id })
        }
        Some(other) => {
            let message = format!("the data of an event is {}, not an object", type_name(other));
            core.report(fault(rules::EVENT_SHAPE, at, message));
            Some(Parts { name, data: None, id: None })
        }
        None => {
            if object.len() > 1 {
                core.report(fault(
                    rules::EVENT_FLAT,
                    at,
                    format!("{} has its fields beside its name", shown(name)),
                ));
            }
            let mut data = object.clone();
            data.shift_remove("event");
            Some(Parts { name, data: Some(Cow::Owned(data)), id: None })
        }
    }
}
