//! Search for the one value of a text.

use serde_json::Value;

use crate::finding::{Doubt, Report};
use crate::lex::fence::Fence;
use crate::limits::Limits;
use crate::repair::rules;
use crate::span::{Place, Span};

use super::build::{Builder, Built};
use super::candidates::Candidates;
use super::direct;
use super::doubt::Doubts;
use super::event::{JsonEvent, JsonSink};
use super::keys::Duplicate;
use super::make::Make;
use super::print::Printer;
use super::reader::Reader;

/// Result of searching a text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found<V = Value> {
    /// The value, if there is one within the limits.
    pub value: Option<V>,
    /// Number of values in the text.
    pub candidates: usize,
    /// Repairs of the value, and reports on text around it.
    pub reports: Vec<Report>,
    /// True if the reader closed the value (P-027).
    pub closed_by_us: bool,
    /// True if anything in it was repaired.
    pub repaired: bool,
    /// Span of the value.
    pub span: Span,
    /// Doubts about values in it (R-81); empty if the value is returned as text.
    pub doubts: Doubts,
}

impl<V> Default for Found<V> {
    fn default() -> Self {
        let (closed_by_us, repaired) = (false, false);
        Found {
            value: None,
            candidates: 0,
            reports: Vec::new(),
            closed_by_us,
            repaired,
            span: Span::default(),
            doubts: Doubts::default(),
        }
    }
}

/// Finds the one JSON value of a chatty, fenced or broken text.
///
/// Of several candidates the first of the highest rank is chosen. These criteria count, in this order: it
/// comes after the thinking; it is in a fence for JSON; it contains a quoted string or key, so that it is
/// unlikely to be prose in brackets such as `[1]`; it is not auto-closed. Values separated only by commas, or
/// only by white space in the whole text, form one array (JSON Lines). A string, number or literal is found
/// if it is the whole text, and so is a single word.
///
/// A value of more than `limits.value` bytes of text or `limits.items` values and keys is not built, with the
/// finding `limit_exceeded`. Numbers with more digits than a double keeps are rounded, with the finding
/// `json_number`. [`find_text`] does neither.
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
    match direct::read(text, limits) {
        Some((value, span)) => Found { value: Some(value), candidates: 1, span, ..Found::default() },
        None => choose::<Builder>(text, limits),
    }
}

/// Like [`find`], but returns the value as JSON text in one line: of any size, and with all digits of its
/// numbers.
///
/// ```
/// use tambour::limits::Limits;
/// use tambour::repair::json::find_text;
///
/// let found = find_text("Sum: {'total': 1234567890.12345678901, }", &Limits::default());
/// assert_eq!(found.value.unwrap(), r#"{"total":1234567890.12345678901}"#);
/// ```
#[must_use]
pub fn find_text(text: &str, limits: &Limits) -> Found<String> {
    choose::<Printer>(text, limits)
}

/// Like [`find_text`], but also accepts forms that a person would read as a value: the members of an object
/// without its brackets, if they are the whole text, and a value in a Markdown quotation.
///
/// ```
/// use tambour::limits::Limits;
/// use tambour::repair::json::find_shown;
///
/// let found = find_shown("> {\n>   \"a\": 1\n> }", &Limits::default());
/// assert_eq!(found.value.unwrap(), r#"{"a":1}"#);
/// ```
#[must_use]
pub fn find_shown(text: &str, limits: &Limits) -> Found<String> {
    let found = members(text, limits).or_else(|| quoted(text, limits));
    found.unwrap_or_else(|| find_text(text, limits))
}

fn choose<M: Make>(text: &str, limits: &Limits) -> Found<M::Made> {
    // A string that is the whole text is not searched.
    let whole = text.trim_matches(is_margin);
    if whole.starts_with('"') && whole.ends_with('"') && read::<M>(whole, limits).is_ok() {
        return scalar::<M>(text, limits);
    }
    let mut candidates = Candidates::<M>::new(limits);
    let mut reader = exact::<M>(Reader::chat(limits));
    reader.push(text, &mut candidates);
    reader.finish(&mut candidates);
    if candidates.count == 0 && candidates.thinking {
        // Thinking that is never closed: its mark is only text.
        candidates = Candidates::<M>::new(limits);
        reader = exact::<M>(Reader::chat(limits)).without_thoughts();
        reader.push(text, &mut candidates);
        reader.finish(&mut candidates);
    }
    if candidates.count == 0 {
        return scalar::<M>(text, limits);
    }
    candidates.choose(text)
}

