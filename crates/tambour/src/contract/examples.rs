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
    markdown: &'a str,
    /// Opening fence, and offset of the block.
    fence: (&'a str, usize),
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
                    fence: (markdown[range.clone()].lines().next().unwrap_or_default(), range.start),
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

fn fence_language(info: &str) -> String {
    let info = info.trim_start_matches(['{', '.', ' ']);
    info.split([' ', '\t', ',', '{', '}']).next().unwrap_or_default().to_lowercase()
}

impl FencedExample<'_> {
    /// Adds the fence to the text, for contracts that require one around a reply (P-001).
    #[must_use]
    pub fn with_fence(mut self) -> Self {
        let (fence, at) = self.fence;
        let marks = Fence::parse(fence).map_or("", |(_, info)| &fence[..fence.len() - info.len()]);
        for piece in &mut self.pieces {
            piece.0 += fence.len() + 1;
        }
        self.pieces.insert(0, (0, at));
        self.text = format!("{fence}\n{}{marks}\n", self.text);
        self
    }

    /// Translates a finding on the text to places in the document.
    #[must_use]
    pub fn relocate(&self, mut finding: Finding) -> Finding {
        let place = Place::START.end_of(&self.markdown[..self.document_offset(finding.span.start)]);
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
        let next = self.pieces.partition_point(|(start, _)| *start <= at);
        let (start, offset) = match next.checked_sub(1) {
            Some(index) => self.pieces[index],
            None => (0, self.fence.1 + self.fence.0.len()),
        };
        self.markdown.floor_char_boundary(offset + (at - start))
    }
}
