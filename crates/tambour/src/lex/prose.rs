//! Context of something that may act: whether it is in a quotation, in a sentence, or in a code span that
//! continues over lines (R-93).
//!
//! Fences and code within one line belong to `code`; the decision whether anything acts belongs to the
//! dialects.

/// Tracks prose. Memory is bounded, except for one bit per watched place.
#[derive(Clone, Debug, Default)]
pub struct Prose {
    line: Line,
    spans: Spans,
    /// Text not processed yet: few replies are queried, and many small texts cost more than one long one.
    unread: String,
}

/// Bytes of text that are processed together.
const TOGETHER: usize = 256;

impl Prose {
    /// Reads text.
    #[inline]
    pub fn text(&mut self, text: &str) {
        if self.unread.len() + text.len() > TOGETHER {
            self.read();
            if text.len() > TOGETHER {
                self.line.text(text);
                return self.spans.text(text);
            }
        }
        self.unread.push_str(text);
    }

    /// Processes the unread text.
    fn read(&mut self) {
        self.line.text(&self.unread);
        self.spans.text(&self.unread);
        self.unread.clear();
    }

    /// State of the current line after all text so far.
    #[must_use]
    pub fn line(&self) -> Line {
        let mut line = self.line;
        line.text(&self.unread);
        line
    }

    /// Returns whether a code span may be open, begun on this line or an earlier one of the paragraph.
    pub fn in_span(&mut self) -> bool {
        self.read();
        self.spans.end_run();
        !self.spans.open.is_empty()
    }

    /// Skips something on the line that is not text, such as a value.
    pub fn pass_over(&mut self) {
        self.read();
        self.spans.end_run();
        self.spans.filled = true;
    }

    /// Watches the current place: [`Prose::is_text`] tells later whether it is in a code span. Returns its
    /// number, counted from 0.
    pub fn watch(&mut self) -> usize {
        self.pass_over();
        self.spans.watched.push(false);
        self.spans.watched.len() - 1
    }

    /// Number of watched places.
    #[must_use]
    pub fn watched(&self) -> usize {
        self.spans.watched.len()
    }

    /// Marks all watched places from number `from` on as text for another reason ([`Prose::is_text`]).
    pub fn set_text(&mut self, from: usize) {
        self.read();
        if let Some(places) = self.spans.watched.get_mut(from..) {
            places.fill(true);
        }
    }

    /// Returns whether a watched place is in a code span that has closed, or was marked as text
    /// ([`Prose::set_text`]).
    pub fn is_text(&mut self, place: usize) -> bool {
        self.read();
        self.spans.end_run();
        self.spans.watched.get(place).copied().unwrap_or_default()
    }
}

/// State of a line up to a place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// True if the line has content behind list and quotation markers.
    filled: bool,
    quoted: bool,
    /// True if its last sentence has ended.
    ended: bool,
}

/// Characters that end a sentence or clause.
const ENDS: &[char] = &['.', '!', '?', ':', ';', '…', '。', '！', '？', '：', '；'];

/// Characters that may follow the end of a sentence.
const CLOSERS: &[char] = &[')', ']', '"', '\'', '”', '’', '」', '』', '）', '*', '_'];

impl Line {
    /// Reads text.
    pub fn text(&mut self, text: &str) {
        let mut rest = text;
        if let Some(last) = memchr::memrchr(b'\n', text.as_bytes()) {
            *self = Line::default();
            rest = &text[last + 1..];
        }
        if !self.filled {
            let prefix = |c: char| c.is_whitespace() || matches!(c, '>' | '-' | '*' | '+' | '\u{FEFF}');
            let content = rest.find(|c| !prefix(c)).unwrap_or(rest.len());
            self.quoted |= rest[..content].contains('>');
            rest = &rest[content..];
            self.filled = !rest.is_empty();
        }
        let rest = rest.trim_end();
        match rest.trim_end_matches(|c: char| c.is_whitespace() || CLOSERS.contains(&c)) {
            "" => self.ended &= !rest.is_empty() || self.filled,
            text => self.ended = text.ends_with(ENDS),
        }
    }

    /// Returns whether the line belongs to a quotation.
    #[must_use]
    pub fn is_quoted(self) -> bool {
        self.quoted
    }

    /// Returns whether an unfinished sentence is on the line.
    #[must_use]
    pub fn in_sentence(self) -> bool {
        self.filled && !self.ended
    }

