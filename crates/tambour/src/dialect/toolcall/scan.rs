//! Scanner for the end of a call: follows the arguments while they arrive; each byte is read once. The end
//! mark of a call is the last of the closing marks of its form.
//!
//! A value is the text between the two tags of one argument, in notations that write arguments in tags. A
//! mark inside a string or a value does not end a call at once. If nothing else ends the call, for example
//! because a quote is missing, it ended at the first of these marks. From then on, scanners are hasty: marks
//! inside strings and values end calls at once, so that nothing is read more than twice.

use std::ops::Range;

use super::formats::{CallBody, CallForm};
use crate::lex::scan;
use crate::lex::space::is_space;

/// Maximum length in bytes of the white space and superfluous brackets before the end mark of a call.
const MAX_GAP: usize = 64;

/// Result of following a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanResult {
    /// More text is needed.
    NeedMore,
    /// The call ends before the byte at this offset, in this way.
    End(usize, CallEnding),
}

/// Way in which a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEnding {
    /// With complete arguments, and with its end mark if that is mandatory.
    Complete,
    /// With complete arguments, without its end mark.
    Unclosed,
    /// With incomplete arguments.
    Incomplete,
}

/// Follows one call.
#[derive(Clone, Debug)]
pub(super) struct CallScanner {
    form: &'static CallForm,
    /// Offset up to which the text has been read.
    offset: usize,
    /// Number of open brackets.
    depth: usize,
    /// Quote character of the open string, and the number of such characters that end it, 1 or 3.
    quote: Option<(u8, usize)>,
    /// Set while a value is open.
    is_in_value: bool,
    /// Number of functions that have begun in the open value.
    nested_functions: usize,
    /// Start of the current arguments.
    arguments_start: usize,
    /// Ranges of the complete arguments; calls joined by semicolons have one range each.
    pub(super) arguments: Vec<Range<usize>>,
    /// Set once the arguments are complete, so that the end mark comes next.
    has_arguments: bool,
    /// Mark that ended the call early, or would end it if nothing else did: the offset of the mark, and the
    /// offset after it. An opening mark belongs to the next call, so both offsets are its start.
    early_end: Option<(usize, usize)>,
    /// Set if a mark inside a string or value ends the call at once.
    pub(super) is_hasty: bool,
}

/// Meaning of a possible mark inside a value.
enum ValueMark {
    NotMark,
    /// More text is needed.
    NeedMore,
    /// A mark of this many bytes that belongs to the value.
    Content(usize),
    /// The call has ended at this offset.
    End(usize),
}

/// Result of comparing a text with a word.
enum WordMatch {
    Mismatch,
    Partial,
    /// A match of this many bytes.
    Full(usize),
}

/// Compares the text at offset `at` with `word`.
fn match_word(text: &str, at: usize, word: &str) -> WordMatch {
    let rest = &text.as_bytes()[at..];
    if rest.starts_with(word.as_bytes()) {
        WordMatch::Full(word.len())
    } else if word.as_bytes().starts_with(rest) {
        WordMatch::Partial
    } else {
        WordMatch::Mismatch
    }
}

impl CallScanner {
    /// Creates a scanner of a call whose arguments begin at offset `body_start`.
    pub(super) fn new(form: &'static CallForm, body_start: usize, is_hasty: bool) -> CallScanner {
        CallScanner {
            form,
            offset: body_start,
            depth: 0,
            quote: None,
            is_in_value: false,
            nested_functions: 0,
            arguments_start: body_start,
            arguments: Vec::new(),
            has_arguments: false,
            early_end: None,
            is_hasty,
        }
    }

    /// Continues in `raw`, the text of the call from its opening mark on, to which more has been added.
    #[inline]
    pub(super) fn scan(&mut self, raw: &str) -> ScanResult {
        loop {
            if self.has_arguments {
                return self.scan_end(raw);
            }
            // `None` means that the arguments are complete.
            let result = match self.form.body {
                CallBody::CallObjects | CallBody::ArgsObject => self.scan_json(raw),
                CallBody::Python => self.scan_python(raw),
                CallBody::Parameters => self.scan_values(raw, "<parameter=", "</parameter>"),
                CallBody::Pairs => self.scan_values(raw, "<arg_value>", "</arg_value>"),
                CallBody::Elements(marks) => {
                    self.scan_values(raw, marks.parameter_marks.open, marks.parameter_marks.close)
                }
                CallBody::NoArguments | CallBody::Reasoning => {
                    Some(ScanResult::End(self.offset, CallEnding::Complete))
                }
            };
            match result {
                Some(result) => return result,
                None => self.has_arguments = true,
            }
        }
    }

