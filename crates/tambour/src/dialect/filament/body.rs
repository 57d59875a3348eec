//! Readers for the bodies of blocks: JSON, and sequences of elements, such as `<option>` in a `choice`.

use std::ops::Range;

use serde_json::Value;

use super::rules;
use super::tags::attributes;
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::comment::comment_len;
use crate::lex::markup::{MarkupLexer, MarkupToken, TagKind, TagNames};
use crate::lex::space::{is_space, trim};
use crate::limits::Limits;
use crate::repair::json::{self, ValueDoubt, ValueDoubts};
use crate::span::{Extent, Place};

/// The JSON of a block.
#[derive(Debug)]
pub(super) struct BlockJson {
    pub(super) value: Value,
    /// Set if no quote or bracket had to be added at its end (F-214).
    pub(super) is_complete: bool,
    /// Range of the JSON in the text it was read from.
    pub(super) span: Range<usize>,
    /// Values that may differ from the intended ones. Their places count from `base`.
    pub(super) doubts: ValueDoubts,
    /// Place in the reply from which the places of `doubts` count.
    pub(super) base: Place,
}

impl BlockJson {
    /// Returns the extent of a doubt in the reply.
    pub(super) fn extent_of(&self, doubt: &ValueDoubt) -> Extent {
        let place = doubt.place.rebase(self.base);
        Extent { place, end: place.offset + doubt.end.saturating_sub(doubt.place.offset) }
    }
}

/// Reads the JSON of a text at `at`: strictly first, then with repairs (F-207). Returns `None` if there is no
/// object or list.
pub(super) fn read_json(
    text: &str,
    at: Place,
    limits: &Limits,
    out: &mut dyn IntentSink,
) -> Option<BlockJson> {
    let start = text.len() - text.trim_start_matches(is_space).len();
    let trimmed = trim(text);
    let fault = match json::parse_strict_with_doubts(trimmed, limits) {
        Ok(found) => {
            let value = found.value.filter(|value| value.is_array() || value.is_object())?;
            let base = at.end_of(&text[..start]);
            found.reports.into_iter().for_each(|report| out.report(move_report(report, base)));
            let span = start..start + trimmed.len();
            return Some(BlockJson { value, is_complete: true, span, doubts: found.doubts, base });
        }
        Err(fault) => fault,
    };
    let fault_place = fault.place.rebase(at.end_of(&text[..start]));
    let comments_len = leading_comments_len(text);
    let (text, at) = (&text[comments_len..], at.end_of(&text[..comments_len]));
    let found = json::find(text, limits);
    let list_or_object = found.value.filter(|value| value.is_array() || value.is_object());
    let end = fault_place.offset + fault.end.saturating_sub(fault.place.offset);
    let report = FindingReport::new(
        rules::JSON_NOT_STRICT,
        fault_place,
        end,
        format!("not strict JSON: {}", fault.message),
    );
    let Some(value) = list_or_object else {
        // Prose is not broken JSON.
        if trimmed.starts_with(['[', '{', '［', '｛']) {
            out.report(report);
        }
        return None;
    };
    out.report(report.with_repair("JSON repaired"));
    for json_report in found.reports {
        let mut report = move_report(json_report, at);
        // The repair must not say that text was left out: if the block is refused later, its text is shown.
        let is_left_out = report.repair.as_ref().is_some_and(|repair| repair.contains("left"));
        if is_left_out || report.rule.code == crate::repair::rules::TEXT_AROUND.code {
            report.repair = Some("not used".to_owned());
        }
        out.report(report);
    }
    let span = comments_len + found.span.start..comments_len + found.span.end;
    Some(BlockJson { value, is_complete: !found.is_auto_closed, span, doubts: found.doubts, base: at })
}

