//! Fences of code blocks: three or more backticks or tildes, closed by at least as many of the same. Where a
//! fence may begin and which info string it may have is for each reader to decide.
//!
//! [`FenceStripper`] removes a fence around a whole reply, while the reply streams. That fence opens with the first
//! non-blank line: its run, and at most one word behind it. It closes with the last such line: at least as many of
//! the same, alone. Fences between the two stay. Whether a reply that began with a fence ends with it is known only at
//! its end, so the fence lines are passed on as parts of their own; the caller judges a fence that does not close.

use super::scan;
use super::space::is_space;
use crate::span::{LazyPlace, Place, PlaceCounter};

/// Least length of a fence.
const MIN_LEN: usize = 3;

/// Run of characters that makes a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Character of the run.
    pub mark: u8,
    /// Number of characters.
    pub len: usize,
}

impl Fence {
    /// Fence made of `len` characters `mark`, if these are enough.
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

    /// Returns whether a line, ignoring blanks around it, closes this fence.
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
    language.len() < 8 && language.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("json"))
}

/// Part of a reply with or without a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FencedPart<'a> {
    /// Text of the reply; adjacent runs belong together.
    Text(&'a str),
    /// Opening line of the fence, with its line end and the white space before it.
    Open(&'a str),
    /// Closing line, with the white space behind it.
    Close(&'a str),
}

/// Splits a reply into fence lines and text.
#[derive(Clone, Debug)]
pub struct FenceStripper {
    state: FenceState,
    /// Possible line of the fence, with white space around it.
    carry: String,
    place: PlaceCounter,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
enum FenceState {
    /// In leading white space.
    Start,
    /// In the fence characters of the first line.
    FenceMarks(FenceRun),
    /// In the info string: whether a word has begun, and whether white space follows it.
    Info(FenceRun, bool, bool),
    /// Inside the fence.
    Inside(FenceRun, FenceLinePosition),
    /// No fence.
    NoFence,
}

/// Fence character, and number of repetitions.
#[derive(Clone, Copy, Debug)]
struct FenceRun {
    sign: char,
    count: usize,
}

/// Position on a line of the fenced text.
#[derive(Clone, Copy, Debug)]
enum FenceLinePosition {
    /// After blanks at most.
    Start,
    /// After this many fence characters.
    Marks(usize),
    /// In white space behind a closing line; holds the offset where its last line begins.
    AfterClosing(Option<usize>),
    Middle,
}

impl FenceStripper {
    /// Creates a reader at the start of a reply. At most `limit` bytes are held back: a longer line is no
    /// fence line.
    #[must_use]
    pub fn new(limit: usize) -> FenceStripper {
        let place = PlaceCounter::new(Place::START);
        FenceStripper { state: FenceState::Start, carry: String::new(), place, limit }
    }

    /// Reads `text` and passes each part to `out` with the place it starts at.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>)) {
        let mut rest = text;
        while !rest.is_empty() {
            let len = match self.state {
                FenceState::NoFence => rest.len(),
                FenceState::Inside(_, FenceLinePosition::Middle) => {
                    scan::find(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1)
                }
                _ => {
                    rest = self.hold_char(rest, out);
                    continue;
                }
            };
            self.emit(FencedPart::Text(&rest[..len]), out);
            if let FenceState::Inside(_, line) = &mut self.state
                && rest[..len].ends_with('\n')
            {
                *line = FenceLinePosition::Start;
            }
            rest = &rest[len..];
        }
    }

    /// Ends the input.
    pub fn finish(&mut self, out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>)) {
        let carry = std::mem::take(&mut self.carry);
        let is_closing = match self.state {
            FenceState::Inside(mark, FenceLinePosition::Marks(count)) => count >= mark.count,
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

    /// Reads one character of a possible fence line; returns the text behind it. A character that does not
    /// fit is not consumed.
    fn hold_char<'a>(
        &mut self,
        text: &'a str,
        out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>),
    ) -> &'a str {
        let c = text.chars().next().unwrap_or_default();
        let next = if self.carry.len() + c.len_utf8() > self.limit { None } else { self.next_state(c) };
        let Some(state) = next else {
            self.release(out);
            return text;
        };
        self.carry.push(c);
        let is_opening = matches!(
            (self.state, state),
            (FenceState::FenceMarks(_) | FenceState::Info(..), FenceState::Inside(..))
        );
        let is_blank_line = matches!(state, FenceState::Inside(_, FenceLinePosition::Start)) && c == '\n';
        self.state = state;
        if is_opening || is_blank_line {
            let carry = std::mem::take(&mut self.carry);
            self.emit(if is_opening { FencedPart::Open(&carry) } else { FencedPart::Text(&carry) }, out);
        }
        &text[c.len_utf8()..]
    }

    /// State after `c`, if it fits.
    fn next_state(&self, c: char) -> Option<FenceState> {
        Some(match self.state {
            FenceState::Start if is_space(c) => FenceState::Start,
            FenceState::Start if u8::try_from(c).is_ok_and(is_mark) => {
                FenceState::FenceMarks(FenceRun { sign: c, count: 1 })
            }
            FenceState::FenceMarks(mark) if c == mark.sign => {
                FenceState::FenceMarks(FenceRun { count: mark.count + 1, ..mark })
            }
            FenceState::FenceMarks(mark) | FenceState::Info(mark, ..) if mark.count < 3 || c == mark.sign => {
                return None;
            }
            FenceState::FenceMarks(mark) | FenceState::Info(mark, ..) if c == '\n' => {
                FenceState::Inside(mark, FenceLinePosition::Start)
            }
            FenceState::FenceMarks(mark) => FenceState::Info(mark, !is_space(c), false),
            FenceState::Info(mark, word, _) if is_space(c) => FenceState::Info(mark, word, word),
            FenceState::Info(mark, _, false) => FenceState::Info(mark, true, false),
            FenceState::Inside(mark, line) => FenceState::Inside(mark, self.next_position(mark, line, c)?),
            FenceState::Start | FenceState::Info(..) | FenceState::NoFence => return None,
        })
    }

    fn next_position(&self, mark: FenceRun, line: FenceLinePosition, c: char) -> Option<FenceLinePosition> {
        Some(match line {
            FenceLinePosition::Start if is_space(c) => FenceLinePosition::Start,
            FenceLinePosition::Start if c == mark.sign => FenceLinePosition::Marks(1),
            FenceLinePosition::Marks(count) if c == mark.sign => FenceLinePosition::Marks(count + 1),
            FenceLinePosition::Marks(count) if count >= mark.count && c == '\n' => {
                FenceLinePosition::AfterClosing(Some(self.carry.len() + 1))
            }
            FenceLinePosition::Marks(count) if count >= mark.count && is_space(c) => {
                FenceLinePosition::AfterClosing(None)
            }
            FenceLinePosition::AfterClosing(_) if c == '\n' => {
                FenceLinePosition::AfterClosing(Some(self.carry.len() + 1))
            }
            FenceLinePosition::AfterClosing(last) if is_space(c) => FenceLinePosition::AfterClosing(last),
            _ => return None,
        })
    }

    /// Emits the held text, which is no fence line; its last line may still become one.
    fn release(&mut self, out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>)) {
        let mut carry = std::mem::take(&mut self.carry);
        let mut last = carry.len();
        self.state = match self.state {
            FenceState::Inside(mark, FenceLinePosition::AfterClosing(Some(line)))
                if carry.len() < self.limit =>
            {
                last = line;
                FenceState::Inside(mark, FenceLinePosition::Start)
            }
            FenceState::Inside(mark, _) => FenceState::Inside(mark, FenceLinePosition::Middle),
            _ => FenceState::NoFence,
        };
        if last > 0 {
            self.emit(FencedPart::Text(&carry[..last]), out);
        }
        carry.drain(..last);
        self.carry = carry;
    }

    fn emit(&mut self, part: FencedPart<'_>, out: &mut impl FnMut(FencedPart<'_>, LazyPlace<'_>)) {
        let (FencedPart::Text(raw) | FencedPart::Open(raw) | FencedPart::Close(raw)) = part;
        out(part, LazyPlace::from_counter(&mut self.place));
        self.place.add(raw);
    }
}
