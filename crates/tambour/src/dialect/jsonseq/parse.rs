//! Lines to events: which object is which event, and where its fields are. The text of a delta is handed on while its
//! line is still arriving.

use serde_json::{Map, Value};

use super::order::{Order, Target, row_of};
use super::rules;
use super::text::Between;
use crate::dialect::Output;
use crate::event::{EventKind, kind_of};
use crate::finding::{Report, Rule};
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::{Builder, Built, End, JsonEvent, JsonSink, find_in_string};
use crate::span::Place;

/// The lines of one reply.
pub(super) struct Lines {
    pub(super) order: Order,
    pub(super) text: Between,
    /// Whether an event has come.
    pub(super) begun: bool,
    /// Whether the input has ended.
    pub(super) finishing: bool,
    builder: Builder,
    line: Line,
    pretty: bool,
    limits: Limits,
}

/// What is known of the object under way.
#[derive(Default)]
struct Line {
    at: Place,
    depth: usize,
    array: bool,
    /// The object is the data of a named frame.
    framed: bool,
    top: String,
    sub: String,
    name: String,
    /// Whether the string under way is the event's name.
    naming: bool,
    id: Option<Value>,
    id_text: String,
    id_string: bool,
    /// Where the text of a delta goes; set once, when the text begins.
    target: Option<Target>,
    streaming: bool,
    filled: bool,
}

/// Lends the lines to the JSON reader.
pub(super) struct Feed<'a> {
    pub(super) lines: &'a mut Lines,
    pub(super) out: &'a mut dyn Output,
}

impl JsonSink for Feed<'_> {
    #[inline]
    fn event(&mut self, event: JsonEvent<'_>) {
        self.lines.see(&event, self.out);
    }

    fn report(&mut self, report: Report) {
        self.out.report(report);
    }
}

impl Lines {
    pub(super) fn new(options: &Options) -> Lines {
        Lines {
            order: Order::new(options),
            text: Between::default(),
            begun: false,
            finishing: false,
            builder: Builder::new(),
            line: Line::default(),
            pretty: false,
            limits: options.limits.clone(),
        }
    }

    #[inline]
    fn see(&mut self, event: &JsonEvent<'_>, out: &mut dyn Output) {
        if let JsonEvent::StringDelta(text) = event
            && self.line.streaming
        {
            let target = self.line.target.unwrap_or(Target::Nowhere);
            self.line.filled = true;
            return self.order.delta(target, text, self.line.at, out);
        }
        match event {
            JsonEvent::Text(text) => {
                // Line by line, so that findings come in order however the reply was cut.
                for piece in text.split_inclusive('\n') {
                    if let Some((name, place)) = self.text.push(piece, out) {
                        self.finish_event(&name, &Map::new(), place, place.offset, out);
                    }
                }
                return;
            }
            JsonEvent::ValueStart(start) => {
                let framed = self.text.object_begins(start.place, out);
                self.line = Line { at: start.place, framed, ..Line::default() };
                if framed && let Some((name, _)) = &self.text.named {
                    self.line.name.clone_from(name);
                }
            }
            JsonEvent::ObjectStart => self.line.depth += 1,
            JsonEvent::ArrayStart => {
                self.line.array |= self.line.depth == 0;
                self.line.depth += 1;
            }
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => self.line.depth -= 1,
            JsonEvent::Key { text, depth: 1, .. } => {
                self.line.top.clear();
                self.line.top.push_str(text);
                self.line.sub.clear();
            }
            JsonEvent::Key { text, depth: 2, .. } => {
                self.line.sub.clear();
                self.line.sub.push_str(text);
            }
            JsonEvent::StringStart => self.string_begins(out),
            JsonEvent::StringDelta(text) if self.line.naming => self.line.name.push_str(text),
            JsonEvent::StringDelta(text) if self.line.id_string => self.line.id_text.push_str(text),
            JsonEvent::StringEnd => {
                let line = &mut self.line;
                line.naming = false;
                line.streaming = false;
                if std::mem::take(&mut line.id_string) {
                    line.id = Some(Value::from(std::mem::take(&mut line.id_text)));
                }
            }
            JsonEvent::Number(number) if self.line.is_field("id") => {
                self.line.id = Some(Value::Number((*number).clone()));
            }
            _ => {}
        }
        if let Some(built) = self.builder.see(event) {
            self.object(&built, out);
        }
    }

    /// A string begins: the event's name, an id, or the text of a delta that can be handed on at once.
    fn string_begins(&mut self, out: &mut dyn Output) {
        let line = &mut self.line;
        line.naming = line.depth == 1 && line.top == "event" && !line.framed && line.name.is_empty();
        line.id_string = line.is_field("id");
        if !line.is_field("text") || line.target.is_some() || line.array {
            return;
        }
        let target = match line.name.as_str() {
            "final_delta" => self.order.final_delta(line.at, out),
            "phase_delta" if line.id.is_some() => self.order.phase_delta(line.id.as_ref(), line.at, out),
            _ => return,
        };
        self.begun = true;
        line.target = Some(target);
        line.streaming = true;
    }