/// Returns the offset after the last comment before the JSON in a text, or 0 if no comment precedes it.
/// Values in comments are examples.
fn leading_comments_len(text: &str) -> usize {
    let (mut at, mut end, mut is_line_start) = (0, 0, true);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let len_to = |end_mark: &str| rest.find(end_mark).map_or(rest.len(), |index| index + end_mark.len());
        let line_len = || rest.find('\n').unwrap_or(rest.len());
        let is_separate = is_line_start || text[..at].ends_with(is_space);
        let len = match rest.as_bytes() {
            [b'/', b'*', ..] => len_to("*/"),
            // Inside a word, as in `https://`, the slashes do not begin a comment.
            [b'/', b'/', ..] if is_separate => line_len(),
            [b'#', ..] | [b'-', b'-', ..] if is_line_start => line_len(),
            [b'<', b'!', b'-', b'-', ..] => comment_len(&rest[4..]).map_or(rest.len(), |len| len + 4),
            [b'[' | b'{', ..] => break,
            _ => 0,
        };
        let is_comment = len > 0;
        is_line_start = !is_comment && (c == '\n' || is_line_start && is_space(c));
        at += if is_comment { len } else { c.len_utf8() };
        end = if is_comment { at } else { end };
    }
    end
}

/// Returns whether the whole body of a block that does not act is JSON, after repairs that keep its meaning
/// . Brackets with doubtful values and without any quotation marks are more likely text.
pub(super) fn is_json(text: &str, limits: &Limits) -> bool {
    let trimmed = trim(text);
    if json::parse_strict(trimmed, limits).is_ok_and(|value| value.is_array() || value.is_object()) {
        return true;
    }
    let found = json::find(trimmed, limits);
    let is_whole = found.span.start == 0 && trim(&trimmed[found.span.end..]).is_empty();
    found.value.is_some_and(|value| value.is_array() || value.is_object())
        && is_whole
        && (found.doubts.is_empty() || trimmed.contains(['"', '“', '”']))
}

/// Moves a report to its place in the reply; its own places count from `base`.
pub(super) fn move_report(mut report: FindingReport, base: Place) -> FindingReport {
    let len = report.end.saturating_sub(report.place.offset);
    report.place = report.place.rebase(base);
    report.end = report.place.offset + len;
    let is_duplicate = report.rule.code == crate::repair::rules::DUPLICATE_KEY.code;
    if is_duplicate { report.with_row("R-82") } else { report }
}

/// An element in a block.
#[derive(Debug)]
pub(super) struct BlockElement<'a> {
    /// Name in lower case.
    pub(super) name: String,
    /// Attributes of the tag, with names in lower case and decoded values; only the first of each name.
    pub(super) attributes: Vec<(String, String)>,
    /// Text between the tags.
    pub(super) text: &'a str,
    /// Place of the text.
    pub(super) start: Place,
    /// Set if its own closing tag ended it, or if its tag closes itself.
    pub(super) is_closed: bool,
}

impl BlockElement<'_> {
    /// Returns the value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        find_attribute(&self.attributes, name)
    }
}

/// Returns the value of the attribute `name`, which is in lower case.
pub(super) fn find_attribute<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// The elements of a block, and the text around them.
#[derive(Debug, Default)]
pub(super) struct BlockElements<'a> {
    pub(super) elements: Vec<BlockElement<'a>>,
    /// Pieces of text outside of the elements, with their places.
    pub(super) surrounding_text: Vec<(&'a str, Place)>,
    /// Names, in lower case, of the enclosing elements that are present.
    pub(super) enclosing_names: Vec<String>,
}