/// Finds members without the brackets of their object: `"a": 1, "b": 2` and nothing else.
fn members(text: &str, limits: &Limits) -> Option<Found<String>> {
    let whole = text.trim_matches(is_margin);
    let key = whole.strip_prefix('"')?;
    // A key is short and contains no second quote.
    let end = key[..key.floor_char_boundary(KEY)].find('"')?;
    if !key[end + 1..].trim_start().starts_with(':') {
        return None;
    }
    let start = whole.as_ptr() as usize - text.as_ptr() as usize;
    let wrapped = format!("{}{{{whole}\n}}", &text[..start]);
    let found = choose::<Printer>(&wrapped, limits);
    let certain = |report: &Report| report.rule.code != rules::UNQUOTED_VALUE.code;
    let all = found.span.start == start && found.span.end == wrapped.len() && found.candidates == 1;
    if !all || found.closed_by_us || !found.reports.iter().all(certain) {
        return None;
    }
    let place = Place::START.after(&text[..start]);
    let back = |mut report: Report| {
        // The added bracket shifted the offsets by one.
        report.place.offset = report.place.offset.saturating_sub(1);
        report.end = report.end.saturating_sub(1);
        if report.place.line == place.line {
            report.place.column = report.place.column.saturating_sub(1).max(1);
        }
        report
    };
    let message = "the members of an object without its brackets";
    let added = Report::new(&rules::MISSING_BRACKET, place, place.offset, message);
    let mut reports = vec![added.repaired("added them")];
    reports.extend(found.reports.into_iter().map(back));
    let span = Span { start, end: start + whole.len() };
    Some(Found { reports, span, repaired: true, closed_by_us: true, ..found })
}

/// Most bytes of a key.
const KEY: usize = 256;

/// Finds a value in a Markdown quotation, with `>` before each of its lines.
fn quoted(text: &str, limits: &Limits) -> Option<Found<String>> {
    let inside = |line: &str| line.trim_start_matches([' ', '\t']).strip_prefix('>').map(|_| ());
    let begins = |line: &str| {
        let body = line.trim_start_matches([' ', '\t']).strip_prefix('>').map(str::trim_start);
        body.is_some_and(|body| body.starts_with(['{', '[']))
    };
    let mut lines = text.split_inclusive('\n');
    if !lines.any(begins) {
        return None;
    }
    // Replaces each marker by a blank, so that all places stay.
    let mut plain = String::with_capacity(text.len());
    let mut marked = false;
    for line in text.split_inclusive('\n') {
        match line.find('>').filter(|_| inside(line).is_some()) {
            Some(at) => {
                marked = true;
                plain.extend([&line[..at], " ", &line[at + 1..]]);
            }
            None => plain.push_str(line),
        }
    }
    let found = choose::<Printer>(&plain, limits);
    let lines = &text[found.span.start..found.span.end];
    let spans = lines.split('\n').skip(1).all(|line| line.trim().is_empty() || inside(line).is_some());
    let several = lines.contains('\n');
    (marked && several && spans && found.value.is_some() && !found.closed_by_us).then(|| {
        let place = Place::START.after(&text[..found.span.start]);
        let report = Report::new(&rules::STRAY_TEXT, place, found.span.end, "a value in a quotation");
        let mut reports = vec![report.repaired("left its marks out")];
        reports.extend(found.reports);
        Found { reports, repaired: true, ..found }
    })
}

fn exact<M: Make>(reader: Reader) -> Reader {
    if M::EXACT { reader.exact() } else { reader }
}

/// Finds the value in a JSON string that contains JSON text, for objects that a model wrote as a string.
#[must_use]
pub fn find_in_string(value: &Value, limits: &Limits) -> Option<Found> {
    let text = value.as_str()?;
    let found = find(text, limits);
    matches!(found.value, Some(Value::Object(_) | Value::Array(_))).then_some(found)
}

/// Parses a text that must be one value by RFC 8259, surrounded by white space at most. Numbers with more
/// digits than a double keeps are rounded; [`strict_text`] keeps them.
///
/// # Errors
///
/// The report on the first fault. Nesting beyond `limits.depth`, more than `limits.value` bytes of text or
/// `limits.items` values and keys, and numbers beyond the range of a double are faults too.
pub fn strict(text: &str, limits: &Limits) -> Result<Value, Report> {
    match direct::read(text, limits) {
        Some((value, _)) => Ok(value),
        None => read::<Builder>(text, limits).map(|built| built.value),
    }
}

