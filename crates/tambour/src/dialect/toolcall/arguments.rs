//! End of arguments between marks: a value contains marks of its own format only if it was closed
//! after them.

use crate::lex::scan;

/// Marks of one notation for arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Texts that may follow a closed argument, besides the next argument or nothing.
    pub(super) follow: &'static [&'static str],
    /// Other marks of the format.
    pub(super) others: &'static [&'static str],
}

/// `<parameter=key>value</parameter>`.
pub(super) const PARAMETER: Marks = Marks {
    open: "<parameter=",
    close: "</parameter>",
    follow: &["<parameter=", "</function>"],
    others: &["</function>", "<function=", "<tool_call>", "</tool_call>"],
};

/// Value part of `<arg_key>key</arg_key><arg_value>value</arg_value>`.
pub(super) const VALUE: Marks = Marks {
    open: "<arg_value>",
    close: "</arg_value>",
    follow: &["<arg_key>"],
    others: &["<arg_key>", "</arg_key>", "<tool_call>", "</tool_call>"],
};

/// Offsets of the marks in a text, each list in order.
pub(super) struct Arguments<'m> {
    marks: &'m Marks,
    length: usize,
    opens: Vec<usize>,
    closes: Vec<usize>,
    /// Closing marks that text follows; they end no argument.
    inner: Vec<usize>,
    /// Closing marks that may end an argument.
    ends: Vec<usize>,
    /// Marks that end an argument which is not closed.
    all: Vec<usize>,
}

/// Extent of an argument's value.
pub(super) struct Argument {
    /// Offset after its value.
    pub(super) end: usize,
    /// Offset of the text after it.
    pub(super) next: usize,
    pub(super) closed: bool,
}

impl<'m> Arguments<'m> {
    /// Finds the marks of a text; each byte is read once.
    pub(super) fn new(text: &str, marks: &'m Marks) -> Arguments<'m> {
        let (opens, closes, inner) = (Vec::new(), Vec::new(), Vec::new());
        let (ends, all) = (Vec::new(), Vec::new());
        let mut found = Arguments { marks, length: text.len(), opens, closes, inner, ends, all };
        let element = element(marks.open);
        let mut at = 0;
        while let Some(next) = scan::find(b'<', &text.as_bytes()[at..]) {
            at += next;
            let rest = &text[at..];
            if rest.starts_with(element) {
                found.opens.push(at);
                found.all.push(at);
            } else if let Some(behind) = rest.strip_prefix(marks.close) {
                found.closes.push(at);
                found.all.push(at);
                // White space is read again only by the next mark, which ends it, so this stays linear.
                let behind = behind.trim_start();
                if behind.is_empty() || marks.follow.iter().any(|mark| behind.starts_with(mark)) {
                    found.ends.push(at);
                } else if is_spoken(&text[..at], &rest[marks.close.len()..]) {
                    found.inner.push(at);
                }
            } else if marks.others.iter().any(|mark| rest.starts_with(mark)) {
                found.all.push(at);
            }
            at += 1;
        }
        found
    }

    /// Returns the argument whose value begins at `start`.
    pub(super) fn from(&self, start: usize) -> Argument {
        let first = |list: &[usize]| list.partition_point(|&at| at < start);
        if let Some(&end) = self.ends.get(first(&self.ends)) {
            let within = |list: &[usize]| first(list)..list.partition_point(|&at| at < end);
            let (opens, closes) = (&self.opens[within(&self.opens)], &self.closes[within(&self.closes)]);
            // The marks inside belong to the value if each one that opens is closed inside it. Only one start
            // before an end gives equal counts.
            let own =
                opens.len() == closes.len() && opens.iter().zip(closes).all(|(open, close)| open < close);
            // Closing marks alone belong to the value if text follows each of them.
            let spoken = opens.is_empty() && self.inner[within(&self.inner)].len() == closes.len();
            if own || spoken {
                return Argument { end, next: end + self.marks.close.len(), closed: true };
            }
        }
        let end = self.all.get(first(&self.all)).copied().unwrap_or(self.length);
        Argument { end, next: end, closed: false }
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
fn is_spoken(before: &str, behind: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace() && c != '<');
    let line = before.trim_end_matches(' ');
    let rest = behind.trim_start_matches(' ');
    line.len() < before.len()
        && rest.len() < behind.len()
        && word(line.chars().next_back().filter(|c| *c != '>'))
        && word(rest.chars().next())
}
