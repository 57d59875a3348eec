//! The dialect `auto`: detects the dialect of a reply (J-054, X-013).
//!
//! The decision is due after `limits.detect` bytes of non-blank text, called the window, and comes earlier if
//! the evidence suffices; until then no text is emitted. The window grows, up to `limits.hold`, only in two
//! cases: an object may still get the keys of a dialect, or the text after a tag decides whether the tag
//! belongs to a dialect. In doubt the reply is text. A reply once read as plain stays plain.
//!
//! Reasoning that the upstream sends in a separate field waits for the decision too: for a plain reply it is
//! the thinking, for any other dialect it is a draft, which is not part of the answer. If reasoning
//! and text together exceed `limits.hold`, the reasoning becomes a draft at once.

use std::sync::Arc;

use super::opening::{Opening, OpeningVerdict, PrefixExtent, examine};
use super::{Dialect, DialectEntry, ExampleStyle, IntentSink, ReplyEnding, find_dialect, plain};
use crate::event::Event;
use crate::options::Options;
use crate::span::Place;

/// Entry in the table of dialects.
pub(super) const ENTRY: DialectEntry = DialectEntry {
    name: "auto",
    summary: "detects which dialect a reply is written in",
    reader: |options| Box::new(AutoReader::new(options)),
    opening: Opening::NONE,
    settings: &[],
    rules: &[],
    write: None,
    prompt: None,
    schema: None,
    grammar: None,
    examples: ExampleStyle { languages: &[], includes_fence: false },
};

struct AutoReader {
    options: Arc<Options>,
    /// Text received before the decision.
    buffer: String,
    /// Bytes of `buffer` that are not white space.
    nonblank_len: usize,
    /// Value of `nonblank_len` at the last examination. White space after it adds no evidence, except the
    /// first end of a line.
    examined_len: usize,
    /// Set if the last examination was at the end of a line.
    is_line_end_examined: bool,
    /// Set if the next non-blank character adds evidence.
    next_char_decides: bool,
    /// Value of `nonblank_len` at which the decision is due, and whether that value was raised because an
    /// examination at the earlier value gave no decision.
    window: usize,
    is_window_extended: bool,
    /// Reasoning received before the decision.
    reasoning: String,
    /// Set once reasoning and text together have exceeded `limits.hold`: all reasoning is then a draft.
    is_reasoning_drafted: bool,
    /// Reader of the detected dialect; `None` before the decision.
    reader: Option<Box<dyn Dialect>>,
}

impl AutoReader {
    fn new(options: &Arc<Options>) -> AutoReader {
        AutoReader {
            options: Arc::clone(options),
            buffer: String::new(),
            nonblank_len: 0,
            examined_len: 0,
            is_line_end_examined: false,
            next_char_decides: false,
            window: options.limits.detect,
            is_window_extended: false,
            reasoning: String::new(),
            is_reasoning_drafted: false,
            reader: None,
        }
    }

    /// Returns how much of the text needed for the decision has been received.
    fn extent(&self) -> PrefixExtent {
        if self.buffer.len() + self.reasoning.len() >= self.options.limits.hold {
            PrefixExtent::All
        } else if self.nonblank_len >= self.window {
            PrefixExtent::Window
        } else {
            PrefixExtent::Part
        }
    }

    /// Creates the reader of the detected dialect and passes all buffered input to it.
    fn decide(&mut self, verdict: OpeningVerdict, out: &mut dyn IntentSink) {
        let reasoning = std::mem::take(&mut self.reasoning);
        let mut reader = match verdict {
            OpeningVerdict::Dialect(name) => match find_dialect(name) {
                Ok(entry) => (entry.reader)(&self.options),
                Err(_) => plain::detected_reader(&self.options),
            },
            OpeningVerdict::Plain | OpeningVerdict::Unknown => plain::detected_reader(&self.options),
        };
        if !reasoning.is_empty() {
            reader.push_reasoning(&reasoning, out);
        }
        let reader = self.reader.insert(reader);
        reader.push_text(&std::mem::take(&mut self.buffer), out);
    }
}

impl Dialect for AutoReader {
    #[inline]
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        if let Some(reader) = &mut self.reader {
            return reader.push_text(text, out);
        }
        // One character at a time, so that the decision comes at the same place however the reply is cut
        // into chunks. The text is examined only where a token can have ended.
        for (at, c) in text.char_indices() {
            self.buffer.push(c);
            self.nonblank_len += if c.is_whitespace() { 0 } else { c.len_utf8() };
            let extent = self.extent();
            // Characters that end a tag, a mark, a string, a key, a value or a line.
            let is_decisive = matches!(c, '>' | ']' | '}' | '▷' | '"' | '\'' | '”' | ':' | '\n')
                || (!c.is_whitespace() && self.next_char_decides);
            let has_new_evidence =
                self.nonblank_len > self.examined_len || c == '\n' && !self.is_line_end_examined;
            let must_examine = match extent {
                // An extended window is examined only at its end.
                PrefixExtent::Part => is_decisive && !self.is_window_extended && has_new_evidence,
                PrefixExtent::Window | PrefixExtent::All => true,
            };
            let verdict = if must_examine {
                (self.examined_len, self.is_line_end_examined) = (self.nonblank_len, c == '\n');
                let examination = examine(&self.buffer, extent);
                self.next_char_decides = examination.next_char_decides;
                examination.verdict
            } else {
                OpeningVerdict::Unknown
            };
            if extent == PrefixExtent::Window && verdict == OpeningVerdict::Unknown {
                // The next examination comes at twice the length, so that the work stays linear.
                (self.window, self.is_window_extended) = (self.window.saturating_mul(2), true);
            }
            if verdict != OpeningVerdict::Unknown || extent == PrefixExtent::All {
                let mut unread = &text[at + c.len_utf8()..];
                if unread.len() <= self.options.limits.delta {
                    // A short remainder reaches the reader in one chunk with the buffered text.
                    self.buffer.push_str(std::mem::take(&mut unread));
                }
                self.decide(verdict, out);
                if let Some(reader) = &mut self.reader
                    && !unread.is_empty()
                {
                    reader.push_text(unread, out);
                }
                return;
            }
        }
    }

    fn push_reasoning(&mut self, text: &str, out: &mut dyn IntentSink) {
        match &mut self.reader {
            Some(reader) => reader.push_reasoning(text, out),
            // A model whose reasoning comes in a separate field may still write any dialect.
            None => {
                self.reasoning.push_str(text);
                self.is_reasoning_drafted |= self.held_bytes() > self.options.limits.hold;
                if self.is_reasoning_drafted {
                    out.emit_intent(super::Intent::Draft(&std::mem::take(&mut self.reasoning)));
                }
            }
        }
    }

    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        if self.reader.is_none() {
            self.decide(examine(&self.buffer, PrefixExtent::All).verdict, out);
        }
        if let Some(reader) = &mut self.reader {
            reader.finish(ending, out);
        }
    }

    fn place(&self) -> Place {
        match &self.reader {
            Some(reader) => reader.place(),
            None => Place::START.end_of(&self.buffer),
        }
    }

    fn held_bytes(&self) -> usize {
        match &self.reader {
            Some(reader) => reader.held_bytes(),
            None => self.buffer.len() + self.reasoning.len(),
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
