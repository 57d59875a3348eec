//! Fences of code blocks: three or more backticks or tildes, closed by at least as many of the same. Each
//! reader decides where a fence may begin and which info string (the text after its characters) it may have.
//!
//! [`FenceStripper`] finds a fence around a whole reply, while the reply streams. That fence opens with the
//! first non-blank line: a run of fence characters, and at most one word after it. It closes with the last
//! non-blank line of the reply, if that has at least as many of the same characters and nothing else. Fences
//! between the two are text. Only the end of the reply decides whether the fence closes, so the fence lines
//! are passed on as separate parts; the caller judges a fence that does not close.

use super::scan;
use super::space::is_space;
use crate::span::{LazyPlace, Place, PlaceCounter};

/// Minimum number of characters of a fence.
const MIN_LEN: usize = 3;

/// Run of characters that makes a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Character of the run, a backtick or tilde.
    pub mark: u8,
    /// Number of characters.
    pub len: usize,
}

impl Fence {
    /// Fence made of `len` characters `mark`. `None` if they are too few or `mark` makes no fence.
    #[must_use]
    #[inline]
    pub fn new(mark: u8, len: usize) -> Option<Fence> {
        (is_mark(mark) && len >= MIN_LEN).then_some(Fence { mark, len })
    }

    /// Parses the fence at the start of a line; returns the rest of the line too.
    #[must_use]
    pub fn parse(line: &str) -> Option<(Fence, &str)> {
        let mark = *line.as_bytes().first()?;
        let len = line.bytes().take_while(|&byte| byte == mark).count();
        Some((Fence::new(mark, len)?, &line[len..]))
    }

    /// Returns whether `run` closes this fence.
    #[must_use]
    #[inline]
    pub fn is_closed_by(self, run: Fence) -> bool {
        run.mark == self.mark && run.len >= self.len
    }

    /// Returns whether a line, without the white space around it, closes this fence.
    #[must_use]
    pub fn is_closed_by_line(self, line: &str) -> bool {
        Fence::parse(line.trim()).is_some_and(|(run, rest)| rest.is_empty() && self.is_closed_by(run))
    }
}

/// Returns whether fences can be made of this byte.
#[must_use]
#[inline]
pub fn is_mark(byte: u8) -> bool {
    matches!(byte, b'`' | b'~')
}

/// Returns whether a fence language is JSON or a variant of it, such as `jsonl` and `JSON5`.
#[must_use]
pub fn is_json(language: &str) -> bool {
    // Longer words that begin with `json` are taken for other languages.
    language.len() < 8 && language.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("json"))
}

