//! The dialect `auto`: detects how a reply is written (J-054, X-013).
//!
//! At most `limits.detect` bytes of non-blank text are read before the decision; until then nothing is
//! emitted. Only an object with the first key of a dialect, and no other key so far, is read up to its next
//! key or up to `limits.hold`; in doubt the reply is text. A reply once read as plain stays plain.
//! Reasoning in a field of its own that arrives before the decision waits too, because it is the thinking of
//! a plain reply and a draft beside any other; beyond `limits.hold` it becomes a draft.

use std::sync::Arc;

use super::opening::{Extent, Opening, Verdict, look};
use super::{Dialect, Ending, Entry, Examples, Output, entry, plain};
use crate::event::Event;
use crate::options::Options;
use crate::span::Place;

/// Entry in the table of dialects.
pub(super) const ENTRY: Entry = Entry {
    name: "auto",
    summary: "finds out which dialect a reply is written in",
    reader: |options| Box::new(Auto::new(options)),
    opening: Opening::NONE,
    settings: &[],
    rules: &[],
    write: None,
    prompt: None,
    schema: None,
    examples: Examples { languages: &[], fenced: false },
};

struct Auto {
    options: Arc<Options>,
    /// Text received before the decision.
    seen: String,
    /// Bytes of `seen` that are not blank.
    filled: usize,
    /// Value of `filled` at the last look, and whether a line ended there: further white space adds no
    /// evidence.
    looked: usize,
    broken: bool,
    /// Set if the next non-blank character adds evidence.
    closed: bool,
    /// Non-blank bytes after which the decision is due, and whether that limit was reached before without
    /// one.
    window: usize,
    doubtful: bool,
    /// Reasoning received before the decision.
    reasoned: String,
    /// Set once the reasoning has exceeded the hold limit and become a draft.
    drafted: bool,
    reader: Option<Box<dyn Dialect>>,
}

impl Auto {
    fn new(options: &Arc<Options>) -> Auto {
        Auto {
            options: Arc::clone(options),
            seen: String::new(),
            filled: 0,
            looked: 0,
            broken: false,
            closed: false,
            window: options.limits.detect,
            doubtful: false,
            reasoned: String::new(),
            drafted: false,
            reader: None,
        }
    }

    /// Share of the reply that has been received.
    fn extent(&self) -> Extent {
        match self.filled >= self.window {
            _ if self.seen.len() + self.reasoned.len() >= self.options.limits.hold => Extent::All,
            true => Extent::Window,
            false => Extent::Part,
        }
    }

    fn decide(&mut self, verdict: Verdict, out: &mut dyn Output) {
        let reasoned = std::mem::take(&mut self.reasoned);
        let mut reader = match verdict {
            Verdict::Dialect(name) => match entry(name) {
                Ok(entry) => (entry.reader)(&self.options),
                Err(_) => plain::detected(&self.options),
            },
            Verdict::Plain | Verdict::Unknown => plain::detected(&self.options),
        };
        if !reasoned.is_empty() {
            reader.reasoning(&reasoned, out);
        }
        let reader = self.reader.insert(reader);
        reader.text(&std::mem::take(&mut self.seen), out);
    }
}

impl Dialect for Auto {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        if let Some(reader) = &mut self.reader {
            return reader.text(text, out);
        }
        // One character at a time, so that the decision falls at the same place however the reply is cut into
        // chunks. The text is examined only where a token can have ended.
        for (at, c) in text.char_indices() {
            self.seen.push(c);
            self.filled += if c.is_whitespace() { 0 } else { c.len_utf8() };
            let extent = self.extent();
            let telling = matches!(c, '>' | ']' | '}' | '▷' | '"' | '\'' | '”' | ':' | '\n')
                || (!c.is_whitespace() && self.closed);
            let looks = match extent {
                Extent::Part => {
                    telling && !self.doubtful && (self.filled > self.looked || c == '\n' && !self.broken)
                }
                Extent::Window | Extent::All => true,
            };
            let verdict = if looks {
                (self.looked, self.broken) = (self.filled, c == '\n');
                let seen = look(&self.seen, extent);
                self.closed = seen.closed;
                seen.verdict
            } else {
                Verdict::Unknown
            };
            if extent == Extent::Window && verdict == Verdict::Unknown {
                // The next look comes at twice the length, so that the work stays linear.
                (self.window, self.doubtful) = (self.window.saturating_mul(2), true);
            }
            if verdict != Verdict::Unknown || extent == Extent::All {
                let mut rest = &text[at + c.len_utf8()..];
                if rest.len() <= self.options.limits.delta {
                    // Joined with the held text it makes one chunk.
                    self.seen.push_str(std::mem::take(&mut rest));
                }
                self.decide(verdict, out);
                if let Some(reader) = &mut self.reader
                    && !rest.is_empty()
                {
                    reader.text(rest, out);
                }
                return;
            }
        }
    }

    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        match &mut self.reader {
            Some(reader) => reader.reasoning(text, out),
            // A model that reasons in a field of its own may still write any dialect.
            None => {
                self.reasoned.push_str(text);
                self.drafted |= self.held() > self.options.limits.hold;
                if self.drafted {
                    out.intent(super::Intent::Draft(&std::mem::take(&mut self.reasoned)));
                }
            }
        }
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        if self.reader.is_none() {
            self.decide(look(&self.seen, Extent::All).verdict, out);
        }
        if let Some(reader) = &mut self.reader {
            reader.finish(ending, out);
        }
    }

    fn place(&self) -> Place {
        match &self.reader {
            Some(reader) => reader.place(),
            None => Place::START.after(&self.seen),
        }
    }

    fn held(&self) -> usize {
        match &self.reader {
            Some(reader) => reader.held(),
            None => self.seen.len() + self.reasoned.len(),
        }
    }

    fn name(&self) -> &'static str {
        match &self.reader {
            Some(reader) => reader.name(),
            None => ENTRY.name,
        }
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        self.reader.as_ref()?.write(events)
    }
}
