//! Finds the ends of arguments between marks: marks of the call's format inside a value belong to the
//! value only if the value is closed after them.

use crate::lex::scan;

/// Marks of one notation for arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArgumentMarks {
    /// Mark before an argument, up to its name.
    pub(super) open: &'static str,
    /// Mark after the value.
    pub(super) close: &'static str,
    /// Texts of which one follows a closed argument, unless the arguments end there.
    pub(super) followers: &'static [&'static str],
    /// Other marks of the format, which end an argument that is not closed.
    pub(super) other_marks: &'static [&'static str],
}

/// `<parameter=key>value</parameter>`.
pub(super) const PARAMETER_MARKS: ArgumentMarks = ArgumentMarks {
    open: "<parameter=",
    close: "</parameter>",
    followers: &["<parameter=", "</function>"],
    other_marks: &["</function>", "<function=", "<tool_call>", "</tool_call>"],
};

/// Value part of `<arg_key>key</arg_key><arg_value>value</arg_value>`.
pub(super) const VALUE_MARKS: ArgumentMarks = ArgumentMarks {
    open: "<arg_value>",
    close: "</arg_value>",
    followers: &["<arg_key>"],
    other_marks: &["<arg_key>", "</arg_key>", "<tool_call>", "</tool_call>"],
};

/// Offsets of the marks in a text, each list in order.
pub(super) struct MarkIndex<'m> {
    marks: &'m ArgumentMarks,
    text_len: usize,
    open_offsets: Vec<usize>,
    close_offsets: Vec<usize>,
    /// Closing marks that the text only mentions ([`is_mention`]); they end no argument.
    mention_offsets: Vec<usize>,
    /// Closing marks before a follower or at the end of the text, so that they may end an argument.
    end_offsets: Vec<usize>,
    /// Marks that end an argument which is not closed.
    boundary_offsets: Vec<usize>,
}

/// Extent of an argument's value.
pub(super) struct ArgumentExtent {
    /// Offset after the value.
    pub(super) end: usize,
    /// Offset after the closing mark, or after the value if it has none.
    pub(super) next_offset: usize,
    /// Set if the argument has its closing mark.
    pub(super) is_closed: bool,
}

impl<'m> MarkIndex<'m> {
    /// Finds the marks of a text in linear time.
    pub(super) fn new(text: &str, marks: &'m ArgumentMarks) -> MarkIndex<'m> {
        let (open_offsets, close_offsets, mention_offsets) = (Vec::new(), Vec::new(), Vec::new());
        let (end_offsets, boundary_offsets) = (Vec::new(), Vec::new());
        let mut index = MarkIndex {
            marks,
            text_len: text.len(),
            open_offsets,
            close_offsets,
            mention_offsets,
            end_offsets,
            boundary_offsets,
        };
        let element_start = element_start(marks.open);
        let mut at = 0;
        while let Some(distance) = scan::find(b'<', &text.as_bytes()[at..]) {
            at += distance;
            let rest = &text[at..];
            if rest.starts_with(element_start) {
                index.open_offsets.push(at);
                index.boundary_offsets.push(at);
            } else if let Some(text_after) = rest.strip_prefix(marks.close) {
                index.close_offsets.push(at);
                index.boundary_offsets.push(at);
                // White space is read at most twice, here and in the search for the next mark: linear work.
                let text_after = text_after.trim_start();
                if text_after.is_empty() || marks.followers.iter().any(|mark| text_after.starts_with(mark)) {
                    index.end_offsets.push(at);
                } else if is_mention(&text[..at], &rest[marks.close.len()..]) {
                    index.mention_offsets.push(at);
                }
            } else if marks.other_marks.iter().any(|mark| rest.starts_with(mark)) {
                index.boundary_offsets.push(at);
            }
            at += 1;
        }
        index
    }

    /// Returns the argument whose value begins at `start`.
    pub(super) fn argument_at(&self, start: usize) -> ArgumentExtent {
        // Index of the first mark at or after `start` in a list of offsets.
        let first_index = |list: &[usize]| list.partition_point(|&at| at < start);
        if let Some(&end) = self.end_offsets.get(first_index(&self.end_offsets)) {
            let inner_range = |list: &[usize]| first_index(list)..list.partition_point(|&at| at < end);
            let (open_offsets, close_offsets) = (
                &self.open_offsets[inner_range(&self.open_offsets)],
                &self.close_offsets[inner_range(&self.close_offsets)],
            );
            // The marks inside belong to the value if each opening mark is closed inside it. Counts are equal
            // for only one start before an end, so that comparing the pairs stays linear.
            let is_paired = open_offsets.len() == close_offsets.len()
                && open_offsets.iter().zip(close_offsets).all(|(open, close)| open < close);
            // Closing marks alone belong to the value if each of them is only mentioned.
            let is_mentioned = open_offsets.is_empty()
                && self.mention_offsets[inner_range(&self.mention_offsets)].len() == close_offsets.len();
            if is_paired || is_mentioned {
                return ArgumentExtent { end, next_offset: end + self.marks.close.len(), is_closed: true };
            }
        }
        let end =
            self.boundary_offsets.get(first_index(&self.boundary_offsets)).copied().unwrap_or(self.text_len);
        ArgumentExtent { end, next_offset: end, is_closed: false }
    }
}

/// Returns the part of an opening mark up to the name of its element, so that a mark with damaged attributes
/// opens an argument too.
fn element_start(open: &str) -> &str {
    open.find(' ').map_or(open, |end| &open[..=end])
}

/// Returns whether a mark between these texts is in the middle of a line, with blanks and words around it, so
/// that the text mentions it. Alone on a line or directly after a value the mark ends an argument, even if
/// the next mark is missing.
fn is_mention(before: &str, after: &str) -> bool {
    let is_word_char = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace() && c != '<');
    let word_before = before.trim_end_matches(' ');
    let word_after = after.trim_start_matches(' ');
    word_before.len() < before.len()
        && word_after.len() < after.len()
        && is_word_char(word_before.chars().next_back().filter(|c| *c != '>'))
        && is_word_char(word_after.chars().next())
}