    /// A whole value.
    fn object(&mut self, built: &Built, out: &mut dyn Output) {
        let (at, end) = (built.start.place, built.end);
        self.text.object_ends(end.place);
        for duplicate in &built.duplicates {
            out.report(duplicate.clone());
        }
        if end.place.line > at.line && !std::mem::replace(&mut self.pretty, true) && !self.line.array {
            self.found(rules::LINES_PRETTY, at, "an object over several lines", "read as one");
        }
        match &built.value {
            Value::Object(object) => self.event(object, &end, at, out),
            Value::Array(items) if items.iter().any(Value::is_object) => {
                self.found(
                    rules::LINES_IN_ARRAY,
                    at,
                    "events as items of an array",
                    "read one after the other",
                );
                for item in items {
                    if let Value::Object(object) = item {
                        self.line = Line { at, ..Line::default() };
                        self.event(object, &end, at, out);
                    }
                }
            }
            _ => self.found(rules::LINE_NOT_OBJECT, at, "this is not a JSON object", "left out"),
        }
        self.flush(end.offset, out);
    }

    /// One object: an event, or something else.
    fn event(&mut self, object: &Map<String, Value>, end: &End, at: Place, out: &mut dyn Output) {
        if self.line.framed {
            let named = self.text.named.take();
            let name = named.map_or_else(String::new, |(name, _)| name);
            if !name.is_empty() {
                return self.fields(&name, object, end, at, out);
            }
        }
        let name = match object.get("event") {
            Some(Value::String(name)) => name.trim().to_owned(),
            Some(_) => {
                let message = "`event` is not a string";
                return self.order.found_on(rules::FIELD_TYPE, "J-051", at, message, "left out");
            }
            None => return self.found(rules::EVENT_MISSING, at, "the object names no event", "left out"),
        };
        let nested;
        let data = match object.get("data") {
            Some(Value::Object(data)) => data,
            Some(text @ Value::String(_)) => {
                match find_in_string(text, &self.limits).and_then(|found| found.value) {
                    Some(Value::Object(data)) => {
                        nested = data;
                        let message = "`data` is an object written as a string";
                        self.order.found_on(rules::FIELD_TYPE, "J-051", at, message, "read as the object");
                        &nested
                    }
                    _ => object,
                }
            }
            _ => object,
        };
        if std::ptr::eq(data, object) {
            let mut data = object.clone();
            data.shift_remove("event");
            if data.get("data").is_some_and(|data| data.is_null()) {
                data.shift_remove("data");
            }
            if kind_of(&name) == Some(EventKind::Contract) {
                self.found(
                    rules::DATA_FLAT,
                    at,
                    "the fields stand beside `event`, not in `data`",
                    "read all the same",
                );
            }
            return self.fields(&name, &data, end, at, out);
        }
        self.fields(&name, data, end, at, out);
    }

    /// An event with its fields.
    fn fields(&mut self, name: &str, data: &Map<String, Value>, end: &End, at: Place, out: &mut dyn Output) {
        let streamed = self.line.target.is_some();
        if end.closed_by_us && self.finishing {
            let repair = if streamed { "the text so far is kept" } else { "left out" };
            self.found(rules::LINE_CUT, at, "the reply ends inside a line", repair);
            if !streamed {
                return;
            }
        }
        if streamed {
            if !self.line.filled {
                self.order.delta_empty(name, at, "the text of a delta is empty");
            }
            return;
        }
        self.finish_event(name, data, at, end.offset, out);
    }

    /// A whole event whose text has not been handed on.
    fn finish_event(
        &mut self,
        name: &str,
        data: &Map<String, Value>,
        at: Place,
        end: usize,
        out: &mut dyn Output,
    ) {
        match kind_of(name) {
            Some(EventKind::Contract) => {}
            Some(EventKind::System) => {
                let message = format!("a model writes no `{name}`");
                self.found(rules::EVENT_SPOOFED, at, message, "left out");
                return self.flush(end, out);
            }
            Some(EventKind::Extension) | None => {
                let message = format!("`{name}` is not an event of the contract");
                self.found(rules::EVENT_UNKNOWN, at, message, "left out");
                return self.flush(end, out);
            }
        }
        self.begun = true;
        if matches!(name, "phase_delta" | "final_delta") {
            match data.get("text") {
                Some(Value::String(text)) => {
                    let target = match name {
                        "final_delta" => self.order.final_delta(at, out),
                        _ => self.order.phase_delta(data.get("id"), at, out),
                    };
                    if text.is_empty() {
                        self.order.delta_empty(name, at, "the text of a delta is empty");
                    }
                    self.order.delta(target, text, at, out);
                }
                Some(_) => {
                    let (row, message) = (row_of(name), "`text` is not a string");
                    self.order.found_on(rules::FIELD_TYPE, row, at, message, "event left out");
                }
                None => self.order.delta_empty(name, at, "the delta has no `text`"),
            }
        } else {
            self.order.event(name, data, at, end, out);
        }
        self.flush(end, out);
    }

    /// The end of the input, after the last object.
    pub(super) fn end_text(&mut self, end: Place, out: &mut dyn Output) {
        let ended = self.text.end_line(out).or_else(|| self.text.named.take());
        if let Some((name, place)) = ended {
            self.finish_event(&name, &Map::new(), place, end.offset, out);
        }
        self.flush(end.offset, out);
    }

    fn found(&mut self, rule: &'static Rule, at: Place, message: impl Into<String>, repair: &str) {
        self.order.reports.push(Report::new(rule, at, at.offset, message).repaired(repair));
    }

    /// Hands on the findings of a line, now that its end is known.
    fn flush(&mut self, end: usize, out: &mut dyn Output) {
        for mut report in self.order.reports.drain(..) {
            report.end = end;
            out.report(report);
        }
    }
}

impl Line {
    /// Whether the value under way is that field of the event.
    fn is_field(&self, name: &str) -> bool {
        match self.depth {
            1 => self.top == name && self.top != "event",
            2 => self.top == "data" && self.sub == name && !self.framed,
            _ => false,
        }
    }
}
