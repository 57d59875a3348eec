//! Prints values from reader events as JSON text in one line, without loss, in little more memory than the
//! source.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Number;

use super::builder::BuiltValue;
use super::doubt::ValueDoubts;
use super::event::{JsonEvent, ValueEnd, ValueStart};
use super::keys::{self, DuplicateKey, KeyIndex};
use super::members::MemberPlaces;
use crate::span::{Extent, Place};

/// Prints the value of the events it receives. Offsets have 32 bits to save memory, since there may be a
/// member for every few bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonPrinter {
    /// Text printed so far.
    text: String,
    open_frames: Vec<PrinterFrame>,
    /// Members of all open objects.
    members: Vec<PrintedMember>,
    /// Ranges in `text` of members whose key occurred again; they are cut out at the end.
    dropped_ranges: Vec<Range<u32>>,
    start: Option<ValueStart>,
    duplicates: Vec<DuplicateKey>,
    is_too_large: bool,
}

/// An open object or array.
#[derive(Clone, Debug)]
struct PrinterFrame {
    is_object: bool,
    /// Index in [`JsonPrinter::members`] of its first member.
    first_member: usize,
    /// True if an item or member of it has begun.
    has_content: bool,
    /// Index of the member read last, among the members of this object.
    last_member: usize,
    /// Hash index of its keys, once there are many.
    index: Option<Box<KeyIndex>>,
}

/// A member of an object.
#[derive(Clone, Debug)]
struct PrintedMember {
    /// Offset in the printed text of the comma before the key, or of the key if there is no comma.
    start: u32,
    /// Place in the source: byte offset, line and column.
    offset: u32,
    line: u32,
    column: u32,
    /// Byte offset in the source of the next member, where this one ends.
    source_end: u32,
}

impl PrintedMember {
    fn new(start: usize, place: Place) -> PrintedMember {
        PrintedMember {
            start: to_u32(start),
            offset: to_u32(place.offset),
            line: place.line,
            column: place.column,
            source_end: 0,
        }
    }

    /// Printed text from the key on.
    fn printed_text<'t>(&self, text: &'t str) -> &'t str {
        text[self.start as usize..].trim_start_matches(',')
    }

    /// Printed key, with its quotes.
    fn key<'t>(&self, text: &'t str) -> &'t str {
        let text = self.printed_text(text);
        &text[..string_len(text)]
    }

    fn place(&self) -> Place {
        Place { offset: self.offset as usize, line: self.line, column: self.column }
    }
}

/// Converts an offset; one that is too large makes the whole value too large.
fn to_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

