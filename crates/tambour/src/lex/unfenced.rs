//! Removal of a code fence around a whole reply, while the reply streams.
//!
//! The fence opens with the first non-blank line: three or more backticks or tildes, and at most one word
//! behind them. It closes with the last such line: at least as many of them, alone. Fences between the two
//! stay. Whether a reply that began with a fence ends with it is known only at its end, so the fence lines
//! are passed on as parts of their own; the caller judges a fence that does not close.

use super::fence::is_mark;
use super::scan;
use super::space::is_space;
use crate::span::{At, Counter, Place};

/// Part of a reply with or without a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text of the reply; adjacent runs belong together.
    Text(&'a str),
    /// Opening line of the fence, with its line end and the white space before it.
    Open(&'a str),
    /// Closing line, with the white space behind it.
    Close(&'a str),
}

/// Splits a reply into fence lines and text.
#[derive(Clone, Debug)]
pub struct Fenced {
    state: State,
    /// Possible line of the fence, with white space around it.
    carry: String,
    place: Counter,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// In leading white space.
    Start,
    /// In the fence characters of the first line.
    Marks(Run),
    /// In the info string: whether a word has begun, and whether white space follows it.
    Info(Run, bool, bool),
    /// Inside the fence.
    Inside(Run, Line),
    /// No fence.
    Without,
}

/// Fence character, and number of repetitions.
#[derive(Clone, Copy, Debug)]
struct Run {
    sign: char,
    count: usize,
}

/// Position on a line of the fenced text.
#[derive(Clone, Copy, Debug)]
enum Line {
    /// After blanks at most.
    Begin,
    /// After this many fence characters.
    Marks(usize),
    /// In white space behind a closing line; holds the offset where its last line begins.
    End(Option<usize>),
    Middle,
}

impl Fenced {
    /// Creates a reader at the start of a reply. At most `limit` bytes are held back: a longer line is no
    /// fence line.
    #[must_use]
    pub fn new(limit: usize) -> Fenced {
        let place = Counter::new(Place::START);
        Fenced { state: State::Start, carry: String::new(), place, limit }
    }

    /// Reads `text` and passes each part to `out` with the place it starts at.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(Part<'_>, At<'_>)) {
        let mut rest = text;
        while !rest.is_empty() {
            let taken = match self.state {
                State::Without => rest.len(),
                State::Inside(_, Line::Middle) => {
                    scan::find(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1)
                }
                _ => {
                    rest = self.hold(rest, out);
                    continue;
                }
            };
            self.put(Part::Text(&rest[..taken]), out);
            if let State::Inside(_, line) = &mut self.state
                && rest[..taken].ends_with('\n')
            {
                *line = Line::Begin;
            }
            rest = &rest[taken..];
        }
    }

    /// Ends the input.
    pub fn finish(&mut self, out: &mut impl FnMut(Part<'_>, At<'_>)) {
        let held = std::mem::take(&mut self.carry);
        let closes = match self.state {
            State::Inside(mark, Line::Marks(count)) => count >= mark.count,
            State::Inside(_, Line::End(_)) => true,
            _ => false,
        };
        if !held.is_empty() {
            self.put(if closes { Part::Close(&held) } else { Part::Text(&held) }, out);
        }
        self.state = State::Without;
    }

    /// Number of bytes held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.carry.len()
    }

    /// Reads one character of a possible fence line; returns the text behind it. A character that does not
    /// fit is not consumed.
    fn hold<'a>(&mut self, text: &'a str, out: &mut impl FnMut(Part<'_>, At<'_>)) -> &'a str {
        let c = text.chars().next().unwrap_or_default();
        let next = if self.carry.len() + c.len_utf8() > self.limit { None } else { self.next(c) };
        let Some(state) = next else {
            self.release(out);
            return text;
        };
        self.carry.push(c);
        let opens = matches!((self.state, state), (State::Marks(_) | State::Info(..), State::Inside(..)));
        let blank = matches!(state, State::Inside(_, Line::Begin)) && c == '\n';
        self.state = state;
        if opens || blank {
            let held = std::mem::take(&mut self.carry);
            self.put(if opens { Part::Open(&held) } else { Part::Text(&held) }, out);
        }
        &text[c.len_utf8()..]
    }

    /// State after `c`, if it fits.
    fn next(&self, c: char) -> Option<State> {
        Some(match self.state {
            State::Start if is_space(c) => State::Start,
            State::Start if u8::try_from(c).is_ok_and(is_mark) => State::Marks(Run { sign: c, count: 1 }),
            State::Marks(mark) if c == mark.sign => State::Marks(Run { count: mark.count + 1, ..mark }),
            State::Marks(mark) | State::Info(mark, ..) if mark.count < 3 || c == mark.sign => return None,
            State::Marks(mark) | State::Info(mark, ..) if c == '\n' => State::Inside(mark, Line::Begin),
            State::Marks(mark) => State::Info(mark, !is_space(c), false),
            State::Info(mark, word, _) if is_space(c) => State::Info(mark, word, word),
            State::Info(mark, _, false) => State::Info(mark, true, false),
            State::Inside(mark, line) => State::Inside(mark, self.line(mark, line, c)?),
            State::Start | State::Info(..) | State::Without => return None,
        })
    }

    fn line(&self, mark: Run, line: Line, c: char) -> Option<Line> {
        Some(match line {
            Line::Begin if is_space(c) => Line::Begin,
            Line::Begin if c == mark.sign => Line::Marks(1),
            Line::Marks(count) if c == mark.sign => Line::Marks(count + 1),
            Line::Marks(count) if count >= mark.count && c == '\n' => Line::End(Some(self.carry.len() + 1)),
            Line::Marks(count) if count >= mark.count && is_space(c) => Line::End(None),
            Line::End(_) if c == '\n' => Line::End(Some(self.carry.len() + 1)),
            Line::End(last) if is_space(c) => Line::End(last),
            _ => return None,
        })
    }

    /// Emits the held text, which is no fence line; its last line may still become one.
    fn release(&mut self, out: &mut impl FnMut(Part<'_>, At<'_>)) {
        let mut held = std::mem::take(&mut self.carry);
        let mut last = held.len();
        self.state = match self.state {
            State::Inside(mark, Line::End(Some(line))) if held.len() < self.limit => {
                last = line;
                State::Inside(mark, Line::Begin)
            }
            State::Inside(mark, _) => State::Inside(mark, Line::Middle),
            _ => State::Without,
        };
        if last > 0 {
            self.put(Part::Text(&held[..last]), out);
        }
        held.drain(..last);
        self.carry = held;
    }

    fn put(&mut self, part: Part<'_>, out: &mut impl FnMut(Part<'_>, At<'_>)) {
        let (Part::Text(raw) | Part::Open(raw) | Part::Close(raw)) = part;
        out(part, At::counted(&mut self.place));
        self.place.add(raw);
    }
}
