//! Bodies of blocks: JSON, and sequences of elements.

use std::ops::Range;

use serde_json::Value;

use super::rules;
use super::tags::attributes;
use crate::dialect::Output;
use crate::finding::Report;
use crate::lex::comment::comment_len;
use crate::lex::markup::{Markup, Names, TagKind, Token};
use crate::lex::space::{is_space, trim};
use crate::limits::Limits;
use crate::repair::json::{self, Doubts, ValueDoubt};
use crate::span::Place;

/// The JSON of a block.
#[derive(Debug)]
pub(super) struct Json {
    pub(super) value: Value,
    /// Set if no quote or bracket had to be added at its end (F-214).
    pub(super) complete: bool,
    /// Range in the body.
    pub(super) span: Range<usize>,
    /// Values that may not be the ones meant, placed in a text that begins at `base`.
    pub(super) doubts: Doubts,
    pub(super) base: Place,
}

impl Json {
    /// Returns the place of a doubt in the reply, and the offset after it.
    pub(super) fn place(&self, doubt: &ValueDoubt) -> (Place, usize) {
        let place = doubt.place.within(self.base);
        (place, place.offset + doubt.end.saturating_sub(doubt.place.offset))
    }
}

/// Reads the JSON of a text at `at`: strictly first, then with repairs (F-207). Returns `None` if there is no
/// object or list.
pub(super) fn json(text: &str, at: Place, limits: &Limits, out: &mut dyn Output) -> Option<Json> {
    let start = text.len() - text.trim_start_matches(is_space).len();
    let trimmed = trim(text);
    let fault = match json::strict_found(trimmed, limits) {
        Ok(found) => {
            let value = found.value.filter(|value| value.is_array() || value.is_object())?;
            let base = at.after(&text[..start]);
            found.reports.into_iter().for_each(|report| out.report(moved(report, base)));
            let span = start..start + trimmed.len();
            return Some(Json { value, complete: true, span, doubts: found.doubts, base });
        }
        Err(fault) => fault,
    };
    let here = fault.place.within(at.after(&text[..start]));
    let skipped = comments(text);
    let (text, at) = (&text[skipped..], at.after(&text[..skipped]));
    let found = json::find(text, limits);
    let usable = found.value.filter(|value| value.is_array() || value.is_object());
    let end = here.offset + fault.end.saturating_sub(fault.place.offset);
    let report = Report::new(rules::JSON_NOT_STRICT, here, end, format!("no strict JSON: {}", fault.message));
    let Some(value) = usable else {
        // Prose is not broken JSON.
        if trimmed.starts_with(['[', '{', '［', '｛']) {
            out.report(report);
        }
        return None;
    };
    out.report(report.repaired("JSON repaired"));
    for repair in found.reports {
        let mut repair = moved(repair, at);
        // If the block cannot be used after all, its text is shown.
        let left = repair.repair.as_ref().is_some_and(|done| done.contains("left"));
        if left || repair.rule.code == crate::repair::rules::TEXT_AROUND.code {
            repair.repair = Some("not used".to_owned());
        }
        out.report(repair);
    }
    let span = skipped + found.span.start..skipped + found.span.end;
    Some(Json { value, complete: !found.closed_by_us, span, doubts: found.doubts, base: at })
}

/// Returns the length of the comments before JSON, with the text before them: commented values are examples
///
fn comments(text: &str) -> usize {
    let (mut at, mut end, mut begins) = (0, 0, true);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let close = |close: &str| rest.find(close).map_or(rest.len(), |found| found + close.len());
        let line = || rest.find('\n').unwrap_or(rest.len());
        let free = begins || text[..at].ends_with(is_space);
        let comment = match rest.as_bytes() {
            [b'/', b'*', ..] => close("*/"),
            [b'/', b'/', ..] if free => line(),
            [b'#', ..] | [b'-', b'-', ..] if begins => line(),
            [b'<', b'!', b'-', b'-', ..] => comment_len(&rest[4..]).map_or(rest.len(), |len| len + 4),
            [b'[' | b'{', ..] => break,
            _ => 0,
        };
        begins = comment == 0 && (c == '\n' || begins && is_space(c));
        at += if comment == 0 { c.len_utf8() } else { comment };
        end = if comment == 0 { end } else { at };
    }
    end
}

/// Returns whether a whole body that only displays something is JSON, after repairs that keep its meaning
/// . Brackets without any quoted text are more likely text.
pub(super) fn is_json(text: &str, limits: &Limits) -> bool {
    let trimmed = trim(text);
    if json::strict(trimmed, limits).is_ok_and(|value| value.is_array() || value.is_object()) {
        return true;
    }
    let found = json::find(trimmed, limits);
    let whole = found.span.start == 0 && trim(&trimmed[found.span.end..]).is_empty();
    found.value.is_some_and(|value| value.is_array() || value.is_object())
        && whole
        && (found.doubts.is_empty() || trimmed.contains(['"', '“', '”']))
}