/// Like [`strict`], but also reports doubts about a value that is valid JSON: duplicate keys and rounded
/// numbers.
///
/// # Errors
///
/// Same as for [`strict`].
pub fn strict_found(text: &str, limits: &Limits) -> Result<Found, Report> {
    if let Some((value, span)) = direct::read(text, limits) {
        return Ok(Found { value: Some(value), candidates: 1, span, ..Found::default() });
    }
    let built = read::<Builder>(text, limits)?;
    let span = Span { start: built.start.place.offset, end: built.end.offset };
    let reports = built.duplicates.iter().map(Duplicate::last_kept).collect();
    let (value, doubts) = (Some(built.value), built.doubts);
    Ok(Found { value, candidates: 1, reports, span, doubts, ..Found::default() })
}

/// Like [`strict`], but returns the value as JSON text in one line: of any size, and with all digits of its
/// numbers.
///
/// # Errors
///
/// The report on the first fault. Nesting beyond `limits.depth` is a fault too.
pub fn strict_text(text: &str, limits: &Limits) -> Result<String, Report> {
    read::<Printer>(text, limits).map(|built| built.value)
}

fn read<M: Make>(text: &str, limits: &Limits) -> Result<Built<M::Made>, Report> {
    let mut sink = Strict { maker: M::new(limits), value: None, fault: None };
    let mut reader = exact::<M>(Reader::document(limits));
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

struct Strict<M: Make> {
    maker: M,
    value: Option<Built<M::Made>>,
    fault: Option<Report>,
}

impl<M: Make> JsonSink for Strict<M> {
    fn event(&mut self, event: JsonEvent<'_>) {
        if self.fault.is_some() {
            return;
        }
        if let (JsonEvent::ValueStart(start), Some(_)) = (&event, &self.value) {
            let (place, message) = (start.place, "a second value after the first");
            self.fault = Some(Report::new(&rules::SEVERAL_VALUES, place, place.offset, message));
            return;
        }
        if let Some(built) = self.maker.see(&event) {
            self.value = Some(built);
        } else if let (JsonEvent::ValueEnd(end), true) = (event, self.maker.over()) {
            let message = "the value has more text or more values than the limits allow";
            self.fault = Some(Report::new(&rules::LIMIT_EXCEEDED, Place::START, end.offset, message));
        }
    }

    fn report(&mut self, report: Report) {
        self.fault.get_or_insert(report);
    }

    fn rounded(&mut self, place: Place, end: usize) {
        self.maker.note(&rounded(place, end));
    }
}

/// Report on a number with more digits than a double keeps.
pub(super) fn rounded(place: Place, end: usize) -> Report {
    let report = Report::new(&rules::NUMBER, place, end, "a number with more digits than are kept");
    report.repaired("rounded").doubtful(Doubt::Range)
}

/// White space, or a byte order mark.
pub(super) fn is_margin(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// Finds a value without brackets: a string, number or literal, or one word.
fn scalar<M: Make>(text: &str, limits: &Limits) -> Found<M::Made> {
    let mut inner = text.trim_matches(is_margin);
    // In a fence of its own.
    if let Some((fence, rest)) = Fence::of(inner) {
        let tag = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        inner = rest[tag..].trim_end_matches(char::from(fence.mark)).trim();
    }
    let quoted = inner.starts_with(['"', '\'', '“', '‘', '`', '„', '«']) || inner.starts_with("\\\"");
    let quotes = inner.chars().filter(|&c| matches!(c, '"' | '“' | '”')).count();
    let word = !inner.trim_end_matches([',', ' ']).contains(char::is_whitespace);
    let whole = quoted && (quotes <= 1 || inner.ends_with(['"', '\'', '”', '’', '`', '´', '»']));
    if inner.len() < 2 && !inner.chars().all(char::is_alphanumeric) || !(word || whole) {
        return Found::default();
    }
    let skipped = inner.as_ptr() as usize - text.as_ptr() as usize;
    let mut candidates = Candidates::<M>::new(limits);
    let mut reader = exact::<M>(Reader::document(limits)).starting_at(Place::START.after(&text[..skipped]));
    reader.push(inner, &mut candidates);
    reader.finish(&mut candidates);
    match candidates.count {
        1 => candidates.choose(text),
        _ => Found::default(),
    }
}
