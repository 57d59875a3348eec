//! Search for the one value of a text, and strict parsing of a text that is one value.

use serde_json::Value;

use crate::finding::{Doubt, FindingReport};
use crate::lex::fence::Fence;
use crate::limits::Limits;
use crate::repair::rules;
use crate::span::{Place, Span};

use super::builder::{BuiltValue, ValueBuilder};
use super::candidates::CandidateSelector;
use super::direct_parser;
use super::doubt::ValueDoubts;
use super::event::{JsonEvent, JsonSink};
use super::keys::DuplicateKey;
use super::printer::JsonPrinter;
use super::reader::JsonReader;
use super::value_maker::ValueMaker;

/// Result of searching a text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FoundValue<V = Value> {
    /// The value, if there is one within the limits.
    pub value: Option<V>,
    /// Number of values in the text.
    pub candidate_count: usize,
    /// Repairs of the value, and reports on text around it.
    pub reports: Vec<FindingReport>,
    /// True if the reader closed the value (P-027).
    pub is_auto_closed: bool,
    /// True if anything in the value was repaired.
    pub is_repaired: bool,
    /// Span of the value in the text.
    pub span: Span,
    /// Doubts about the value and its nested values (R-81); empty if the value is returned as text.
    pub doubts: ValueDoubts,
}

impl<V> Default for FoundValue<V> {
    fn default() -> Self {
        let (is_auto_closed, is_repaired) = (false, false);
        FoundValue {
            value: None,
            candidate_count: 0,
            reports: Vec::new(),
            is_auto_closed,
            is_repaired,
            span: Span::default(),
            doubts: ValueDoubts::default(),
        }
    }
}

/// Finds the one JSON value of a chatty, fenced or broken text.
///
/// Of several candidates the first of the highest rank is chosen. These criteria count, in this order: the
/// value follows the thinking; it is in a fence for JSON; it contains a quoted string or key, or is a list
/// with a list or object that is not empty, so that it is unlikely to be prose in brackets such as `[1]`; it
/// is not auto-closed. Values separated only by commas form one array; so do values separated by white space,
/// as in JSON Lines, if the text holds nothing else. A string, number or literal is found if it is the whole
/// text, and so is a single word.
///
/// A value of more than `limits.value` bytes of text or `limits.items` values and keys is not built, with the
/// finding `limit_exceeded`. Numbers with more digits than a double keeps are rounded, with the finding
/// `json_number`. [`find_text`] has no limit of size and keeps all digits.
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
pub fn find(text: &str, limits: &Limits) -> FoundValue {
    match direct_parser::parse(text, limits) {
        Some((value, span)) => {
            FoundValue { value: Some(value), candidate_count: 1, span, ..FoundValue::default() }
        }
        None => choose_value::<ValueBuilder>(text, limits),
    }
}

