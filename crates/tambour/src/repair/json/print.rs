//! Prints the JSON text of reader events in one line, without loss, in little more memory than the source.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Number;

use super::build::Built;
use super::doubt::Doubts;
use super::event::{End, JsonEvent, Start};
use super::keys::{self, Duplicate, Keys};
use super::members::Members;
use crate::span::Place;

/// Prints the value of the events it receives. Offsets have 32 bits, since there may be a member for every
/// few bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Printer {
    text: String,
    open: Vec<Open>,
    /// Members of all open objects.
    members: Vec<Member>,
    /// Ranges of members whose key came again; they are cut out at the end.
    dropped: Vec<Range<u32>>,
    start: Option<Start>,
    duplicates: Vec<Duplicate>,
    over: bool,
}

/// An open object or array.
#[derive(Clone, Debug)]
struct Open {
    object: bool,
    /// Index of its first member.
    members: usize,
    /// Flag that it has content, and index of the member read last.
    filled: bool,
    last: usize,
    index: Option<Box<Keys>>,
}

/// A member of an object.
#[derive(Clone, Debug)]
struct Member {
    /// Offset in the printed text, before its comma.
    start: u32,
    /// Place in the source, and offset of the next member there.
    offset: u32,
    line: u32,
    column: u32,
    next: u32,
}

impl Member {
    fn new(start: usize, place: Place) -> Member {
        Member {
            start: small(start),
            offset: small(place.offset),
            line: place.line,
            column: place.column,
            next: 0,
        }
    }

    /// Printed text from its key on.
    fn printed<'t>(&self, text: &'t str) -> &'t str {
        text[self.start as usize..].trim_start_matches(',')
    }

    fn key<'t>(&self, text: &'t str) -> &'t str {
        let text = self.printed(text);
        &text[..string(text)]
    }

    fn place(&self) -> Place {
        Place { offset: self.offset as usize, line: self.line, column: self.column }
    }
}

fn small(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

impl Printer {
    /// Returns whether the last value was too large for 32-bit offsets.
    pub(super) fn over(&self) -> bool {
        self.over
    }

    /// Reads the next event; returns the text at [`JsonEvent::ValueEnd`].
    pub(super) fn see(&mut self, event: &JsonEvent<'_>) -> Option<Built<String>> {
        match *event {
            JsonEvent::Text(_)
            | JsonEvent::Comment(_)
            | JsonEvent::ThoughtStart(_)
            | JsonEvent::Thought(_)
            | JsonEvent::ThoughtEnd(..) => {}
            JsonEvent::ValueStart(start) => {
                self.start = Some(start);
                self.text.clear();
                self.open.clear();
                self.members.clear();
                self.over = false;
            }
            JsonEvent::ObjectStart => self.open(true),
            JsonEvent::ArrayStart => self.open(false),
            JsonEvent::Key { text, place, .. } => self.key(text, place.get()),
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                if let Some(open) = self.open.pop() {
                    self.members.truncate(open.members);
                    self.text.push(if open.object { '}' } else { ']' });
                }
            }
            JsonEvent::StringStart => {
                self.item();
                self.text.push('"');
            }
            JsonEvent::StringDelta(text) => escape(text, &mut self.text),
            JsonEvent::StringEnd => self.text.push('"'),
            JsonEvent::Number(number) => self.number(number),
            JsonEvent::Digits(digits) => self.word(digits),
            JsonEvent::Bool(value) => self.word(if value { "true" } else { "false" }),
            JsonEvent::Null => self.word("null"),
            JsonEvent::ValueEnd(end) => return self.end(end),
        }
        None
    }

    fn open(&mut self, object: bool) {
        self.item();
        self.text.push(if object { '{' } else { '[' });
        self.open.push(Open { object, members: self.members.len(), filled: false, last: 0, index: None });
    }

    /// Begins an item; within an array, adds the comma before it.
    fn item(&mut self) {
        if let Some(open) = self.open.last_mut().filter(|open| !open.object)
            && std::mem::replace(&mut open.filled, true)
        {
            self.text.push(',');
        }
    }

    fn word(&mut self, word: &str) {
        self.item();
        self.text.push_str(word);
    }

    fn number(&mut self, number: &Number) {
        self.word(&number.to_string());
    }

    fn key(&mut self, key: &str, place: Place) {
        let depth = self.open.len();
        keys::ended(&mut self.duplicates, depth, place.offset);
        let Some(open) = self.open.last_mut() else { return };
        let members = &mut self.members[open.members..];
        if std::mem::replace(&mut open.filled, true) {
            members[open.last].next = small(place.offset);
        }
        let member = Member::new(self.text.len(), place);
        if !members.is_empty() {
            self.text.push(',');
        }
        self.text.push('"');
        escape(key, &mut self.text);
        self.text.push('"');
        let (text, same) = (&self.text, |at: usize| members[at].key(&self.text));
        let found = keys::find(members.len(), same, member.key(text), &mut open.index, false);
        open.last = found.unwrap_or(members.len());
        if let Some(at) = found {
            let old = std::mem::replace(&mut members[at], member);
            let end = text.len() - old.printed(text).len() + self::member(old.printed(text));
            match self.dropped.last_mut() {
                Some(range) if range.end == old.start => range.end = small(end),
                _ => self.dropped.push(old.start..small(end)),
            }
            Duplicate::add(&mut self.duplicates, key, (old.place(), old.next as usize), place, depth);
        } else {
            self.members.push(member);
        }
        self.text.push(':');
    }

    fn end(&mut self, end: End) -> Option<Built<String>> {
        let start = self.start.take()?;
        let mut value = std::mem::take(&mut self.text);
        let dropped = std::mem::take(&mut self.dropped);
        let mut duplicates = std::mem::take(&mut self.duplicates);
        self.over = value.len().max(end.offset) >= u32::MAX as usize;
        if self.over {
            return None;
        }
        if !dropped.is_empty() {
            value = without(&value, dropped);
        }
        keys::ended(&mut duplicates, 0, end.offset);
        let (doubts, members) = (Doubts::default(), Members::default());
        Some(Built { value, start, end, duplicates, doubts, members })
    }
}

/// Length of the string at the start of `text`.
fn string(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Length of the member at the start of `text`.
fn member(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += string(&text[at..]);
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

/// Removes dropped members from `text`.
fn without(text: &str, mut dropped: Vec<Range<u32>>) -> String {
    dropped.sort_unstable_by_key(|range| (range.start, range.end));
    // Ranges inside a dropped member overlap with its range.
    let mut kept = String::new();
    let mut at = 0;
    for range in dropped {
        let (start, end) = (range.start as usize, range.end as usize);
        if start >= at {
            keep(&text[at..start], &mut kept);
        }
        at = at.max(end);
    }
    keep(&text[at..], &mut kept);
    kept
}

/// Appends text behind a dropped member, without its leading comma if it now comes first in the object.
fn keep(part: &str, kept: &mut String) {
    let part = if kept.ends_with('{') { part.trim_start_matches(',') } else { part };
    kept.push_str(part);
}

/// Appends text of a string, escaped.
fn escape(text: &str, out: &mut String) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[from..at]);
        from = at + 1;
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
    out.push_str(&text[from..]);
}