/// Moves a report on a text that begins at `base` to its place in the reply.
pub(super) fn moved(mut report: Report, base: Place) -> Report {
    let len = report.end.saturating_sub(report.place.offset);
    report.place = report.place.within(base);
    report.end = report.place.offset + len;
    let twice = report.rule.code == crate::repair::rules::DUPLICATE_KEY.code;
    if twice { report.row("R-82") } else { report }
}

/// An element in a block.
#[derive(Debug)]
pub(super) struct Field<'a> {
    /// Name in lower case.
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    /// Text of the element, and its place.
    pub(super) text: &'a str,
    pub(super) at: Place,
    /// Set if its own tag closed it.
    pub(super) closed: bool,
}

impl Field<'_> {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        find(&self.attributes, name)
    }
}

/// Returns the value of an attribute.
pub(super) fn find<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The elements of a block, and the text around them.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) fields: Vec<Field<'a>>,
    /// Text outside of the elements, with places.
    pub(super) rest: Vec<(&'a str, Place)>,
    /// Names of the enclosing elements that are present.
    pub(super) around: Vec<String>,
}

impl<'a> Fields<'a> {
    pub(super) fn named(&self, name: &'static str) -> impl Iterator<Item = &Field<'a>> {
        self.fields.iter().filter(move |field| field.name == name)
    }

    /// Returns the text outside of the elements, each piece on a line of its own.
    pub(super) fn rest(&self) -> String {
        let pieces: Vec<&str> =
            self.rest.iter().map(|(text, _)| trim(text)).filter(|text| !text.is_empty()).collect();
        pieces.join("\n")
    }
}

/// Other spellings of names that are not reported.
const SPELLINGS: &[&str] = &["Analysis", "JSONPatch"];

/// Reads a body at `at`: elements called `names`, which do not nest, and elements called `around`, which
/// enclose them. An unclosed one ends where the next begins.
pub(super) fn fields<'a>(
    body: &'a str,
    at: Place,
    names: &[&str],
    around: &[&str],
    limits: &Limits,
    out: &mut dyn Output,
) -> Fields<'a> {
    let all = names.iter().chain(around).copied().chain(SPELLINGS.iter().copied());
    let mut lexer = Markup::at(at, "", limits.tag).tolerant(Names::new(all));
    let mut reading = Reading { body, base: at.offset, at, from: 0, open: None, found: Fields::default() };
    let mut token = |token: Token<'_>, place: Place| {
        let Token::Tag(tag) = token else { return };
        let name = tag.name.to_ascii_lowercase();
        let known = names.contains(&name.as_str());
        if !known && !around.contains(&name.as_str()) {
            return;
        }
        let end = place.offset + tag.raw.len() - at.offset;
        if !tag.slips.is_none() {
            let message = format!("`{}` is not written as it should be", tag.raw);
            let report = Report::new(rules::TAG_SPELLING, place, place.offset + tag.raw.len(), message);
            out.report(report.repaired("read as the tag it means"));
        }
        match tag.kind {
            TagKind::Close if known => reading.close(Some(&name), place, out),
            TagKind::Close => reading.close(None, place, out),
            kind => {
                reading.close(None, place, out);
                if known {
                    reading.open = Some(Begun { name, attributes: attributes(&tag), at: place });
                    reading.from = end;
                    if kind == TagKind::SelfClosing {
                        reading.from = end;
                        reading.ended(end, true);
                    }
                } else if !reading.found.around.contains(&name) {
                    reading.found.around.push(name);
                }
            }
        }
        reading.from = end;
        reading.at = place.after(tag.raw);
    };
    lexer.push(body, &mut |one, place| token(one, place.get()));
    lexer.finish(&mut |one, place| token(one, place.get()));
    let end = at.after(body);
    reading.close(None, end, out);
    reading.found
}

struct Reading<'a> {
    body: &'a str,
    base: usize,
    /// Start of the current text.
    at: Place,
    from: usize,
    /// Current element.
    open: Option<Begun>,
    found: Fields<'a>,
}

/// An element that has begun.
struct Begun {
    name: String,
    attributes: Vec<(String, String)>,
    at: Place,
}

impl Reading<'_> {
    /// Ends the current element or text before `place`, with the closing tag of that name or without one.
    fn close(&mut self, name: Option<&str>, place: Place, out: &mut dyn Output) {
        if let Some(Begun { name: open, at, .. }) = &self.open
            && name != Some(open)
        {
            let report =
                Report::new(rules::TAG_UNCLOSED, *at, place.offset, format!("`<{open}>` is not closed"));
            out.report(report.repaired("closed here"));
        }
        let closed = self.open.as_ref().is_some_and(|open| name == Some(&open.name));
        self.ended(place.offset - self.base, closed);
    }

    fn ended(&mut self, end: usize, closed: bool) {
        let text = &self.body[self.from.min(end)..end];
        match self.open.take() {
            Some(Begun { name, attributes, .. }) => {
                self.found.fields.push(Field { name, attributes, text, at: self.at, closed });
            }
            None if trim(text).is_empty() => {}
            None => self.found.rest.push((text, self.at)),
        }
    }
}
