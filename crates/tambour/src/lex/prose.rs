//! Trackers of the text around something that may act, such as a tool call. They tell whether it is in a
//! quotation of Markdown or HTML, in a sentence, or in a code span of several lines (R-93).
//!
//! Fences, and code spans within one line, belong to `code`; the decision whether anything acts belongs to
//! the dialects.

use super::markup::{MarkupTag, TagKind};

/// Tracks lines and code spans of a text. Memory is bounded, except for one flag per watched place.
#[derive(Clone, Debug, Default)]
pub struct ProseTracker {
    line: ProseLine,
    spans: SpanTracker,
    /// Text not processed yet. It is collected because the state is seldom asked for, and many small texts
    /// cost more than one long one.
    unread: String,
}

/// Maximum length in bytes of the text that is collected before it is processed.
const BATCH_LEN: usize = 256;

impl ProseTracker {
    /// Reads text.
    #[inline]
    pub fn push_text(&mut self, text: &str) {
        if self.unread.len() + text.len() > BATCH_LEN {
            self.flush_unread();
            if text.len() > BATCH_LEN {
                self.line.push_text(text);
                return self.spans.push_text(text);
            }
        }
        self.unread.push_str(text);
    }

    /// Processes the unread text.
    fn flush_unread(&mut self) {
        self.line.push_text(&self.unread);
        self.spans.push_text(&self.unread);
        self.unread.clear();
    }

    /// State of the current line after all text so far.
    #[must_use]
    pub fn line(&self) -> ProseLine {
        let mut line = self.line;
        line.push_text(&self.unread);
        line
    }

    /// Returns whether a code span may be open, begun on this line or an earlier one of the paragraph.
    pub fn is_in_span(&mut self) -> bool {
        self.flush_unread();
        self.spans.end_run();
        !self.spans.open_runs.is_empty()
    }

    /// Skips something on the line that is not text, such as a JSON value. It counts as content of the line.
    pub fn skip_value(&mut self) {
        self.flush_unread();
        self.spans.end_run();
        self.spans.has_content = true;
    }

    /// Watches the current place, so that [`ProseTracker::is_text`] can tell later whether it is in a code
    /// span. Returns its number, counted from 0.
    pub fn watch(&mut self) -> usize {
        self.skip_value();
        self.spans.watched.push(false);
        self.spans.watched.len() - 1
    }

    /// Number of watched places.
    #[must_use]
    pub fn watch_count(&self) -> usize {
        self.spans.watched.len()
    }

    /// Marks all watched places from number `from` on as text, for a reason other than code spans.
    pub fn mark_as_text(&mut self, from: usize) {
        self.flush_unread();
        if let Some(places) = self.spans.watched.get_mut(from..) {
            places.fill(true);
        }
    }

    /// Returns whether the watched place of this number is only text: it is in a code span that has closed,
    /// or was marked ([`ProseTracker::mark_as_text`]). False for an unknown number.
    pub fn is_text(&mut self, place: usize) -> bool {
        self.flush_unread();
        self.spans.end_run();
        self.spans.watched.get(place).copied().unwrap_or_default()
    }
}

/// State of the current line after the text read so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProseLine {
    /// True if the line has content after list and quotation markers.
    has_content: bool,
    /// True if a `>` precedes the content.
    is_quoted: bool,
    /// True if its last sentence has ended.
    is_sentence_ended: bool,
}

/// Characters that end a sentence or clause.
const SENTENCE_ENDS: &[char] = &['.', '!', '?', ':', ';', '…', '。', '！', '？', '：', '；'];

/// Characters that may follow the end of a sentence.
const CLOSERS: &[char] = &[')', ']', '"', '\'', '”', '’', '」', '』', '）', '*', '_'];

impl ProseLine {
    /// Reads text.
    pub fn push_text(&mut self, text: &str) {
        let mut line_text = text;
        if let Some(last) = memchr::memrchr(b'\n', text.as_bytes()) {
            *self = ProseLine::default();
            line_text = &text[last + 1..];
        }
        if !self.has_content {
            let is_marker = |c: char| c.is_whitespace() || matches!(c, '>' | '-' | '*' | '+' | '\u{FEFF}');
            let content_start = line_text.find(|c| !is_marker(c)).unwrap_or(line_text.len());
            self.is_quoted |= line_text[..content_start].contains('>');
            line_text = &line_text[content_start..];
            self.has_content = !line_text.is_empty();
        }
        let line_text = line_text.trim_end();
        match line_text.trim_end_matches(|c: char| c.is_whitespace() || CLOSERS.contains(&c)) {
            // White space and closing quotes after the end of a sentence do not begin another.
            "" => {}
            text => self.is_sentence_ended = text.ends_with(SENTENCE_ENDS),
        }
    }

