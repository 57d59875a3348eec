//! End of arguments between marks: a value contains marks of its own format only if it was closed
//! after them.

use crate::lex::scan;

/// Marks of one notation for arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArgumentMarks {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Texts that may follow a closed argument, besides the next argument or nothing.
    pub(super) followers: &'static [&'static str],
    /// Other marks of the format.
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
    /// Closing marks that text follows; they end no argument.
    mention_offsets: Vec<usize>,
    /// Closing marks that may end an argument.
    end_offsets: Vec<usize>,
    /// Marks that end an argument which is not closed.
    boundary_offsets: Vec<usize>,
}

/// Extent of an argument's value.
pub(super) struct ArgumentExtent {
    /// Offset after its value.
    pub(super) end: usize,
    /// Offset of the text after it.
    pub(super) next_offset: usize,
    pub(super) is_closed: bool,
}

impl<'m> MarkIndex<'m> {
    /// Finds the marks of a text; each byte is read once.
    pub(super) fn new(text: &str, marks: &'m ArgumentMarks) -> MarkIndex<'m> {
        let (open_offsets, close_offsets, mention_offsets) = (Vec::new(), Vec::new(), Vec::new());
        let (end_offsets, boundary_offsets) = (Vec::new(), Vec::new());
        let mut found = MarkIndex {
            marks,
            text_len: text.len(),
            open_offsets,
            close_offsets,
            mention_offsets,
            end_offsets,
            boundary_offsets,
        };
        let element = element(marks.open);
        let mut at = 0;
        while let Some(next) = scan::find(b'<', &text.as_bytes()[at..]) {
            at += next;
            let rest = &text[at..];
            if rest.starts_with(element) {
                found.open_offsets.push(at);
                found.boundary_offsets.push(at);
            } else if let Some(text_after) = rest.strip_prefix(marks.close) {
                found.close_offsets.push(at);
                found.boundary_offsets.push(at);
                // White space is read again only by the next mark, which ends it, so this stays linear.
                let text_after = text_after.trim_start();
                if text_after.is_empty() || marks.followers.iter().any(|mark| text_after.starts_with(mark)) {
                    found.end_offsets.push(at);
                } else if is_mention(&text[..at], &rest[marks.close.len()..]) {
                    found.mention_offsets.push(at);
                }
            } else if marks.other_marks.iter().any(|mark| rest.starts_with(mark)) {
                found.boundary_offsets.push(at);
            }
            at += 1;
        }
        found
    }

    /// Returns the argument whose value begins at `start`.
    pub(super) fn argument_at(&self, start: usize) -> ArgumentExtent {
        let first = |list: &[usize]| list.partition_point(|&at| at < start);
        if let Some(&end) = self.end_offsets.get(first(&self.end_offsets)) {
            let range_in = |list: &[usize]| first(list)..list.partition_point(|&at| at < end);
            let (open_offsets, close_offsets) = (
                &self.open_offsets[range_in(&self.open_offsets)],
                &self.close_offsets[range_in(&self.close_offsets)],
            );
            // The marks inside belong to the value if each one that opens is closed inside it. Only one start
            // before an end gives equal counts.
            let is_paired = open_offsets.len() == close_offsets.len()
                && open_offsets.iter().zip(close_offsets).all(|(open, close)| open < close);
            // Closing marks alone belong to the value if text follows each of them.
            let is_mentioned = open_offsets.is_empty()
                && self.mention_offsets[range_in(&self.mention_offsets)].len() == close_offsets.len();
            if is_paired || is_mentioned {
                return ArgumentExtent { end, next_offset: end + self.marks.close.len(), is_closed: true };
            }
        }
        let end = self.boundary_offsets.get(first(&self.boundary_offsets)).copied().unwrap_or(self.text_len);
        ArgumentExtent { end, next_offset: end, is_closed: false }
    }
}

/// Returns the part of an opening mark that names its element: one whose attributes are damaged opens an argument all
/// the same.
fn element(open: &str) -> &str {
    open.find(' ').map_or(open, |end| &open[..=end])
}

/// Returns true if a mark between these texts is in the middle of a line with blanks around it, so that the
/// text mentions it. On a line of its own or directly after a value it ends an argument, and the next mark
/// may be missing.
fn is_mention(before: &str, after: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace() && c != '<');
    let line = before.trim_end_matches(' ');
    let rest = after.trim_start_matches(' ');
    line.len() < before.len()
        && rest.len() < after.len()
        && word(line.chars().next_back().filter(|c| *c != '>'))
        && word(rest.chars().next())
}
