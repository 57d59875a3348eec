//! Transcripts: the lines of an SSE stream, of JSON Lines or of a JSON array, made into events.

use serde_json::Value;

use super::Mark;
use super::check::{Core, Form};
use super::fields::{kind, shown};
use super::lines::Line;
use super::order::fault;

/// Makes events of lines.
#[derive(Debug)]
pub(super) struct Transcript {
    /// Longest data of one event, and longest array.
    limit: usize,
    /// Decided by the first line that is not blank, unless it was given.
    form: Option<Form>,
    first: bool,
    block: Block,
    array: Vec<u8>,
    array_overlong: bool,
}

/// The lines of one SSE event so far.
#[derive(Debug, Default)]
struct Block {
    /// From its first line to its last; `None` before the first.
    at: Option<Mark>,
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
        Transcript {
            limit,
            form,
            first: true,
            block: Block::default(),
            array: Vec::new(),
            array_overlong: false,
        }
    }

    /// Takes the next line.
    pub(super) fn line(&mut self, mut line: Line<'_>, core: &mut Core) {
        if std::mem::take(&mut self.first) {
            // One byte order mark at the start is allowed in SSE and harmless elsewhere.
            line.bytes = line.bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line.bytes);
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
            Some(Form::Array) => {
                self.array_overlong |= line.overlong || self.array.len() + line.bytes.len() >= self.limit;
                if !self.array_overlong {
                    self.array.extend_from_slice(line.bytes);
                    self.array.push(b'\n');
                }
            }
            Some(Form::JsonLines) | None => json_line(line, core),
        }
    }

    /// Takes the end of the input.
    pub(super) fn finish(&mut self, end: Mark, core: &mut Core) {
        match self.form {
            Some(Form::Sse) => {
                core.wire = true;
                if let Some(at) = self.block.at {
                    let message = "the stream ends without the blank line that sends its last event";
                    core.report(fault("sse_unterminated", at, message));
                    self.dispatch(core);
                }
            }
            Some(Form::Array) if self.array_overlong => {
                core.report(fault("limit_exceeded", end, "the array is longer than the limit"));
            }
            Some(Form::Array) => match serde_json::from_slice::<Vec<Value>>(&self.array) {
                Ok(events) => events.iter().for_each(|event| core.listed(event)),
                Err(error) => {
                    core.report(fault("event_json", end, format!("the array is not JSON: {error}")))
                }
            },
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
            Some(at) => Mark { end: line.at.end, ..at },
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
                core.report(fault("sse_framing", line.at, message));
            }
        }
    }

    /// Takes the blank line that ends an event.
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
            core.report(fault("sse_framing", at, message));
        }
        let value = if block.overlong {
            core.report(fault("limit_exceeded", at, "an event is longer than the limit"));
            None
        } else if block.datas == 0 {
            None
        } else {
            parse(&block.data, at, core)
        };
        let id = block.id.map(|id| String::from_utf8_lossy(&id).into_owned());
        if block.events == 0 {
            // What the data says of itself is still read, so that one missing line is one finding.
            if let Some(value) = value.filter(|value| value.get("event").is_some()) {
                core.value(&value, at);
            }
            return;
        }
        let name = String::from_utf8_lossy(&block.name);
        if !matches!(value, None | Some(Value::Object(_))) {
            core.report(fault("event_shape", at, "the data of an event is not a JSON object"));
        }
        core.event(&name, value.as_ref().and_then(Value::as_object), id.as_deref(), at);
    }
}

fn json_line(line: Line<'_>, core: &mut Core) {
    if line.bytes.trim_ascii().is_empty() {
        return;
    }
    if line.overlong {
        core.report(fault("limit_exceeded", line.at, "a line is longer than the limit"));
    } else if let Some(value) = parse(line.bytes, line.at, core) {
        core.value(&value, line.at);
    }
}

fn parse(bytes: &[u8], at: Mark, core: &mut Core) -> Option<Value> {
    if std::str::from_utf8(bytes).is_err() {
        core.report(fault("event_json", at, "an event is not UTF-8"));
        return None;
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            let message = match error.classify() {
                serde_json::error::Category::Eof => "an event is not complete JSON",
                _ => "an event is not JSON",
            };
            core.report(fault("event_json", at, message));
            None
        }
    }
}

/// The parts of an event in its JSON form: name, data and id.
pub(super) struct Parts<'a> {
    pub(super) name: &'a str,
    pub(super) data: Option<std::borrow::Cow<'a, serde_json::Map<String, Value>>>,
    pub(super) id: Option<String>,
}

/// Reads `{"event": NAME, "data": {...}}`, or the flat form with its fields beside the name (J-050).
pub(super) fn parts<'a>(value: &'a Value, at: Mark, core: &mut Core) -> Option<Parts<'a>> {
    use std::borrow::Cow;
    let Value::Object(object) = value else {
        core.report(fault("event_shape", at, format!("an event is {}, not an object", kind(value))));
        return None;
    };
    let Some(Value::String(name)) = object.get("event") else {
        core.report(fault("event_shape", at, "an object without the name of its event"));
        return None;
    };
    match object.get("data") {
        Some(Value::Object(data)) => {
            let id = object.get("id").filter(|id| !id.is_null());
            let id = id.map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
            Some(Parts { name, data: Some(Cow::Borrowed(data)), id })
        }
        Some(other) => {
            let message = format!("the data of an event is {}, not an object", kind(other));
            core.report(fault("event_shape", at, message));
            Some(Parts { name, data: None, id: None })
        }
        None => {
            if object.len() > 1 {
                core.report(fault(
                    "event_flat",
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