/// Part of a reply: a fence line around it, or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FencedPart<'a> {
    /// Text of the reply; adjacent runs belong together.
    Text(&'a str),
    /// Opening line of the fence, with its line end and the white space before it.
    Open(&'a str),
    /// Closing line of the fence, with the white space around it.
    Close(&'a str),
}

/// Splits a reply into the lines of the fence around it and text.
#[derive(Clone, Debug)]
pub struct FenceStripper {
    state: FenceState,
    /// Possible line of the fence, with white space around it.
    carry: String,
    /// Place after the last part.
    place: PlaceCounter,
    /// Maximum length of `carry` in bytes.
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
enum FenceState {
    /// In leading white space.
    Start,
    /// In the fence characters of the first line.
    FenceMarks(FenceRun),
    /// On the opening line after its fence characters: its single word may have begun, and may have ended.
    Info { run: FenceRun, has_word: bool, is_word_over: bool },
    /// Inside the fence that this run opened.
    Inside(FenceRun, FenceLinePosition),
    /// The reply has no fence around it, or has ended.
    NoFence,
}

/// Fence character, and number of repetitions.
#[derive(Clone, Copy, Debug)]
struct FenceRun {
    mark: char,
    count: usize,
}

/// Position on a line of the fenced text.
#[derive(Clone, Copy, Debug)]
enum FenceLinePosition {
    /// In white space at the start of a line.
    Start,
    /// After this many fence characters at the start of the line.
    Marks(usize),
    /// In white space after the characters of a closing line. Holds the offset in the carry where the last
    /// line of the white space begins; `None` while that is the closing line itself.
    AfterClosing(Option<usize>),
    /// In a line that cannot close the fence.
    Middle,
}

impl FenceStripper {
    /// Creates a reader at the start of a reply. At most `limit` bytes are held back: a longer line is not a
    /// fence line.
    #[must_use]
    pub fn new(limit: usize) -> FenceStripper {
        let place = PlaceCounter::new(Place::START);
        FenceStripper { state: FenceState::Start, carry: String::new(), place, limit }
    }

    /// Reads `text` and passes each part to `out` with the place it starts at.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>)) {
        let mut unread = text;
        while !unread.is_empty() {
            let len = match self.state {
                FenceState::NoFence => unread.len(),
                FenceState::Inside(_, FenceLinePosition::Middle) => {
                    scan::find(b'\n', unread.as_bytes()).map_or(unread.len(), |at| at + 1)
                }
                _ => {
                    unread = self.hold_char(unread, out);
                    continue;
                }
            };
            self.emit(FencedPart::Text(&unread[..len]), out);
            if let FenceState::Inside(_, position) = &mut self.state
                && unread[..len].ends_with('\n')
            {
                *position = FenceLinePosition::Start;
            }
            unread = &unread[len..];
        }
    }

    /// Ends the input.
    pub fn finish(&mut self, out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>)) {
        let carry = std::mem::take(&mut self.carry);
        let is_closing = match self.state {
            FenceState::Inside(opening, FenceLinePosition::Marks(count)) => count >= opening.count,
            FenceState::Inside(_, FenceLinePosition::AfterClosing(_)) => true,
            _ => false,
        };
        if !carry.is_empty() {
            self.emit(if is_closing { FencedPart::Close(&carry) } else { FencedPart::Text(&carry) }, out);
        }
        self.state = FenceState::NoFence;
    }

    /// Number of bytes held back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.carry.len()
    }

    /// Reads one character of a possible fence line; returns the text after it. A character that does not
    /// fit is not consumed.
    fn hold_char<'a>(
        &mut self,
        text: &'a str,
        out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>),
    ) -> &'a str {
        let c = text.chars().next().unwrap_or_default();
        let fits_limit = self.carry.len() + c.len_utf8() <= self.limit;
        let Some(state) = fits_limit.then(|| self.next_state(c)).flatten() else {
            self.release(out);
            return text;
        };
        self.carry.push(c);
        let is_opening = matches!(
            (self.state, state),
            (FenceState::FenceMarks(_) | FenceState::Info { .. }, FenceState::Inside(..))
        );
        let is_blank_line = matches!(state, FenceState::Inside(_, FenceLinePosition::Start)) && c == '\n';
        self.state = state;
        if is_opening || is_blank_line {
            let carry = std::mem::take(&mut self.carry);
            self.emit(if is_opening { FencedPart::Open(&carry) } else { FencedPart::Text(&carry) }, out);
        }
        &text[c.len_utf8()..]
    }

    /// State after `c`; `None` if `c` does not fit a fence line.
    fn next_state(&self, c: char) -> Option<FenceState> {
        Some(match self.state {
            FenceState::Start if is_space(c) => FenceState::Start,
            FenceState::Start if u8::try_from(c).is_ok_and(is_mark) => {
                FenceState::FenceMarks(FenceRun { mark: c, count: 1 })
            }
            FenceState::FenceMarks(run) if c == run.mark => {
                FenceState::FenceMarks(FenceRun { count: run.count + 1, ..run })
            }
            // Too few fence characters, or a fence character in the info string.
            FenceState::FenceMarks(run) | FenceState::Info { run, .. }
                if run.count < MIN_LEN || c == run.mark =>
            {
                return None;
            }
            FenceState::FenceMarks(run) | FenceState::Info { run, .. } if c == '\n' => {
                FenceState::Inside(run, FenceLinePosition::Start)
            }
            FenceState::FenceMarks(run) => {
                FenceState::Info { run, has_word: !is_space(c), is_word_over: false }
            }
            FenceState::Info { run, has_word, .. } if is_space(c) => {
                FenceState::Info { run, has_word, is_word_over: has_word }
            }
            FenceState::Info { run, is_word_over: false, .. } => {
                FenceState::Info { run, has_word: true, is_word_over: false }
            }
            FenceState::Inside(opening, position) => {
                FenceState::Inside(opening, self.next_position(opening, position, c)?)
            }
            FenceState::Start | FenceState::Info { .. } | FenceState::NoFence => return None,
        })
    }

    /// Position after `c` inside the fence; `None` if the line cannot close it.
    fn next_position(
        &self,
        opening: FenceRun,
        position: FenceLinePosition,
        c: char,
    ) -> Option<FenceLinePosition> {
        Some(match position {
            FenceLinePosition::Start if is_space(c) => FenceLinePosition::Start,
            FenceLinePosition::Start if c == opening.mark => FenceLinePosition::Marks(1),
            FenceLinePosition::Marks(count) if c == opening.mark => FenceLinePosition::Marks(count + 1),
            FenceLinePosition::Marks(count) if count >= opening.count && c == '\n' => {
                FenceLinePosition::AfterClosing(Some(self.carry.len() + 1))
            }
            FenceLinePosition::Marks(count) if count >= opening.count && is_space(c) => {
                FenceLinePosition::AfterClosing(None)
            }
            FenceLinePosition::AfterClosing(_) if c == '\n' => {
                FenceLinePosition::AfterClosing(Some(self.carry.len() + 1))
            }
            FenceLinePosition::AfterClosing(line_start) if is_space(c) => {
                FenceLinePosition::AfterClosing(line_start)
            }
            _ => return None,
        })
    }

    /// Emits the held text, which does not contain the closing line of the fence. Its last line stays held if
    /// it may still become the closing line and the limit is not reached.
    fn release(&mut self, out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>)) {
        let mut carry = std::mem::take(&mut self.carry);
        let mut text_len = carry.len();
        self.state = match self.state {
            FenceState::Inside(opening, FenceLinePosition::AfterClosing(Some(line_start)))
                if carry.len() < self.limit =>
            {
                text_len = line_start;
                FenceState::Inside(opening, FenceLinePosition::Start)
            }
            FenceState::Inside(opening, _) => FenceState::Inside(opening, FenceLinePosition::Middle),
            _ => FenceState::NoFence,
        };
        if text_len > 0 {
            self.emit(FencedPart::Text(&carry[..text_len]), out);
        }
        carry.drain(..text_len);
        self.carry = carry;
    }

    fn emit(&mut self, part: FencedPart<'_>, out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>)) {
        let (FencedPart::Text(raw) | FencedPart::Open(raw) | FencedPart::Close(raw)) = part;
        out(part, LazyPlace::from_counter(&mut self.place));
        self.place.add(raw);
    }
}