impl JsonPrinter {
    /// Returns whether the last value was too large for 32-bit offsets.
    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Reads the next event; returns the text at [`JsonEvent::ValueEnd`].
    pub(super) fn push_event(&mut self, event: &JsonEvent<'_>) -> Option<BuiltValue<String>> {
        match *event {
            JsonEvent::Text(_)
            | JsonEvent::Comment(_)
            | JsonEvent::ThoughtStart(_)
            | JsonEvent::Thought(_)
            | JsonEvent::ThoughtEnd(..) => {}
            JsonEvent::ValueStart(start) => {
                self.start = Some(start);
                self.text.clear();
                self.open_frames.clear();
                self.members.clear();
                self.is_too_large = false;
            }
            JsonEvent::ObjectStart => self.open_frame(true),
            JsonEvent::ArrayStart => self.open_frame(false),
            JsonEvent::Key { text, place, .. } => self.push_key(text, place.place()),
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                if let Some(frame) = self.open_frames.pop() {
                    self.members.truncate(frame.first_member);
                    self.text.push(if frame.is_object { '}' } else { ']' });
                }
            }
            JsonEvent::StringStart => {
                self.begin_item();
                self.text.push('"');
            }
            JsonEvent::StringDelta(text) => escape_into(text, &mut self.text),
            JsonEvent::StringEnd => self.text.push('"'),
            JsonEvent::Number(number) => self.push_number(number),
            JsonEvent::Digits(digits) => self.push_word(digits),
            JsonEvent::Bool(value) => self.push_word(if value { "true" } else { "false" }),
            JsonEvent::Null => self.push_word("null"),
            JsonEvent::ValueEnd(end) => return self.finish(end),
        }
        None
    }

    fn open_frame(&mut self, is_object: bool) {
        self.begin_item();
        self.text.push(if is_object { '{' } else { '[' });
        self.open_frames.push(PrinterFrame {
            is_object,
            first_member: self.members.len(),
            has_content: false,
            last_member: 0,
            index: None,
        });
    }

    /// Begins an item; within an array, adds the comma before it.
    fn begin_item(&mut self) {
        if let Some(frame) = self.open_frames.last_mut().filter(|frame| !frame.is_object)
            && std::mem::replace(&mut frame.has_content, true)
        {
            self.text.push(',');
        }
    }

    /// Appends an item that is written without quotes.
    fn push_word(&mut self, word: &str) {
        self.begin_item();
        self.text.push_str(word);
    }

    fn push_number(&mut self, number: &Number) {
        self.push_word(&number.to_string());
    }

    /// Appends a key and its colon. A repeated key takes the index of the earlier one, whose range is
    /// dropped.
    fn push_key(&mut self, key: &str, place: Place) {
        let depth = self.open_frames.len();
        keys::end_duplicates(&mut self.duplicates, depth, place.offset);
        let Some(frame) = self.open_frames.last_mut() else { return };
        let members = &mut self.members[frame.first_member..];
        if std::mem::replace(&mut frame.has_content, true) {
            members[frame.last_member].source_end = to_u32(place.offset);
        }
        let member = PrintedMember::new(self.text.len(), place);
        if !members.is_empty() {
            self.text.push(',');
        }
        self.text.push('"');
        escape_into(key, &mut self.text);
        self.text.push('"');
        let (text, key_at) = (&self.text, |at: usize| members[at].key(&self.text));
        let replaces_earlier = false;
        let earlier_index =
            keys::find_key(members.len(), key_at, member.key(text), &mut frame.index, replaces_earlier);
        frame.last_member = earlier_index.unwrap_or(members.len());
        if let Some(at) = earlier_index {
            let replaced_member = std::mem::replace(&mut members[at], member);
            let end = text.len() - replaced_member.printed_text(text).len()
                + self::member_len(replaced_member.printed_text(text));
            match self.dropped_ranges.last_mut() {
                Some(range) if range.end == replaced_member.start => range.end = to_u32(end),
                _ => self.dropped_ranges.push(replaced_member.start..to_u32(end)),
            }
            DuplicateKey::add(
                &mut self.duplicates,
                key,
                Extent { place: replaced_member.place(), end: replaced_member.source_end as usize },
                place,
                depth,
            );
        } else {
            self.members.push(member);
        }
        self.text.push(':');
    }

    fn finish(&mut self, end: ValueEnd) -> Option<BuiltValue<String>> {
        let start = self.start.take()?;
        let mut value = std::mem::take(&mut self.text);
        let dropped_ranges = std::mem::take(&mut self.dropped_ranges);
        let mut duplicates = std::mem::take(&mut self.duplicates);
        self.is_too_large = value.len().max(end.offset) >= u32::MAX as usize;
        if self.is_too_large {
            return None;
        }
        if !dropped_ranges.is_empty() {
            value = remove_members(&value, dropped_ranges);
        }
        keys::end_duplicates(&mut duplicates, 0, end.offset);
        let (doubts, members) = (ValueDoubts::default(), MemberPlaces::default());
        Some(BuiltValue { value, start, end, duplicates, doubts, members })
    }
}

/// Length of the JSON string at the start of `text`, with its quotes.
fn string_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(stop) = bytes.get(at..).and_then(|unread| memchr::memchr2(b'"', b'\\', unread)) {
        at += stop + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        // The escaped character.
        at += 1;
    }
    bytes.len()
}

/// Length of the member at the start of `text`, without the comma after it.
fn member_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += string_len(&text[at..]);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Removes the ranges of dropped members from `text`.
fn remove_members(text: &str, mut ranges: Vec<Range<u32>>) -> String {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut out = String::new();
    let mut at = 0;
    for range in ranges {
        let (start, end) = (range.start as usize, range.end as usize);
        // A range inside a dropped member is dropped with it.
        if start >= at {
            append_remaining(&text[at..start], &mut out);
        }
        at = at.max(end);
    }
    append_remaining(&text[at..], &mut out);
    out
}

/// Appends text that remains, without its leading comma if it is now the first in its object.
fn append_remaining(text: &str, out: &mut String) {
    let text = if out.ends_with('{') { text.trim_start_matches(',') } else { text };
    out.push_str(text);
}

/// Appends text of a string, escaped for JSON.
fn escape_into(text: &str, out: &mut String) {
    let mut unwritten_start = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[unwritten_start..at]);
        unwritten_start = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            _ => write!(out, "\\u{byte:04x}").expect("a string takes all that is written"),
        }
    }
    out.push_str(&text[unwritten_start..]);
}
