//! Excerpt of the lines around a finding, bounded in length for any text.

use std::borrow::Cow;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use tambour::Finding;

use crate::output::visible_char;

/// Maximum number of characters shown before a finding, from the same line.
const CHARS_BEFORE: usize = 60;
/// Maximum number of characters shown from the start of a finding to the end of its line.
const CHARS_AFTER: usize = 80;

/// Lines shown for a finding: the previous one, its own and the next one, each shortened if long.
pub(super) struct Excerpt {
    /// Name of the checked text.
    name: String,
    /// Lines shown.
    text: String,
    /// Number of the first line shown, in the checked text, from 0.
    first_line: usize,
    /// Line and column of the finding in the checked text, from 0.
    place: (usize, usize),
    /// Span of the finding in `text`.
    span: SourceSpan,
}

impl Excerpt {
    /// Cuts the excerpt from `text`, which is called `name`. Bytes that are not UTF-8 are shown as U+FFFD.
    pub(super) fn new(name: &str, text: &[u8], finding: &Finding) -> Excerpt {
        let start = finding.span.start.min(text.len());
        let end = finding.span.end.clamp(start, text.len());
        let line_start = memchr::memrchr(b'\n', &text[..start]).map_or(0, |at| at + 1);
        let line_end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |at| start + at);
        // A finding over several lines is marked on its first line only.
        let end = end.min(line_end);

        let mut excerpt_text = String::new();
        let mut lines_before = 0;
        if let Some(previous_end) = line_start.checked_sub(1) {
            let previous_start = memchr::memrchr(b'\n', &text[..previous_end]).map_or(0, |at| at + 1);
            push_line(&mut excerpt_text, &text[previous_start..previous_end]);
            lines_before = 1;
        }
        let head = decode_end(&text[line_start..start], CHARS_BEFORE + 1);
        // The characters nearest to the finding come first.
        let nearest_chars: Vec<char> = head.chars().rev().take(CHARS_BEFORE + 1).collect();
        if nearest_chars.len() > CHARS_BEFORE {
            excerpt_text.push('…');
        }
        excerpt_text.extend(nearest_chars.iter().take(CHARS_BEFORE).rev().copied().map(visible_char));
        let label_start = excerpt_text.len();
        let marked_text = decode_start(&text[start..end], CHARS_AFTER + 1);
        let line_tail = decode_start(&text[end..line_end], CHARS_AFTER + 1);
        excerpt_text.extend(marked_text.chars().take(CHARS_AFTER).map(visible_char));
        let label_end = excerpt_text.len();
        let room = CHARS_AFTER.saturating_sub(marked_text.chars().count());
        excerpt_text.extend(line_tail.chars().take(room).map(visible_char));
        if marked_text.chars().count() + line_tail.chars().count() > CHARS_AFTER {
            excerpt_text.push('…');
        }
        excerpt_text.push('\n');
        if let Some(after) = text.get(line_end + 1..)
            && !after.is_empty()
        {
            push_line(&mut excerpt_text, &after[..memchr::memchr(b'\n', after).unwrap_or(after.len())]);
        }
        let line = finding.line.saturating_sub(1) as usize;
        Excerpt {
            name: name.to_owned(),
            text: excerpt_text,
            first_line: line.saturating_sub(lines_before),
            place: (line, finding.column.saturating_sub(1) as usize),
            span: (label_start, label_end - label_start).into(),
        }
    }

    /// Span of the finding in the excerpt.
    pub(super) fn span(&self) -> SourceSpan {
        self.span
    }
}

/// Appends a line, shortened if long, and a line break.
fn push_line(excerpt_text: &mut String, line: &[u8]) {
    let line = decode_start(line.strip_suffix(b"\r").unwrap_or(line), CHARS_BEFORE + CHARS_AFTER + 1);
    let mut chars = line.chars();
    excerpt_text.extend(chars.by_ref().take(CHARS_BEFORE + CHARS_AFTER).map(visible_char));
    if chars.next().is_some() {
        excerpt_text.push('…');
    }
    excerpt_text.push('\n');
}

/// Bytes of the longest character in UTF-8.
const MAX_CHAR_BYTES: usize = 4;

/// Decodes the first characters of a text: at least `count`, if it has that many.
fn decode_start(text: &[u8], count: usize) -> Cow<'_, str> {
    // One character more, since the cut may fall within a character.
    String::from_utf8_lossy(&text[..text.len().min(MAX_CHAR_BYTES * (count + 1))])
}

/// Decodes the last characters of a text: at least `count`, if it has that many.
fn decode_end(text: &[u8], count: usize) -> Cow<'_, str> {
    let cut = text.len().saturating_sub(MAX_CHAR_BYTES * (count + 1));
    // Bytes 10xxxxxx at the cut continue a character whose start is cut off.
    let continuation =
        text[cut..].iter().take(MAX_CHAR_BYTES - 1).take_while(|byte| cut > 0 && **byte & 0xC0 == 0x80);
    String::from_utf8_lossy(&text[cut + continuation.count()..])
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        // Without context lines, miette asks for the location of the span only.
        let bytes = self.text.as_bytes();
        let contents = if before == 0 && after == 0 {
            let range = span.offset()..span.offset() + span.len();
            let marked_bytes = bytes.get(range).ok_or(MietteError::OutOfBounds)?;
            let (line, column) = self.place;
            MietteSpanContents::new_named(self.name.clone(), marked_bytes, *span, line, column, 1)
        } else {
            let lines = self.text.lines().count();
            MietteSpanContents::new_named(
                self.name.clone(),
                bytes,
                (0, bytes.len()).into(),
                self.first_line,
                0,
                lines,
            )
        };
        Ok(Box::new(contents))
    }
}
