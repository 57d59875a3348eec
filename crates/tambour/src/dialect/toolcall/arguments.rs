//! Where arguments between marks end: a value holds marks of its own format only if it was closed behind them.

use crate::lex::scan;

/// The marks of one way to write arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// What may follow an argument that is closed, besides the next one; nothing may too.
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

/// The value of `<arg_key>key</arg_key><arg_value>value</arg_value>`.
pub(super) const VALUE: Marks = Marks {
    open: "<arg_value>",
    close: "</arg_value>",
    follow: &["<arg_key>"],
    others: &["<arg_key>", "</arg_key>", "<tool_call>", "</tool_call>"],
};

/// Where the marks stand in a text, each in order.
pub(super) struct Arguments<'m> {
    marks: &'m Marks,
    length: usize,
    opens: Vec<usize>,
    closes: Vec<usize>,
    /// Those behind which text goes on: they end no argument.
    inner: Vec<usize>,
    /// Those that may end an argument.
    ends: Vec<usize>,
    /// Marks that end an argument which is not closed.
    all: Vec<usize>,
}

/// An argument.
pub(super) struct Argument {
    /// Offset after its value.
    pub(super) end: usize,
    /// Offset of what follows it.
    pub(super) next: usize,
    pub(super) closed: bool,
}

impl<'m> Arguments<'m> {
    /// Finds the marks of a text, looking at each byte once.
    pub(super) fn new(text: &str, marks: &'m Marks) -> Arguments<'m> {
        let (opens, closes, inner) = (Vec::new(), Vec::new(), Vec::new());
        let (ends, all) = (Vec::new(), Vec::new());
        let mut found = Arguments { marks, length: text.len(), opens, closes, inner, ends, all };
        let mut at = 0;
        while let Some(next) = scan::find(b'<', &text.as_bytes()[at..]) {
            at += next;
            let rest = &text[at..];
            if rest.starts_with(marks.open) {
                found.opens.push(at);
                found.all.push(at);
            } else if let Some(behind) = rest.strip_prefix(marks.close) {
                found.closes.push(at);
                found.all.push(at);
                // White space is read again at most by the next mark, which it ends at.
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

    /// The argument whose value begins at `start`.
    pub(super) fn from(&self, start: usize) -> Argument {
        let first = |list: &[usize]| list.partition_point(|&at| at < start);
        if let Some(&end) = self.ends.get(first(&self.ends)) {
            let within = |list: &[usize]| first(list)..list.partition_point(|&at| at < end);
            let (opens, closes) = (&self.opens[within(&self.opens)], &self.closes[within(&self.closes)]);
            // Those in it are its own if each that opens is closed in it. Only from one place before an end are they as many.
            let own =
                opens.len() == closes.len() && opens.iter().zip(closes).all(|(open, close)| open < close);
            // Closing ones alone are, if text goes on behind each.
            let spoken = opens.is_empty() && self.inner[within(&self.inner)].len() == closes.len();
            if own || spoken {
                return Argument { end, next: end + self.marks.close.len(), closed: true };
            }
        }
        let end = self.all.get(first(&self.all)).copied().unwrap_or(self.length);
        Argument { end, next: end, closed: false }
    }
}

/// Whether a mark between these texts stands in the middle of a line, with blanks around it, so that it is spoken of. On a line of
/// its own, or right behind a value, it ends one, and what follows may have lost its own mark.
fn is_spoken(before: &str, behind: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace() && c != '<');
    let line = before.trim_end_matches(' ');
    let rest = behind.trim_start_matches(' ');
    line.len() < before.len()
        && rest.len() < behind.len()
        && word(line.chars().next_back().filter(|c| *c != '>'))
        && word(rest.chars().next())
}