    /// Ends the reply and returns the end of the call, if it has one.
    pub(super) fn finish(&self, raw: &str) -> Option<(usize, CallEnding)> {
        if self.has_arguments {
            let end = self.arguments.last().map_or(raw.len(), |range| range.end);
            return Some((
                end,
                if self.form.is_open_ended { CallEnding::Complete } else { CallEnding::Unclosed },
            ));
        }
        self.fallback_end()
    }

    /// Returns the end to assume if nothing else ends the call.
    pub(super) fn fallback_end(&self) -> Option<(usize, CallEnding)> {
        self.early_end.map(|(end, _)| (end, CallEnding::Incomplete))
    }

    /// Returns the offset after the mark, if a mark ended the call early at `end`; else `end`.
    pub(super) fn mark_end(&self, end: usize) -> usize {
        self.early_end.filter(|(at, _)| *at == end).map_or(end, |(_, mark_end)| mark_end)
    }

    /// Handles a possible mark at `at`: it ends the call, more text is needed, or (`None`) reading continues.
    /// `is_inside` is set if the mark is inside a string or value.
    fn scan_mark(&mut self, raw: &str, at: usize, is_inside: bool) -> Option<ScanResult> {
        let form = self.form;
        let close = form.close_marks.last().copied().unwrap_or_default();
        for (word, is_open_mark) in [(close, false), (form.open_mark, true)] {
            if word.is_empty() || raw.as_bytes()[at] != word.as_bytes()[0] {
                continue;
            }
            match match_word(raw, at, word) {
                WordMatch::Mismatch => {}
                WordMatch::Partial => {
                    self.offset = at;
                    return Some(ScanResult::NeedMore);
                }
                WordMatch::Full(len) => {
                    // An opening mark belongs to the next call.
                    let mark_end = if is_open_mark { at } else { at + len };
                    if let Some((early_end, early_mark_end)) = self.early_end
                        && form.body.has_values()
                        && is_open_mark
                        && early_mark_end > early_end
                    {
                        // The earlier mark was the end mark: it closed the call, and now the next one begins.
                        return Some(ScanResult::End(early_end, CallEnding::Incomplete));
                    }
                    if is_inside && !self.is_hasty {
                        self.early_end.get_or_insert((at, mark_end));
                        return None;
                    }
                    self.early_end = Some((at, mark_end));
                    return Some(ScanResult::End(at, CallEnding::Incomplete));
                }
            }
        }
        None
    }

