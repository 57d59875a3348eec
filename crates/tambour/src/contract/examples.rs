//! Fenced examples in Markdown documents, to be checked against a contract (P-037).

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use crate::finding::Finding;
use crate::lex::fence::Fence;
use crate::span::Place;

/// One fenced code block of a Markdown document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FencedExample<'a> {
    /// First word of the info string, in lower case; empty if there is none.
    pub language: String,
    /// Line of the opening fence, from 1.
    pub line: u32,
    /// Content, without the indentation that the block has in its document.
    pub text: String,
    /// The whole document.
    markdown: &'a str,
    /// Opening line of the block, from its fence on, without its line end.
    fence_line: &'a str,
    /// Offset of `fence_line` in the document.
    fence_offset: usize,
    /// Start of each piece of the text: offset in the text, offset in the document.
    pieces: Vec<(usize, usize)>,
}

/// Fenced code blocks of a Markdown document, including those in lists and quotations.
///
/// ```
/// let examples = tambour::contract::find_examples("# Rules\n\n```json\n{}\n```\n");
/// assert_eq!((examples[0].language.as_str(), examples[0].text.as_str()), ("json", "{}\n"));
/// ```
#[must_use]
pub fn find_examples(markdown: &str) -> Vec<FencedExample<'_>> {
    let mut out = Vec::new();
    let mut open_example: Option<FencedExample<'_>> = None;
    let mut place = Place::START;
    for (event, range) in Parser::new(markdown).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                place.advance(&markdown[place.offset..range.start]);
                open_example = Some(FencedExample {
                    language: fence_language(&info),
                    line: place.line,
                    text: String::new(),
                    markdown,
                    fence_line: markdown[range.clone()].lines().next().unwrap_or_default(),
                    fence_offset: range.start,
                    pieces: Vec::new(),
                });
            }
            Event::Text(text) => {
                if let Some(example) = &mut open_example {
                    example.pieces.push((example.text.len(), range.start));
                    example.text.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => out.extend(open_example.take()),
            _ => {}
        }
    }
    out
}

/// First word of an info string, in lower case. The forms `{.json}` and `json,title=x` both give `json`.
fn fence_language(info: &str) -> String {
    let info = info.trim_start_matches(['{', '.', ' ']);
    info.split([' ', '\t', ',', '{', '}']).next().unwrap_or_default().to_lowercase()
}

impl FencedExample<'_> {
    /// Adds the fence lines to the text, for contracts that require a fence around a reply (P-001).
    #[must_use]
    pub fn with_fence(mut self) -> Self {
        let opening_line = self.fence_line;
        let closing_line = Fence::parse(opening_line)
            .map_or("", |(_, info)| &opening_line[..opening_line.len() - info.len()]);
        for (text_offset, _) in &mut self.pieces {
            *text_offset += opening_line.len() + 1;
        }
        self.pieces.insert(0, (0, self.fence_offset));
        self.text = format!("{opening_line}\n{}{closing_line}\n", self.text);
        self
    }

    /// Translates a finding on the text to places in the document.
    #[must_use]
    pub(crate) fn relocate(&self, mut finding: Finding) -> Finding {
        let place = Place::START.end_of(&self.markdown[..self.document_offset(finding.span.start)]);
        // The end is computed from the last byte, since the byte after it may be in another piece.
        let end = match finding.span.end.checked_sub(1) {
            Some(last) if finding.span.end > finding.span.start => self.document_offset(last) + 1,
            _ => place.offset,
        };
        (finding.span.start, finding.span.end) = (place.offset, end.max(place.offset));
        (finding.line, finding.column) = (place.line, place.column);
        finding
    }

    /// Offset in the document of an offset in the text.
    fn document_offset(&self, at: usize) -> usize {
        let next_piece = self.pieces.partition_point(|(start, _)| *start <= at);
        let (text_offset, document_offset) = match next_piece.checked_sub(1) {
            Some(index) => self.pieces[index],
            // An empty block has no pieces.
            None => (0, self.fence_offset + self.fence_line.len()),
        };
        self.markdown.floor_char_boundary(document_offset + (at - text_offset))
    }
}
