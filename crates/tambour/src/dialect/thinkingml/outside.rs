//! Text outside the elements: held until it is known whether a structure makes it superfluous (X-013, T-015), and
//! the fence around a reply (T-018).

use crate::lex::space::{is_blank, is_space};
use crate::span::Place;

/// Text outside the elements, from its first character that is not blank.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    text: String,
    /// The runs of `text`: what was taken out stood between them.
    runs: Vec<Run>,
    /// The place after `text`.
    end: Place,
    /// Offset after the last character that is not blank, once something did not fit.
    beyond: Option<usize>,
}

/// A run of text without a gap.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where it starts in the text outside.
    from: usize,
    /// Where it starts in the reply.
    at: Place,
}

/// The opening of a fence around the reply.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    pub(super) mark: char,
    pub(super) len: usize,
    pub(super) place: Place,
    pub(super) end: usize,
}

impl Outside {
    /// Adds text that starts at `place`, up to `limit` bytes in all, and returns what does not fit; a tag is `whole`
    /// and never cut. White space before anything else is not kept.
    pub(super) fn push<'a>(
        &mut self,
        text: &'a str,
        mut place: Place,
        whole: bool,
        limit: usize,
    ) -> Option<(&'a str, Place)> {
        let mut text = text;
        if self.text.is_empty() && self.beyond.is_none() {
            let kept = text.trim_start_matches([' ', '\t', '\r', '\n', '\u{FEFF}']);
            place.advance(&text[..text.len() - kept.len()]);
            text = kept;
        }
        let room = if self.beyond.is_some() { 0 } else { limit.saturating_sub(self.text.len()) };
        let fits = if whole && text.len() > room { 0 } else { text.floor_char_boundary(room) };
        let (kept, rest) = text.split_at(fits);
        if !kept.is_empty() {
            if self.text.is_empty() || self.end != place {
                self.runs.push(Run { from: self.text.len(), at: place });
            }
            self.text.push_str(kept);
            place.advance(kept);
            self.end = place;
        }
        (!rest.is_empty()).then_some((rest, place))
    }

    /// Notes text that did not fit and is left out: only its end matters.
    pub(super) fn overflow(&mut self, rest: &str, place: Place) {
        let end = match self.beyond {
            Some(end) => end,
            None => self.range().1,
        };
        let inner = rest.trim_end_matches(is_space);
        self.beyond = Some(if inner.is_empty() { end } else { place.offset + inner.len() });
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_blank(&self) -> bool {
        is_blank(&self.text) && self.beyond.is_none()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The runs of text, each with its place.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&str, Place)> {
        let ends = self.runs.iter().skip(1).map(|run| run.from).chain([self.text.len()]);
        self.runs.iter().zip(ends).map(|(run, end)| (&self.text[run.from..end], run.at))
    }

    /// The run that holds a byte of the text.
    fn run(&self, byte: usize) -> Run {
        let found = self.runs.iter().rev().find(|run| run.from <= byte);
        found.copied().unwrap_or(Run { from: 0, at: self.end })
    }

    /// Start, and offset after the last character that is not blank.
    pub(super) fn range(&self) -> (Place, usize) {
        let len = self.text.trim_end_matches(is_space).len();
        let last = self.run(len.saturating_sub(1));
        (self.run(0).at, self.beyond.unwrap_or(last.at.offset + len - last.from))
    }

    /// Takes everything.
    pub(super) fn take(&mut self) -> Outside {
        std::mem::take(self)
    }

    /// Takes an open `<!--` from the end: it belongs to a queries block.
    pub(super) fn take_comment(&mut self) -> String {
        let before = self.text.trim_end().strip_suffix("<!--").map(str::len);
        before.filter(|_| self.beyond.is_none()).map_or_else(String::new, |before| self.split_off(before))
    }

    /// Removes a fence that opens on the last line, and returns it.
    pub(super) fn take_fence(&mut self) -> Option<Fence> {
        let body = self.text.trim_end();
        let line_at = body.rfind('\n').map_or(0, |at| at + 1);
        let line = &body[line_at..];
        let indent = line.len() - line.trim_start().len();
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let len = line.chars().take_while(|&c| c == mark).count();
        let info = line[len..].trim();
        if len < 3 || info.contains(mark) || info.contains(char::is_whitespace) {
            return None;
        }
        let run = self.run(line_at + indent);
        let place = run.at.after(&self.text[run.from..line_at + indent]);
        let end = place.offset + line.len();
        self.split_off(line_at);
        Some(Fence { mark, len, place, end })
    }

    /// Removes the text from `at` on and returns it.
    fn split_off(&mut self, at: usize) -> String {
        let rest = self.text.split_off(at);
        self.runs.retain(|run| run.from < at);
        let last = self.run(at);
        self.end = last.at.after(&self.text[last.from..]);
        rest
    }

    /// Removes the line that closes `fence`; whether there was one.
    pub(super) fn take_closing(&mut self, fence: &Fence) -> bool {
        let line = self.text.lines().next().unwrap_or("").trim();
        let closes = line.len() >= fence.len && line.chars().all(|c| c == fence.mark);
        if closes {
            let mut skip = self.text.find('\n').map_or(self.text.len(), |at| at + 1);
            let old = self.take();
            for (text, at) in old.runs() {
                let skipped = skip.min(text.len());
                skip -= skipped;
                self.push(&text[skipped..], at.after(&text[..skipped]), false, usize::MAX);
            }
            self.beyond = old.beyond;
        }
        closes
    }
}