    /// Follows JSON; `None` means that the arguments are complete.
    fn scan_json(&mut self, raw: &str) -> Option<ScanResult> {
        let bytes = raw.as_bytes();
        while self.offset < bytes.len() {
            if self.quote.is_some() {
                let Some(distance) = scan::find3(b'"', b'\\', b'<', &bytes[self.offset..]) else {
                    self.offset = bytes.len();
                    break;
                };
                self.offset += distance;
                match bytes[self.offset] {
                    b'"' => self.quote = None,
                    b'\\' if self.offset + 1 == bytes.len() => return Some(ScanResult::NeedMore),
                    b'\\' => {
                        // The escaped character may be longer than a byte.
                        self.offset = raw.ceil_char_boundary(self.offset + 2);
                        continue;
                    }
                    _ => {
                        let is_inside = true;
                        if let Some(result) = self.scan_mark(raw, self.offset, is_inside) {
                            return Some(result);
                        }
                    }
                }
                self.offset += 1;
                continue;
            }
            match bytes[self.offset] {
                b'"' => self.quote = Some((b'"', 1)),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return self.end_arguments(self.offset + 1);
                    }
                }
                _ => {}
            }
            let is_inside = false;
            if matches!(bytes[self.offset], b'<' | b'[')
                && let Some(result) = self.scan_mark(raw, self.offset, is_inside)
            {
                // A partial mark is read again, so its bracket must not count twice.
                self.depth -= usize::from(bytes[self.offset] == b'[' && result == ScanResult::NeedMore);
                return Some(result);
            }
            self.offset += 1;
        }
        Some(ScanResult::NeedMore)
    }

    /// Ends the arguments before `end`. Always returns `None`, which its callers return to say that the
    /// arguments are complete.
    fn end_arguments(&mut self, end: usize) -> Option<ScanResult> {
        self.arguments.push(self.arguments_start..end);
        self.offset = end;
        None
    }

    /// Follows Python syntax; `None` means that the call or list of calls is complete.
    fn scan_python(&mut self, raw: &str) -> Option<ScanResult> {
        let bytes = raw.as_bytes();
        while self.offset < bytes.len() {
            let byte = bytes[self.offset];
            if let Some((quote, count)) = self.quote {
                match byte {
                    b'\\' if self.offset + 1 == bytes.len() => return Some(ScanResult::NeedMore),
                    b'\\' => {
                        self.offset = raw.ceil_char_boundary(self.offset + 2);
                        continue;
                    }
                    _ if byte != quote => {}
                    _ if count == 1 => self.quote = None,
                    _ if bytes[self.offset..].starts_with(&[quote; 3]) => {
                        self.quote = None;
                        self.offset += 2;
                    }
                    _ if bytes.len() - self.offset < 3 => return Some(ScanResult::NeedMore),
                    _ => {}
                }
                self.offset += 1;
                continue;
            }
            match byte {
                b'"' | b'\'' => {
                    let run = bytes[self.offset..].iter().take(3).take_while(|next| **next == byte).count();
                    if self.offset + run == bytes.len() && run < 3 {
                        // Two quotes may become three.
                        return Some(ScanResult::NeedMore);
                    }
                    // Two quotes are an empty string.
                    if run != 2 {
                        self.quote = Some((byte, run));
                    }
                    self.offset += run;
                    continue;
                }
                b'(' | b'[' | b'{' => self.depth += 1,
                b')' | b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return self.end_arguments(self.offset + 1);
                    }
                }
                b'<' => {
                    let is_inside = false;
                    if let Some(result) = self.scan_mark(raw, self.offset, is_inside) {
                        return Some(result);
                    }
                }
                _ => {}
            }
            self.offset += 1;
        }
        Some(ScanResult::NeedMore)
    }

    /// Follows values between the marks `open` and `close`; the end mark of the call ends the arguments.
    /// Never returns `None`.
    fn scan_values(&mut self, raw: &str, open: &str, close: &str) -> Option<ScanResult> {
        let end_mark = self.form.close_marks.last().copied().unwrap_or_default();
        while let Some(distance) = scan::find(b'<', &raw.as_bytes()[self.offset..]) {
            self.offset += distance;
            // Inside a value, the end mark of the call is text.
            if !self.is_in_value || self.is_hasty {
                match match_word(raw, self.offset, end_mark) {
                    WordMatch::Full(len) => {
                        self.arguments.push(self.arguments_start..self.offset);
                        return Some(ScanResult::End(self.offset + len, CallEnding::Complete));
                    }
                    WordMatch::Partial => return Some(ScanResult::NeedMore),
                    WordMatch::Mismatch => {}
                }
            }
            match match_word(raw, self.offset, if self.is_in_value { close } else { open }) {
                WordMatch::Partial => return Some(ScanResult::NeedMore),
                WordMatch::Full(len) => {
                    self.is_in_value = !self.is_in_value;
                    self.offset += len;
                    continue;
                }
                WordMatch::Mismatch => {}
            }
            if self.is_in_value && self.form.body == CallBody::Parameters {
                match self.scan_function(raw, end_mark) {
                    ValueMark::NeedMore => return Some(ScanResult::NeedMore),
                    ValueMark::End(at) => return Some(ScanResult::End(at, CallEnding::Incomplete)),
                    ValueMark::Content(len) => {
                        self.offset += len;
                        continue;
                    }
                    ValueMark::NotMark => {}
                }
            }
            if let Some(result) = self.scan_mark(raw, self.offset, self.is_in_value) {
                return Some(result);
            }
            self.offset += 1;
        }
        self.offset = raw.len();
        Some(ScanResult::NeedMore)
    }

    /// Handles a possible function mark inside an open value; `end_mark` is the end mark of the call.
    fn scan_function(&mut self, raw: &str, end_mark: &str) -> ValueMark {
        let at = self.offset;
        match match_word(raw, at, "</function>") {
            WordMatch::Partial => return ValueMark::NeedMore,
            WordMatch::Full(len) if self.nested_functions > 0 => {
                self.nested_functions -= 1;
                return ValueMark::Content(len);
            }
            // The mark may be text of the value, so it ends the call only if nothing else does.
            WordMatch::Full(len) if end_mark == "</function>" => {
                self.early_end.get_or_insert((at, at + len));
                return ValueMark::Content(len);
            }
            WordMatch::Full(len) => {
                let space_len = raw[at + len..].len() - raw[at + len..].trim_start().len();
                match match_word(raw, at + len + space_len, end_mark) {
                    WordMatch::Partial if space_len <= MAX_GAP => return ValueMark::NeedMore,
                    // The last argument is not closed.
                    WordMatch::Full(_) if space_len <= MAX_GAP => self.is_in_value = false,
                    _ => {}
                }
                return ValueMark::Content(len);
            }
            WordMatch::Mismatch => {}
        }
        match match_word(raw, at, "<function=") {
            WordMatch::Partial => ValueMark::NeedMore,
            WordMatch::Full(len) => match self.early_end {
                Some((early_end, _)) => ValueMark::End(early_end),
                None => {
                    self.nested_functions += 1;
                    ValueMark::Content(len)
                }
            },
            WordMatch::Mismatch => ValueMark::NotMark,
        }
    }

    /// Reads the text after complete arguments: the end mark, or a semicolon before another call.
    fn scan_end(&mut self, raw: &str) -> ScanResult {
        let form = self.form;
        let end = self.offset;
        let unmarked_end = ScanResult::End(
            end,
            if form.is_open_ended { CallEnding::Complete } else { CallEnding::Unclosed },
        );
        let skip_space = |from: usize| from + raw[from..].find(|c| !is_space(c)).unwrap_or(raw.len() - from);
        let mut at = skip_space(end);
        if at - end > MAX_GAP {
            return unmarked_end;
        }
        if form.is_joinable {
            return match raw.as_bytes().get(at) {
                None => ScanResult::NeedMore,
                Some(b';') => {
                    let next_start = skip_space(at + 1);
                    match raw.as_bytes().get(next_start) {
                        None if next_start - end <= MAX_GAP => ScanResult::NeedMore,
                        Some(b'{') if next_start - end <= MAX_GAP => {
                            (self.offset, self.arguments_start) = (next_start, next_start);
                            self.has_arguments = false;
                            self.scan(raw)
                        }
                        _ => unmarked_end,
                    }
                }
                Some(_) => unmarked_end,
            };
        }
        if form.close_marks.is_empty() {
            return unmarked_end;
        }
        if !form.is_open_ended {
            // Superfluous brackets do not hide the end mark.
            at = end
                + raw[end..]
                    .find(|c| !is_space(c) && !matches!(c, '}' | ']' | ')'))
                    .unwrap_or(raw.len() - end);
            if at - end > MAX_GAP {
                return unmarked_end;
            }
        }
        for (index, mark) in form.close_marks.iter().enumerate() {
            let is_last = index + 1 == form.close_marks.len();
            match match_word(raw, at, mark) {
                WordMatch::Partial => return ScanResult::NeedMore,
                WordMatch::Full(len) if is_last => return ScanResult::End(at + len, CallEnding::Complete),
                WordMatch::Full(len) => at = skip_space(at + len),
                WordMatch::Mismatch if is_last => return unmarked_end,
                WordMatch::Mismatch => {}
            }
        }
        unmarked_end
    }
}
