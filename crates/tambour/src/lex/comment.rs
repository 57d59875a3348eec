//! HTML comments: the length of a comment in a complete text, and a tracker for text that arrives in pieces.

/// Length of a comment after its `<!--`, from the start of `text` to the end of its end mark. By the rules of
/// HTML end marks are `-->` and `--!>`, and `>` and `->` at the very start of `text`. `None` if the
/// comment does not end in `text`.
#[must_use]
pub fn comment_len(text: &str) -> Option<usize> {
    let empty_comment_end = [">", "->"].into_iter().find(|end| text.starts_with(end));
    let find_end = || ["-->", "--!>"].into_iter().filter_map(|end| Some(text.find(end)? + end.len())).min();
    empty_comment_end.map(str::len).or_else(find_end)
}

/// Tracks an open comment to its end. The caller finds `<!--`; text outside of comments is not passed in.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommentTracker {
    state: CommentState,
}

/// Position within a comment, by the last characters read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CommentState {
    /// No comment is open.
    #[default]
    Closed,
    /// Directly after `<!--`, where `>` ends the comment at once.
    Opened,
    /// After `<!---`, where `>` ends the comment too.
    OpenedDash,
    /// In the text, after any other character.
    Text,
    /// In the text, after one dash.
    Dash,
    /// After two or more dashes.
    Dashes,
    /// After `--!`.
    Bang,
}

impl CommentTracker {
    /// Opens the comment, after `<!--`.
    pub fn begin(&mut self) {
        self.state = CommentState::Opened;
    }

    /// Returns whether a comment is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state != CommentState::Closed
    }

    /// Reads text of an open comment. Returns the offset after the comment's end if it ends in `text`.
    pub fn push_text(&mut self, text: &str) -> Option<usize> {
        use CommentState::*;
        for (at, byte) in text.bytes().enumerate() {
            self.state = match (self.state, byte) {
                // The byte before ended the comment.
                (Closed, _) => return Some(at),
                (Opened | OpenedDash | Dashes | Bang, b'>') => Closed,
                (Opened, b'-') => OpenedDash,
                (OpenedDash | Dash | Dashes, b'-') => Dashes,
                (Text | Bang, b'-') => Dash,
                (Dashes, b'!') => Bang,
                _ => Text,
            };
        }
        (self.state == Closed).then_some(text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_ends_where_html_ends_it() {
        //
        for (text, len) in [
            (">a", Some(1)),
            ("->a", Some(2)),
            (" a -->b", Some(6)),
            (" a --!>b", Some(7)),
            (" a ---->b", Some(8)),
            ("!>a", None),
            ("-!>a", None),
            (" a -!> ->", None),
            (" a --x>", None),
        ] {
            let mut comment = CommentTracker::default();
            comment.begin();
            assert_eq!((comment.push_text(text), comment_len(text)), (len, len), "{text:?}");
            let mut comment = CommentTracker::default();
            comment.begin();
            let end = text
                .char_indices()
                .find_map(|(at, c)| Some(at + comment.push_text(c.encode_utf8(&mut [0; 4]))?));
            assert_eq!((end, comment.is_open()), (len, len.is_none()), "{text:?}");
        }
    }
}