    /// Returns whether the sentence continues in the text `behind` something on this line; `None` until more
    /// text decides.
    #[must_use]
    pub fn goes_on(self, behind: &str, end: bool) -> Option<bool> {
        let blank = behind.len() - behind.trim_start_matches([' ', '\t']).len();
        Some(match behind[blank..].chars().next() {
            _ if blank > BLANK => false,
            None if !end => return None,
            // Another item or other markup.
            None | Some('\n' | '\r' | '<' | '[' | '◁') => false,
            Some(',') => true,
            Some(c) => self.in_sentence() || blank > 0 && c.is_lowercase(),
        })
    }
}

/// Most white space within a sentence.
const BLANK: usize = 64;

/// Backtick runs of a paragraph.
#[derive(Clone, Debug, Default)]
struct Spans {
    /// Open runs: length, and number of places watched before each.
    open: Vec<(usize, usize)>,
    /// Length of the current run, and whether a backslash precedes it.
    run: usize,
    escaped: bool,
    /// Flags: the line has text; it opens or closes a fence.
    filled: bool,
    fence: bool,
    watched: Vec<bool>,
}

/// Most open runs tracked.
const RUNS: usize = 32;

impl Spans {
    fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let found = memchr::memchr2(b'`', b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found);
            if found > at {
                self.end_run();
                let part = &text[at..found];
                self.filled |= !part.trim_matches(|c: char| c.is_whitespace() || c == '>').is_empty();
                let slashes = part.len() - part.trim_end_matches('\\').len();
                self.escaped = (slashes % 2 == 1) != (slashes == part.len() && self.escaped);
            }
            match bytes.get(found) {
                Some(b'`') => self.run += 1,
                Some(_) => self.end_line(),
                None => {}
            }
            at = found + 1;
        }
    }

    fn end_line(&mut self) {
        self.end_run();
        if !self.filled || self.fence {
            self.open.clear();
        }
        (self.filled, self.fence, self.escaped) = (false, false, false);
    }

    fn end_run(&mut self) {
        let length = std::mem::take(&mut self.run);
        if length == 0 {
            return;
        }
        let escaped = std::mem::take(&mut self.escaped);
        if length >= 3 && !self.filled {
            self.fence = true;
        }
        self.filled = true;
        if self.fence {
            return;
        }
        if let Some(first) = self.open.iter().position(|(open, _)| *open == length) {
            let (_, watched) = self.open[first];
            self.watched[watched..].fill(true);
            self.open.truncate(first);
            return;
        }
        let length = length - usize::from(escaped);
        if length > 0 && self.open.len() < RUNS {
            self.open.push((length, self.watched.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        let mut line = Line::default();
        text.chars().for_each(|c| line.text(c.encode_utf8(&mut [0; 4])));
        let mut whole = Line::default();
        whole.text(text);
        assert_eq!(format!("{line:?}"), format!("{whole:?}"), "{text:?}");
        line
    }

    #[test]
    fn a_line_knows_its_sentences_and_quotations() {
        for (text, in_sentence, quoted) in [
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
            assert_eq!((line.in_sentence(), line.is_quoted()), (in_sentence, quoted), "{text:?}");
        }
    }

    #[test]
    fn what_comes_behind_decides() {
        let (open, over) = (line("Use "), line("Done. "));
        assert_eq!(open.goes_on("", false), None);
        assert_eq!(open.goes_on("  ", false), None);
        assert_eq!(open.goes_on("  ", true), Some(false));
        assert_eq!(open.goes_on(" to", false), Some(true));
        assert_eq!(open.goes_on(".", false), Some(true));
        assert_eq!(open.goes_on("\nto", false), Some(false));
        assert_eq!(open.goes_on(" <b", false), Some(false));
        assert_eq!(over.goes_on(" And", false), Some(false));
        assert_eq!(over.goes_on(" is how", false), Some(true));
        assert_eq!(over.goes_on(", then", false), Some(true));
    }

    #[test]
    fn places_are_text_from_one_on() {
        let mut prose = Prose::default();
        assert_eq!(prose.watched(), 0);
        prose.set_text(0);
        prose.watch();
        let from = prose.watched();
        prose.watch();
        prose.watch();
        prose.set_text(from);
        prose.watch();
        let text: Vec<bool> = (0..4).map(|place| prose.is_text(place)).collect();
        assert_eq!(text, [false, true, true, false]);
    }

    #[test]
    fn spans_go_on_over_lines_of_a_paragraph() {
        let places = |text: &str, cut: bool| {
            let mut prose = Prose::default();
            for (at, part) in text.split('@').enumerate() {
                if at > 0 {
                    prose.watch();
                }
                match cut {
                    true => part.chars().for_each(|c| prose.text(c.encode_utf8(&mut [0; 4]))),
                    false => prose.text(part),
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