/// Parses a text that is one object or array and nothing else, valid or with slight faults that have one
/// reading, such as a comma before a closing bracket or strings in single quotes. `None` for any other text, and
/// where something else would have to be reported, such as a duplicate key. The value is that of [`find`]. Stops
/// at the first other fault.
#[doc(hidden)]
#[must_use]
pub fn parse_slightly_broken(text: &str, limits: &Limits) -> Option<Value> {
    direct_parser::parse_slightly_broken(text, limits)
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
pub fn find_text(text: &str, limits: &Limits) -> FoundValue<String> {
    choose_value::<JsonPrinter>(text, limits)
}

/// Like [`find_text`], but also accepts forms that a person would read as a value: the members of an object
/// without its brackets, if they are the whole text, and a value in a Markdown quotation.
///
/// ```
/// use tambour::limits::Limits;
/// use tambour::repair::json::find_displayed;
///
/// let found = find_displayed("> {\n>   \"a\": 1\n> }", &Limits::default());
/// assert_eq!(found.value.unwrap(), r#"{"a":1}"#);
/// ```
#[must_use]
pub fn find_displayed(text: &str, limits: &Limits) -> FoundValue<String> {
    // A whole text that is one string is no list of members, even if quotes and colons are in it.
    let is_string = is_lone_string::<JsonPrinter>(text, limits);
    let found = (!is_string).then(|| find_members(text, limits).or_else(|| find_in_quotation(text, limits)));
    found.flatten().unwrap_or_else(|| find_text(text, limits))
}

/// Returns whether the whole text is one string.
fn is_lone_string<M: ValueMaker>(text: &str, limits: &Limits) -> bool {
    let text = text.trim_matches(is_margin);
    text.starts_with('"') && text.ends_with('"') && read_strict::<M>(text, limits).is_ok()
}

/// Finds the one value of a text, in the representation that `M` makes.
fn choose_value<M: ValueMaker>(text: &str, limits: &Limits) -> FoundValue<M::Representation> {
    // If the whole text is one string, that is the value: its content is not searched.
    if is_lone_string::<M>(text, limits) {
        return find_scalar::<M>(text, limits);
    }
    let mut candidates = CandidateSelector::<M>::new(limits);
    let mut reader = configure_digits::<M>(JsonReader::new_chat(limits));
    reader.push(text, &mut candidates);
    reader.finish(&mut candidates);
    if candidates.count == 0 && candidates.is_thinking {
        // Thinking that is never closed: its mark is only text.
        candidates = CandidateSelector::<M>::new(limits);
        reader = configure_digits::<M>(JsonReader::new_chat(limits)).without_thoughts();
        reader.push(text, &mut candidates);
        reader.finish(&mut candidates);
    }
    if candidates.count == 0 {
        return find_scalar::<M>(text, limits);
    }
    candidates.choose(text)
}

/// Finds members without the brackets of their object: `"a": 1, "b": 2` and nothing else.
fn find_members(text: &str, limits: &Limits) -> Option<FoundValue<String>> {
    let members_text = text.trim_matches(is_margin);
    let key_and_value = members_text.strip_prefix('"')?;
    // The key is short and contains no quote.
    let key_len = key_and_value[..key_and_value.floor_char_boundary(MAX_KEY_LEN)].find('"')?;
    if !key_and_value[key_len + 1..].trim_start().starts_with(':') {
        return None;
    }
    // Offset of the members in the text.
    let start = members_text.as_ptr() as usize - text.as_ptr() as usize;
    let object_text = format!("{}{{{members_text}\n}}", &text[..start]);
    let found = choose_value::<JsonPrinter>(&object_text, limits);
    // An unquoted value may be prose.
    let is_certain = |report: &FindingReport| report.rule.code != rules::UNQUOTED_VALUE.code;
    let is_complete =
        found.span.start == start && found.span.end == object_text.len() && found.candidate_count == 1;
    if !is_complete || found.is_auto_closed || !found.reports.iter().all(is_certain) {
        return None;
    }
    let place = Place::START.end_of(&text[..start]);
    let restore_report = |mut report: FindingReport| {
        // The added bracket shifted the offsets by one.
        report.place.offset = report.place.offset.saturating_sub(1);
        report.end = report.end.saturating_sub(1);
        if report.place.line == place.line {
            report.place.column = report.place.column.saturating_sub(1).max(1);
        }
        report
    };
    let message = "the members of an object without its brackets";
    let bracket_report = FindingReport::new(&rules::MISSING_BRACKET, place, place.offset, message);
    let mut reports = vec![bracket_report.with_repair("added them")];
    reports.extend(found.reports.into_iter().map(restore_report));
    let span = Span { start, end: start + members_text.len() };
    Some(FoundValue { reports, span, is_repaired: true, is_auto_closed: true, ..found })
}

/// Maximum length in bytes of the first key of members without brackets.
const MAX_KEY_LEN: usize = 256;

/// Finds a value in a Markdown quotation, with `>` before each of its lines.
fn find_in_quotation(text: &str, limits: &Limits) -> Option<FoundValue<String>> {
    let is_quoted = |line: &str| line.trim_start_matches([' ', '\t']).starts_with('>');
    let is_value_start = |line: &str| {
        let body = line.trim_start_matches([' ', '\t']).strip_prefix('>').map(str::trim_start);
        body.is_some_and(|body| body.starts_with(['{', '[']))
    };
    let mut lines = text.split_inclusive('\n');
    if !lines.any(is_value_start) {
        return None;
    }
    // Replaces each marker by a blank, so that offsets do not change.
    let mut plain_text = String::with_capacity(text.len());
    let mut has_markers = false;
    for line in text.split_inclusive('\n') {
        match line.find('>').filter(|_| is_quoted(line)) {
            Some(at) => {
                has_markers = true;
                plain_text.extend([&line[..at], " ", &line[at + 1..]]);
            }
            None => plain_text.push_str(line),
        }
    }
    let found = choose_value::<JsonPrinter>(&plain_text, limits);
    let value_text = &text[found.span.start..found.span.end];
    let has_lines = value_text.contains('\n');
    // The first line is skipped: there, the value begins after the marker.
    let is_all_quoted = value_text.split('\n').skip(1).all(|line| line.trim().is_empty() || is_quoted(line));
    (has_markers && has_lines && is_all_quoted && found.value.is_some() && !found.is_auto_closed).then(|| {
        let place = Place::START.end_of(&text[..found.span.start]);
        let report = FindingReport::new(&rules::STRAY_TEXT, place, found.span.end, "a value in a quotation");
        let mut reports = vec![report.with_repair("left its marks out")];
        reports.extend(found.reports);
        FoundValue { reports, is_repaired: true, ..found }
    })
}

/// Lets the reader keep all digits if the maker of values does.
fn configure_digits<M: ValueMaker>(reader: JsonReader) -> JsonReader {
    if M::EXACT { reader.with_exact_digits() } else { reader }
}

/// Finds the value in a JSON string that contains JSON text, for objects that a model wrote as a string.
/// `None` unless the value is an object or an array.
#[must_use]
pub fn find_in_string(value: &Value, limits: &Limits) -> Option<FoundValue> {
    let text = value.as_str()?;
    let found = find(text, limits);
    matches!(found.value, Some(Value::Object(_) | Value::Array(_))).then_some(found)
}

/// Parses a text that must be one value by RFC 8259, surrounded by white space at most. Numbers with more
/// digits than a double keeps are rounded; [`parse_strict_text`] keeps them.
///
/// # Errors
///
/// Returns the report on the first fault. Nesting beyond `limits.depth`, more than `limits.value` bytes of
/// text or `limits.items` values and keys, and numbers beyond the range of a double are faults too.
pub fn parse_strict(text: &str, limits: &Limits) -> Result<Value, FindingReport> {
    match direct_parser::parse(text, limits) {
        Some((value, _)) => Ok(value),
        None => read_strict::<ValueBuilder>(text, limits).map(|built_value| built_value.value),
    }
}

/// Like [`parse_strict`], but also reports doubts about a value that is valid JSON: duplicate keys and
/// rounded numbers.
///
/// # Errors
///
/// Same as for [`parse_strict`].
pub fn parse_strict_with_doubts(text: &str, limits: &Limits) -> Result<FoundValue, FindingReport> {
    if let Some((value, span)) = direct_parser::parse(text, limits) {
        return Ok(FoundValue { value: Some(value), candidate_count: 1, span, ..FoundValue::default() });
    }
    let built_value = read_strict::<ValueBuilder>(text, limits)?;
    let span = Span { start: built_value.start.place.offset, end: built_value.end.offset };
    let reports = built_value.duplicates.iter().map(DuplicateKey::report_last_kept).collect();
    let (value, doubts) = (Some(built_value.value), built_value.doubts);
    Ok(FoundValue { value, candidate_count: 1, reports, span, doubts, ..FoundValue::default() })
}

/// Like [`parse_strict`], but returns the value as JSON text in one line: of any size, and with all digits of
/// its numbers.
///
/// # Errors
///
/// Returns the report on the first fault. Nesting beyond `limits.depth` is a fault too.
pub fn parse_strict_text(text: &str, limits: &Limits) -> Result<String, FindingReport> {
    read_strict::<JsonPrinter>(text, limits).map(|built_value| built_value.value)
}

/// Reads a text that must be one value; the first repair of the reader is the error.
fn read_strict<M: ValueMaker>(
    text: &str,
    limits: &Limits,
) -> Result<BuiltValue<M::Representation>, FindingReport> {
    let mut sink = StrictSink { maker: M::new(limits), value: None, fault: None };
    let mut reader = configure_digits::<M>(JsonReader::new_document(limits));
    // In pieces, so that reading ends soon after a fault.
    let mut unread = text;
    while !unread.is_empty() && sink.fault.is_none() {
        let mut piece_len = unread.len().min(64 << 10);
        while !unread.is_char_boundary(piece_len) {
            piece_len += 1;
        }
        reader.push(&unread[..piece_len], &mut sink);
        unread = &unread[piece_len..];
    }
    if sink.fault.is_none() {
        reader.finish(&mut sink);
    }
    if let Some(mut fault) = sink.fault {
        fault.repair = None;
        return Err(fault);
    }
    let end = reader.place();
    sink.value.ok_or_else(|| FindingReport::new(&rules::NO_VALUE, end, end.offset, "the text holds no value"))
}

/// Sink that stores the value and the first fault.
struct StrictSink<M: ValueMaker> {
    maker: M,
    value: Option<BuiltValue<M::Representation>>,
    fault: Option<FindingReport>,
}

impl<M: ValueMaker> JsonSink for StrictSink<M> {
    fn event(&mut self, event: JsonEvent<'_>) {
        if self.fault.is_some() {
            return;
        }
        if let (JsonEvent::ValueStart(start), Some(_)) = (&event, &self.value) {
            let (place, message) = (start.place, "a second value after the first");
            self.fault = Some(FindingReport::new(&rules::SEVERAL_VALUES, place, place.offset, message));
            return;
        }
        if let Some(built_value) = self.maker.push_event(&event) {
            self.value = Some(built_value);
        } else if let (JsonEvent::ValueEnd(end), true) = (event, self.maker.is_over_limit()) {
            let message = "the value has more text or more values than the limits allow";
            self.fault = Some(FindingReport::new(&rules::LIMIT_EXCEEDED, Place::START, end.offset, message));
        }
    }

    fn report(&mut self, report: FindingReport) {
        self.fault.get_or_insert(report);
    }

    fn report_rounding(&mut self, place: Place, end: usize) {
        self.maker.note_report(&rounding_report(place, end));
    }
}

/// Report on a number with more digits than a double keeps.
pub(super) fn rounding_report(place: Place, end: usize) -> FindingReport {
    let report = FindingReport::new(&rules::NUMBER, place, end, "a number with more digits than can be kept");
    report.with_repair("rounded").with_doubt(Doubt::InexactNumber)
}

/// Returns whether a character is white space or a byte order mark.
pub(super) fn is_margin(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// Finds a value without brackets: a string, number or literal, or one word.
fn find_scalar<M: ValueMaker>(text: &str, limits: &Limits) -> FoundValue<M::Representation> {
    let mut scalar_text = text.trim_matches(is_margin);
    // The value may be in a fence, after its language.
    if let Some((fence, fenced_text)) = Fence::parse(scalar_text) {
        let language_len =
            fenced_text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(fenced_text.len());
        scalar_text = fenced_text[language_len..].trim_end_matches(char::from(fence.mark)).trim();
    }
    let is_quoted =
        scalar_text.starts_with(['"', '\'', '“', '‘', '`', '„', '«']) || scalar_text.starts_with("\\\"");
    let quote_count = scalar_text.chars().filter(|&c| matches!(c, '"' | '“' | '”')).count();
    let is_word = !scalar_text.trim_end_matches([',', ' ']).contains(char::is_whitespace);
    // With one quote at most, the string was cut off; otherwise it has to end with a quote.
    let is_one_string =
        is_quoted && (quote_count <= 1 || scalar_text.ends_with(['"', '\'', '”', '’', '`', '´', '»']));
    let is_lone_sign = scalar_text.len() < 2 && !scalar_text.chars().all(char::is_alphanumeric);
    if is_lone_sign || !(is_word || is_one_string) {
        return FoundValue::default();
    }
    let start = scalar_text.as_ptr() as usize - text.as_ptr() as usize;
    let mut candidates = CandidateSelector::<M>::new(limits);
    let mut reader = configure_digits::<M>(JsonReader::new_document(limits))
        .with_start(Place::START.end_of(&text[..start]));
    reader.push(scalar_text, &mut candidates);
    reader.finish(&mut candidates);
    match candidates.count {
        1 => candidates.choose(text),
        _ => FoundValue::default(),
    }
}
