//! Steps by which the value of a reply grows, for partial objects while it arrives.

use serde_json::Number;
use tambour::finding::FindingReport;
use tambour::lex::utf8::Utf8Decoder;
use tambour::limits::Limits;
use tambour::repair::json::{JsonEvent, JsonReader, JsonSink};

/// Step of building a value. Pieces of one string within a push are one step.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueStep {
    /// A value begins; it replaces an earlier one.
    Start,
    /// `{`
    ObjectStart,
    /// Key of the next value in the innermost object.
    Key(String),
    /// `}` or `]`
    End,
    /// `[`
    ArrayStart,
    /// A string begins.
    StringStart,
    /// Next piece of the string.
    StringDelta(String),
    /// The string is complete.
    StringEnd,
    /// A number.
    Number(Number),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// The value is complete.
    Complete,
}

/// Reads the value of a reply while it arrives, with repairs. Linear in the reply; holds no value. A value
/// that is not an object or array is not reported, since prose in front of the value may look like one.
pub struct PartialReader {
    utf8: Utf8Decoder,
    reader: JsonReader,
    /// Number of bytes that may still be read.
    bytes_left: usize,
    sink: StepSink,
}

#[derive(Default)]
struct StepSink {
    steps: Vec<ValueStep>,
    /// True between a value's start and its first event.
    is_at_start: bool,
    /// True within an object or an array.
    is_in_value: bool,
}

impl PartialReader {
    /// Creates a reader at the start of a reply, of which at most `limits.input` bytes are read.
    #[must_use]
    pub fn new(limits: &Limits) -> PartialReader {
        PartialReader {
            utf8: Utf8Decoder::default(),
            reader: JsonReader::new_chat(limits),
            bytes_left: limits.input,
            sink: StepSink::default(),
        }
    }

    /// Reads the next bytes; returns the steps since the last push.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<ValueStep> {
        let chunk = &chunk[..chunk.len().min(self.bytes_left)];
        self.bytes_left -= chunk.len();
        let PartialReader { utf8, reader, sink, .. } = self;
        utf8.push(chunk, &mut |text, _| reader.push(text, sink));
        std::mem::take(&mut self.sink.steps)
    }

    /// Ends the reply; open strings and brackets are closed.
    pub fn finish(&mut self) -> Vec<ValueStep> {
        let PartialReader { utf8, reader, sink, .. } = self;
        utf8.finish(&mut |text, _| reader.push(text, sink));
        reader.finish(sink);
        std::mem::take(&mut self.sink.steps)
    }
}

impl JsonSink for StepSink {
    fn event(&mut self, event: JsonEvent<'_>) {
        let is_bracket = matches!(event, JsonEvent::ObjectStart | JsonEvent::ArrayStart);
        if std::mem::take(&mut self.is_at_start) && is_bracket {
            self.is_in_value = true;
            self.steps.push(ValueStep::Start);
        }
        if matches!(event, JsonEvent::ValueStart(_)) {
            self.is_at_start = true;
            return;
        }
        if !self.is_in_value {
            return;
        }
        let step = match event {
            JsonEvent::ObjectStart => ValueStep::ObjectStart,
            JsonEvent::ArrayStart => ValueStep::ArrayStart,
            JsonEvent::Key { text, .. } => ValueStep::Key(text.to_owned()),
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => ValueStep::End,
            JsonEvent::StringStart => ValueStep::StringStart,
            JsonEvent::StringDelta(piece) => {
                if let Some(ValueStep::StringDelta(text)) = self.steps.last_mut() {
                    text.push_str(piece);
                    return;
                }
                ValueStep::StringDelta(piece.to_owned())
            }
            JsonEvent::StringEnd => ValueStep::StringEnd,
            JsonEvent::Number(number) => ValueStep::Number(number.clone()),
            JsonEvent::Bool(value) => ValueStep::Bool(value),
            JsonEvent::Null => ValueStep::Null,
            JsonEvent::ValueEnd(_) => {
                self.is_in_value = false;
                ValueStep::Complete
            }
            _ => return,
        };
        self.steps.push(step);
    }

    fn report(&mut self, _: FindingReport) {}
}