impl<'a> BlockElements<'a> {
    /// Iterates over the elements called `name`, which is in lower case.
    pub(super) fn elements_named(&self, name: &'static str) -> impl Iterator<Item = &BlockElement<'a>> {
        self.elements.iter().filter(move |element| element.name == name)
    }

    /// Returns the text outside of the elements, each piece on a separate line.
    pub(super) fn joined_surrounding_text(&self) -> String {
        let pieces: Vec<&str> = self
            .surrounding_text
            .iter()
            .map(|(text, _)| trim(text))
            .filter(|text| !text.is_empty())
            .collect();
        pieces.join("\n")
    }
}

/// Names with capital letters that are accepted without a report.
const ACCEPTED_SPELLINGS: &[&str] = &["Analysis", "JSONPatch"];

/// Reads a body at `body_start`: elements called `names`, which do not nest, and elements called
/// `enclosing_names`, which enclose them. An unclosed element ends where the next one begins. Other tags are
/// text.
pub(super) fn read_elements<'a>(
    body: &'a str,
    body_start: Place,
    names: &[&str],
    enclosing_names: &[&str],
    limits: &Limits,
    out: &mut dyn IntentSink,
) -> BlockElements<'a> {
    let all_names = names.iter().chain(enclosing_names).copied().chain(ACCEPTED_SPELLINGS.iter().copied());
    let mut lexer =
        MarkupLexer::from_place(body_start, "", limits.tag).into_tolerant(TagNames::new(all_names));
    let mut reader = ElementReader {
        body,
        base_offset: body_start.offset,
        text_start: body_start,
        text_index: 0,
        open_element: None,
        elements: BlockElements::default(),
    };
    let mut read_token = |token: MarkupToken<'_>, place: Place| {
        let MarkupToken::Tag(tag) = token else { return };
        let name = tag.name.to_ascii_lowercase();
        let is_known = names.contains(&name.as_str());
        if !is_known && !enclosing_names.contains(&name.as_str()) {
            return;
        }
        let end = place.offset + tag.raw.len() - body_start.offset;
        if !tag.faults.is_none() {
            let message = format!("`{}` is not written correctly", tag.raw);
            let report =
                FindingReport::new(rules::TAG_SPELLING, place, place.offset + tag.raw.len(), message);
            out.report(report.with_repair("read as the tag it means"));
        }
        match tag.kind {
            TagKind::Close if is_known => reader.close(Some(&name), place, out),
            TagKind::Close => reader.close(None, place, out),
            kind => {
                reader.close(None, place, out);
                if is_known {
                    reader.open_element =
                        Some(OpenBlockElement { name, attributes: attributes(&tag), start: place });
                    if kind == TagKind::SelfClosing {
                        (reader.text_index, reader.text_start) = (end, place.end_of(tag.raw));
                        let is_closed = true;
                        reader.finish_element(end, is_closed);
                    }
                } else if !reader.elements.enclosing_names.contains(&name) {
                    reader.elements.enclosing_names.push(name);
                }
            }
        }
        reader.text_index = end;
        reader.text_start = place.end_of(tag.raw);
    };
    lexer.push(body, &mut |token, place| read_token(token, place.resolve()));
    lexer.finish(&mut |token, place| read_token(token, place.resolve()));
    let end = body_start.end_of(body);
    reader.close(None, end, out);
    reader.elements
}

/// State of [`read_elements`].
struct ElementReader<'a> {
    body: &'a str,
    /// Offset of the body in the reply.
    base_offset: usize,
    /// Place of the current text.
    text_start: Place,
    /// Offset of the current text in the body.
    text_index: usize,
    /// Current element; `None` between elements.
    open_element: Option<OpenBlockElement>,
    elements: BlockElements<'a>,
}

/// An element that has begun.
struct OpenBlockElement {
    name: String,
    attributes: Vec<(String, String)>,
    /// Place of its tag.
    start: Place,
}

impl ElementReader<'_> {
    /// Ends the current element or text before `place`. `name` is the name of the closing tag there, or
    /// `None` if a tag of another kind, or the end of the body, ends it.
    fn close(&mut self, name: Option<&str>, place: Place, out: &mut dyn IntentSink) {
        if let Some(OpenBlockElement { name: open_name, start, .. }) = &self.open_element
            && name != Some(open_name)
        {
            let report = FindingReport::new(
                rules::TAG_UNCLOSED,
                *start,
                place.offset,
                format!("`<{open_name}>` is not closed"),
            );
            out.report(report.with_repair("closed here"));
        }
        let is_closed = self.open_element.as_ref().is_some_and(|open| name == Some(&open.name));
        self.finish_element(place.offset - self.base_offset, is_closed);
    }

    /// Ends the current element or text at the offset `end` of the body.
    fn finish_element(&mut self, end: usize, is_closed: bool) {
        let text = &self.body[self.text_index.min(end)..end];
        match self.open_element.take() {
            Some(OpenBlockElement { name, attributes, .. }) => {
                self.elements.elements.push(BlockElement {
                    name,
                    attributes,
                    text,
                    start: self.text_start,
                    is_closed,
                });
            }
            None if trim(text).is_empty() => {}
            None => self.elements.surrounding_text.push((text, self.text_start)),
        }
    }
}