    /// Returns whether the line belongs to a quotation.
    #[must_use]
    pub fn is_quoted(self) -> bool {
        self.is_quoted
    }

    /// Returns whether an unfinished sentence is on the line.
    #[must_use]
    pub fn is_in_sentence(self) -> bool {
        self.has_content && !self.is_sentence_ended
    }

    /// Returns whether the sentence before something on this line, such as a tag, continues in the text
    /// `after` it; `None` until more text decides. `is_end` is true if no more text follows.
    #[must_use]
    pub fn continues_with(self, after: &str, is_end: bool) -> Option<bool> {
        let blank_len = after.len() - after.trim_start_matches([' ', '\t']).len();
        Some(match after[blank_len..].chars().next() {
            _ if blank_len > MAX_BLANK => false,
            None if !is_end => return None,
            // End of the reply or line, or other markup.
            None | Some('\n' | '\r' | '<' | '[' | '◁') => false,
            Some(',') => true,
            Some(c) => self.is_in_sentence() || blank_len > 0 && c.is_lowercase(),
        })
    }
}

/// Maximum length in bytes of white space within a sentence.
const MAX_BLANK: usize = 64;

/// Tracks the code spans of a paragraph by their backtick runs.
#[derive(Clone, Debug, Default)]
struct SpanTracker {
    /// Runs that may still close: their length, and the number of places watched before each.
    open_runs: Vec<(usize, usize)>,
    /// Number of backticks in the current run; 0 outside of runs.
    run_len: usize,
    /// True if a backslash escapes the first backtick of the current or next run.
    is_run_escaped: bool,
    /// True if the line has text or backticks.
    has_content: bool,
    /// True if the line opens or closes a fence.
    is_fence_line: bool,
    /// Watched places, by number: true for those that are only text.
    watched: Vec<bool>,
}

/// Maximum number of open runs tracked.
const MAX_OPEN_RUNS: usize = 32;

impl SpanTracker {
    fn push_text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let found = memchr::memchr2(b'`', b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found);
            if found > at {
                self.end_run();
                let piece = &text[at..found];
                self.has_content |= !piece.trim_matches(|c: char| c.is_whitespace() || c == '>').is_empty();
                // An odd number of backslashes escapes the next backtick. If the piece is nothing but
                // backslashes, they continue those of the piece before.
                let slashes = piece.len() - piece.trim_end_matches('\\').len();
                self.is_run_escaped = (slashes % 2 == 1) != (slashes == piece.len() && self.is_run_escaped);
            }
            match bytes.get(found) {
                Some(b'`') => self.run_len += 1,
                Some(_) => self.end_line(),
                None => {}
            }
            at = found + 1;
        }
    }

    /// Ends a line. Spans continue on the next one unless this line is blank or belongs to a fence.
    fn end_line(&mut self) {
        self.end_run();
        if !self.has_content || self.is_fence_line {
            self.open_runs.clear();
        }
        (self.has_content, self.is_fence_line, self.is_run_escaped) = (false, false, false);
    }

    /// Ends the current backtick run, if any: it closes a span, opens one, or begins a fence.
    fn end_run(&mut self) {
        let length = std::mem::take(&mut self.run_len);
        if length == 0 {
            return;
        }
        let is_escaped = std::mem::take(&mut self.is_run_escaped);
        if length >= 3 && !self.has_content {
            self.is_fence_line = true;
        }
        self.has_content = true;
        if self.is_fence_line {
            return;
        }
        if let Some(first) = self.open_runs.iter().position(|(run_len, _)| *run_len == length) {
            let (_, first_watched) = self.open_runs[first];
            self.watched[first_watched..].fill(true);
            self.open_runs.truncate(first);
            return;
        }
        // An escaped first backtick opens nothing. It did count for closing a span (above), since inside code
        // a backslash escapes nothing.
        let opening_len = length - usize::from(is_escaped);
        if opening_len > 0 && self.open_runs.len() < MAX_OPEN_RUNS {
            self.open_runs.push((opening_len, self.watched.len()));
        }
    }
}

