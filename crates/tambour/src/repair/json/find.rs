//! The whole case: the one value of a text.

use serde_json::Value;

use crate::finding::Report;
use crate::limits::Limits;
use crate::repair::rules;
use crate::span::{Place, Span};

use super::build::{Builder, Built};
use super::event::{JsonEvent, JsonSink, Origin};
use super::reader::Reader;

/// What was found in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The value, if there is one.
    pub value: Option<Value>,
    /// Values the text holds.
    pub candidates: usize,
    /// Repairs of the value, and text around it.
    pub reports: Vec<Report>,
    /// Whether its end is ours (P-027).
    pub closed_by_us: bool,
    /// Whether anything in it was repaired.
    pub repaired: bool,
    /// Where it stands.
    pub span: Span,
}

/// Finds the one JSON value of a chatty, fenced or broken text.
///
/// Of several candidates the first of the highest rank is taken. These count, in this order: it comes after the
/// thinking; it stands in a fence for JSON; it holds a quoted string or key, so that it is hardly prose in brackets
/// such as `[1]`; its end is not ours. Values with nothing but commas between them, or nothing but white space in the
/// whole text, are one array (JSON Lines). A string, number or literal is found when it is the whole text, and so is
/// a single word.
///
/// ```
/// use tambour::limits::Limits;
/// use tambour::repair::json::find;
///
/// let found = find("As [1] shows:\n```json\n{'ok': True,}\n```", &Limits::default());
/// assert_eq!(found.value.unwrap().to_string(), r#"{"ok":true}"#);
/// assert_eq!(found.reports[1].rule.code, "json_quote");
/// ```
#[must_use]
pub fn find(text: &str, limits: &Limits) -> Found {
    // A string that is the whole text is not looked into.
    if text.trim_start().starts_with('"') && text.trim_end().ends_with('"') && strict(text, limits).is_ok() {
        return scalar(text, limits);
    }
    let mut candidates = Candidates::default();
    let mut reader = Reader::chat(limits);
    reader.push(text, &mut candidates);
    reader.finish(&mut candidates);
    if candidates.list.is_empty() {
        return scalar(text, limits);
    }
    candidates.choose(text)
}

/// Finds the value in a JSON string that holds JSON text, as where a model wrote an object as a string.
#[must_use]
pub fn find_in_string(value: &Value, limits: &Limits) -> Option<Found> {
    let text = value.as_str()?;
    let found = find(text, limits);
    matches!(found.value, Some(Value::Object(_) | Value::Array(_))).then_some(found)
}

/// Reads a text that must be one value by RFC 8259, with nothing but white space around it.
///
/// # Errors
///
/// The report on the first fault. Deeper nesting than `limits.depth` and numbers no double can hold are faults too.
pub fn strict(text: &str, limits: &Limits) -> Result<Value, Report> {
    let mut sink = Strict::default();
    let mut reader = Reader::document(limits);
    let mut rest = text;
    while !rest.is_empty() && sink.fault.is_none() {
        let mut cut = rest.len().min(64 << 10);
        while !rest.is_char_boundary(cut) {
            cut += 1;
        }
        reader.push(&rest[..cut], &mut sink);
        rest = &rest[cut..];
    }
    if sink.fault.is_none() {
        reader.finish(&mut sink);
    }
    if let Some(mut fault) = sink.fault {
        fault.repair = None;
        return Err(fault);
    }
    let end = reader.place();
    sink.value.ok_or_else(|| Report::new(&rules::NO_VALUE, end, end.offset, "the text holds no value"))
}

#[derive(Default)]
struct Strict {
    builder: Builder,
    value: Option<Value>,
    fault: Option<Report>,
}