/// HTML elements whose content is code or a quotation.
const QUOTING_TAGS: &[&str] = &["pre", "code", "samp", "blockquote", "q"];

/// Counts open HTML elements whose content is code or a quotation: markup in them is an example.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuotingElements {
    open_count: usize,
}

impl QuotingElements {
    /// Observes a tag that is in neither Markdown code nor a comment.
    pub fn observe_tag(&mut self, tag: &MarkupTag<'_>) {
        if !QUOTING_TAGS.iter().any(|name| name.eq_ignore_ascii_case(tag.name)) {
            return;
        }
        self.open_count = match tag.kind {
            TagKind::Open => self.open_count + 1,
            TagKind::Close => self.open_count.saturating_sub(1),
            TagKind::SelfClosing => self.open_count,
        };
    }

    /// Returns whether the following text is quoted.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.open_count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> ProseLine {
        let mut line = ProseLine::default();
        text.chars().for_each(|c| line.push_text(c.encode_utf8(&mut [0; 4])));
        let mut uncut_line = ProseLine::default();
        uncut_line.push_text(text);
        assert_eq!(format!("{line:?}"), format!("{uncut_line:?}"), "{text:?}");
        line
    }

    #[test]
    fn a_line_knows_its_sentences_and_quotations() {
        for (text, is_in_sentence, is_quoted) in [
            ("", false, false),
            ("Use ", true, false),
            ("It is done. ", false, false),
            ("He said (\"go.\") ", false, false),
            ("好的。", false, false),
            ("例如", true, false),
            ("> ", false, true),
            ("- > Use ", true, true),
            ("> quoted\nplain. ", false, false),
            ("- ", false, false),
            ("Use\n", false, false),
            ("Done.) and", true, false),
        ] {
            let line = line(text);
            assert_eq!((line.is_in_sentence(), line.is_quoted()), (is_in_sentence, is_quoted), "{text:?}");
        }
    }

    #[test]
    fn text_after_a_place_decides_whether_the_sentence_continues() {
        let (open_line, ended_line) = (line("Use "), line("Done. "));
        assert_eq!(open_line.continues_with("", false), None);
        assert_eq!(open_line.continues_with("  ", false), None);
        assert_eq!(open_line.continues_with("  ", true), Some(false));
        assert_eq!(open_line.continues_with(" to", false), Some(true));
        assert_eq!(open_line.continues_with(".", false), Some(true));
        assert_eq!(open_line.continues_with("\nto", false), Some(false));
        assert_eq!(open_line.continues_with(" <b", false), Some(false));
        assert_eq!(ended_line.continues_with(" And", false), Some(false));
        assert_eq!(ended_line.continues_with(" is how", false), Some(true));
        assert_eq!(ended_line.continues_with(", then", false), Some(true));
    }

    #[test]
    fn marked_places_are_text_and_no_others() {
        let mut prose = ProseTracker::default();
        assert_eq!(prose.watch_count(), 0);
        prose.mark_as_text(0);
        prose.watch();
        let from = prose.watch_count();
        prose.watch();
        prose.watch();
        prose.mark_as_text(from);
        prose.watch();
        let text: Vec<bool> = (0..4).map(|place| prose.is_text(place)).collect();
        assert_eq!(text, [false, true, true, false]);
    }

    #[test]
    fn code_spans_continue_over_lines_of_a_paragraph() {
        let places = |text: &str, is_by_character: bool| {
            let mut prose = ProseTracker::default();
            for (at, part) in text.split('@').enumerate() {
                if at > 0 {
                    prose.watch();
                }
                match is_by_character {
                    true => part.chars().for_each(|c| prose.push_text(c.encode_utf8(&mut [0; 4]))),
                    false => prose.push_text(part),
                }
            }
            (0..text.matches('@').count()).map(|at| prose.is_text(at)).collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("a `b\n@ c` d", vec![true]),
            ("a `b\n@\nc` d", vec![true]),
            ("a `b` @ c", vec![false]),
            ("a `b\n\n@ c` d", vec![false]),
            ("a ``b ` @\n c`` @", vec![true, false]),
            ("a \\`b\n@ c` d", vec![false]),
            ("```\nx\n```\n@ `a`", vec![false]),
            ("it`s\n@ fine", vec![false]),
        ] {
            assert_eq!(places(text, false), expected, "{text:?}");
            assert_eq!(places(text, true), expected, "{text:?}");
        }
    }
}