impl JsonSink for Strict {
    fn event(&mut self, event: JsonEvent<'_>) {
        if self.fault.is_some() {
            return;
        }
        if let (JsonEvent::ValueStart(start), Some(_)) = (&event, &self.value) {
            let (place, message) = (start.place, "a second value after the first");
            self.fault = Some(Report::new(&rules::SEVERAL_VALUES, place, place.offset, message));
            return;
        }
        if let Some(built) = self.builder.see(&event) {
            self.value = Some(built.value);
        }
    }

    fn report(&mut self, report: Report) {
        self.fault.get_or_insert(report);
    }
}

/// A candidate with what was said while it was read.
struct Candidate {
    built: Built,
    reports: Vec<Report>,
    thought: bool,
    /// What stands before it.
    gap: Gap,
}

/// What stands between two values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    Blank,
    /// Commas.
    Comma,
    /// Closing brackets.
    Brackets,
    /// Fence marks.
    Fence,
    Prose,
}

#[derive(Default)]
struct Candidates {
    builder: Builder,
    reports: Vec<Report>,
    list: Vec<Candidate>,
    /// Text since the last value.
    text: String,
    gap: Gap,
}

impl JsonSink for Candidates {
    fn event(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Text(text) => self.text.push_str(text),
            JsonEvent::ThoughtEnd => {
                self.text.clear();
                self.list.iter_mut().for_each(|candidate| candidate.thought = true);
            }
            JsonEvent::ValueStart(_) => {
                self.gap = gap(&self.text);
                self.text.clear();
            }
            _ => {}
        }
        if let Some(built) = self.builder.see(&event) {
            let mut reports = std::mem::take(&mut self.reports);
            reports.extend(built.duplicates.iter().cloned());
            self.list.push(Candidate { built, reports, thought: false, gap: self.gap });
        }
    }

    fn report(&mut self, report: Report) {
        self.reports.push(report);
    }
}

impl Candidate {
    fn rank(&self) -> (bool, bool, bool, bool) {
        let strong = match &self.built.value {
            Value::Object(map) => !map.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        } && (self.built.end.quoted || holds_values(&self.built.value));
        let fenced = self.built.start.origin == Origin::JsonFence;
        (!self.thought, fenced && strong, strong, !self.built.end.closed_by_us)
    }

    fn start(&self) -> usize {
        self.built.start.place.offset
    }
}

/// Whether an array holds an object or array that is not empty.
fn holds_values(value: &Value) -> bool {
    let Value::Array(items) = value else { return false };
    items.iter().any(|item| match item {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    })
}

impl Candidates {
    fn choose(self, text: &str) -> Found {
        let after = gap(&self.text);
        let candidates = self.list.len();
        let mut list = self.list;
        let first = list.iter().position(|candidate| !candidate.thought).unwrap_or(0);
        let seen = &list[first..];
        let between = seen[1..].iter().map(|candidate| candidate.gap).max().unwrap_or_default();
        let around = seen[0].gap.max(after);
        let commas = seen[1..].iter().all(|candidate| candidate.gap == Gap::Comma);
        let is_list = seen.len() > 1 && (commas || between <= Gap::Comma && around <= Gap::Comma);
        if is_list {
            return several(text, list.split_off(first), candidates, after);
        }
        // The first of the highest rank.
        let rank = |candidate: &Candidate| candidate.rank();
        let best = (0..list.len()).rev().max_by_key(|&i| rank(&list[i])).unwrap_or(0);
        let before = if best == 0 { list[0].gap } else { Gap::Prose };
        let behind = if best + 1 == list.len() { after } else { Gap::Prose };
        let Candidate { built, mut reports, .. } = list.swap_remove(best);
        let span = Span { start: built.start.place.offset, end: built.end.offset };
        text_before(before, span.start, &mut reports);
        text_after(text, behind, span.end, &mut reports);
        Found {
            value: Some(built.value),
            candidates,
            reports,
            closed_by_us: built.end.closed_by_us,
            repaired: built.end.repaired,
            span,
        }
    }
}

/// Values that stand one after the other, as an array.
fn several(text: &str, list: Vec<Candidate>, candidates: usize, after: Gap) -> Found {
    let mut found = Found { candidates, repaired: true, ..Found::default() };
    let mut values = Vec::with_capacity(list.len());
    for (i, candidate) in list.into_iter().enumerate() {
        let (place, end) = (candidate.built.start.place, candidate.built.end);
        if i == 0 {
            found.span.start = candidate.start();
            text_before(candidate.gap, found.span.start, &mut found.reports);
        }
        if i == 1 {
            let message = "several values where one belongs";
            let report = Report::new(&rules::SEVERAL_VALUES, place, end.offset, message);
            found.reports.push(report.repaired("made an array of them"));
        }
        found.span.end = end.offset;
        found.closed_by_us |= end.closed_by_us;
        found.reports.extend(candidate.reports);
        values.push(candidate.built.value);
    }
    text_after(text, after, found.span.end, &mut found.reports);
    found.value = Some(Value::Array(values));
    found
}

fn text_before(gap: Gap, start: usize, reports: &mut Vec<Report>) {
    if gap == Gap::Prose {
        let report = Report::new(&rules::TEXT_AROUND, Place::START, start, "text before the value");
        reports.insert(0, report.repaired("read only the value"));
    }
}

fn text_after(text: &str, gap: Gap, end: usize, reports: &mut Vec<Report>) {
    let (rule, message) = match gap {
        Gap::Prose => (&rules::TEXT_AROUND, "text after the value"),
        Gap::Brackets => (&rules::EXTRA_BRACKET, "closing brackets after the value"),
        Gap::Comma => (&rules::EXTRA_COMMA, "a comma after the value"),
        Gap::Blank | Gap::Fence => return,
    };
    let place = Place::START.after(&text[..end]);
    reports.push(Report::new(rule, place, text.len(), message).repaired("read only the value"));
}

/// What `text` between two values is.
fn gap(text: &str) -> Gap {
    let mut gap = Gap::Blank;
    let mut rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    while let Some(&byte) = rest.as_bytes().first() {
        let (found, length) = match byte {
            b',' | b';' => (Gap::Comma, 1),
            b'}' | b']' | b')' => (Gap::Brackets, 1),
            b'`' | b'~' => {
                let marks = rest.bytes().take_while(|&mark| mark == byte).count();
                if marks < 3 {
                    return Gap::Prose;
                }
                let tag = |&byte: &u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(&byte);
                (Gap::Fence, marks + rest.as_bytes()[marks..].iter().take_while(|byte| tag(byte)).count())
            }
            _ => return Gap::Prose,
        };
        gap = gap.max(found);
        rest = rest[length..].trim_start();
    }
    gap
}

/// A text without brackets: a string, number or literal, or one word.
fn scalar(text: &str, limits: &Limits) -> Found {
    let mut inner = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    // In a fence of its own.
    if let Some(rest) = inner.strip_prefix("```") {
        let tag = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        inner = rest[tag..].trim_end_matches('`').trim();
    }
    let quoted = inner.starts_with(['"', '\'', '“', '‘', '`', '„', '«']) || inner.starts_with("\\\"");
    let quotes = inner.chars().filter(|&c| matches!(c, '"' | '“' | '”')).count();
    let word = !inner.trim_end_matches([',', ' ']).contains(char::is_whitespace);
    let whole = quoted && (quotes <= 1 || inner.ends_with(['"', '\'', '”', '’', '`', '´', '»']));
    if inner.len() < 2 && !inner.chars().all(char::is_alphanumeric) || !(word || whole) {
        return Found::default();
    }
    let skipped = inner.as_ptr() as usize - text.as_ptr() as usize;
    let mut candidates = Candidates::default();
    let mut reader = Reader::document(limits).starting_at(Place::START.after(&text[..skipped]));
    reader.push(inner, &mut candidates);
    reader.finish(&mut candidates);
    match candidates.list.len() {
        1 => candidates.choose(text),
        _ => Found::default(),
    }
}
