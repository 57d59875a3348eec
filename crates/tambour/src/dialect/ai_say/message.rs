//! The message of an answer, streamed out of the JSON while it arrives.
//!
//! Text under the configured role key is emitted at once, as is a plain string in place of `response`. Text
//! under another key is the message only if it is the only text (S-052), which is known when `response` is
//! closed; it is held back until then. A plain string that begins like an object is held back too, because it
//! may be one. Emitted text is never retracted, so the first message emitted is the message.

use super::names;
use super::placeholder::{is_placeholder, may_become};
use super::rules;
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::span::Place;

/// The message being read.
#[derive(Clone, Debug)]
pub(super) struct Message {
    way: Way,
    /// Leading blanks or the beginning of a possible placeholder.
    lead: String,
    /// The same text, trimmed.
    core: String,
    /// A complete text under another key than the role, with the place of that key.
    other: Option<(String, Place)>,
    /// The speaker's name in a chat-style message; it is the message only if there is no other text.
    speaker: Option<(String, Place)>,
    /// Set if the current string replaces the object.
    plain: bool,
    /// Set if the current string may be the speaker's name.
    naming: bool,
    /// Set if several such texts exist, so that none can be used.
    several: bool,
    /// Set if the current text is under a name of the message. If exactly one of several texts is, it is the
    /// message.
    is_named: bool,
    /// Set if the held-back text is under a name of the message.
    other_named: bool,
    /// A further text under a name of the message, with the place of its key.
    named: Option<(String, Place)>,
    /// Set if there are still more such texts.
    named_again: bool,
    /// The current string.
    current: String,
    /// Place of its key.
    at: Place,
    /// Place and kind of the key of the message, once text of it has been emitted.
    sent: Option<(Place, How)>,
    /// Places of keys whose text was not emitted.
    lost: Vec<Place>,
    /// Set if the message is the joined texts of a value.
    joined: bool,
    /// Place of the key of the list that contains the current text.
    list: Option<Place>,
    /// Place of the key of the list that contains the held-back text.
    other_list: Option<Place>,
    limit: usize,
}

/// Kind of key that holds the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The role, or `response` itself.
    Own,
    Other,
}

/// Most recorded places of texts that were not emitted.
const LOST: usize = 64;

/// Handling of the current string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nowhere,
    /// Emit it once it is more than blanks and not a placeholder.
    Begin,
    Out,
    /// Hold it back until the end of `response`.
    Wait,
    /// Hold it back until its own end: it may be an object written as a string.
    Whole,
}

/// Kind of a string of `response` that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The message, a part of it, or nothing.
    Text,
    /// A placeholder of the instructions.
    Placeholder,
    /// A possible object written as a string; nothing of it has been emitted.
    Whole(String),
}

/// Position of a text in `response`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// In place of the object.
    Plain,
    /// Under the role key.
    Role,
    /// Under `role`, the key of the speaker's name in a chat message.
    Speaker,
    /// Under a name of the message.
    Named,
    /// Anywhere else.
    Elsewhere,
}

impl Stand {
    /// Returns the position of a text under `key`, which is not the role key.
    pub(super) fn under(key: &str) -> Stand {
        match key {
            "role" => Stand::Speaker,
            key if names::is_message(key) => Stand::Named,
            _ => Stand::Elsewhere,
        }
    }
}

/// Bytes kept of a further text, enough to tell that it is one.
const ENOUGH: usize = 64;

/// Longest name of a speaker, in bytes.
const NAME: usize = 64;

impl Message {
    pub(super) fn new(limit: usize) -> Message {
        Message {
            way: Way::Nowhere,
            lead: String::new(),
            core: String::new(),
            other: None,
            speaker: None,
            plain: false,
            naming: false,
            several: false,
            is_named: false,
            other_named: false,
            named: None,
            named_again: false,
            current: String::new(),
            at: Place::START,
            sent: None,
            lost: Vec::new(),
            joined: false,
            list: None,
            other_list: None,
            limit,
        }
    }

    /// Returns true once text has been emitted.
    pub(super) fn is_sent(&self) -> bool {
        self.sent.is_some()
    }

    /// Returns the place and kind of the message's key, once text of it has been emitted.
    pub(super) fn sent(&self) -> Option<(Place, How)> {
        self.sent
    }

    /// Returns the places of keys whose text was not emitted, without consecutive duplicates.
    pub(super) fn lost(&self) -> &[Place] {
        &self.lost
    }

    /// Forgets the lost texts: another object begins.
    pub(super) fn forget(&mut self) {
        self.lost.clear();
    }

    /// Records that the text under the key at `at` is not used.
    pub(super) fn lose(&mut self, at: Place) {
        if self.lost.last() != Some(&at) && self.lost.len() < LOST {
            self.lost.push(at);
        }
    }

    /// Returns the bytes held back.
    pub(super) fn held(&self) -> usize {
        let waiting = |text: &Option<(String, Place)>| text.as_ref().map_or(0, |(text, _)| text.len());
        self.lead.len()
            + self.current.len()
            + waiting(&self.other)
            + waiting(&self.speaker)
            + waiting(&self.named)
    }

    /// As [`Message::begin`], for a string in the list whose key is at `list`.
    pub(super) fn begin_in(&mut self, list: Option<Place>, stand: Stand, at: Place) {
        self.begin(stand, at);
        self.list = list;
    }

    /// Returns true if the current text continues the held-back one: both are in one list.
    fn goes_on(&self) -> bool {
        self.list.is_some() && self.list == self.other_list && !self.several && self.sent.is_none()
    }

    /// Begins a string of `response`; its key is at `at`.
    pub(super) fn begin(&mut self, stand: Stand, at: Place) {
        self.lead.clear();
        self.core.clear();
        self.current.clear();
        self.list = None;
        self.plain = stand == Stand::Plain;
        self.naming = stand == Stand::Speaker;
        self.is_named = stand == Stand::Named;
        self.at = at;
        self.way = match stand {
            Stand::Speaker | Stand::Named | Stand::Elsewhere => Way::Wait,
            _ if self.is_sent() => Way::Nowhere,
            Stand::Plain | Stand::Role => Way::Begin,
        };
    }

    /// Pushes text of the string.
    #[inline]
    pub(super) fn push(&mut self, text: &str, out: &mut dyn Output) {
        match self.way {
            Way::Out => out.intent(Intent::FinalText(text)),
            Way::Begin => self.lead(text, out),
            Way::Whole => self.whole(text, out),
            Way::Wait => self.wait(text, out),
            Way::Nowhere if text.trim().is_empty() => {}
            Way::Nowhere => self.lose(self.at),
        }
    }

    /// Reads the beginning of the message, one character at a time until it is decided.
    fn lead(&mut self, text: &str, out: &mut dyn Output) {
        for (at, c) in text.char_indices() {
            if c == '{' && self.plain && self.core.is_empty() {
                self.way = Way::Whole;
                return self.whole(&text[at..], out);
            }
            self.lead.push(c);
            let waits = match c.is_whitespace() {
                true if self.core.is_empty() || is_placeholder(&self.core) => true,
                // White space inside a placeholder.
                true => {
                    self.core.push(' ');
                    may_become(&self.core)
                }
                false => {
                    let before = self.lead.len() - c.len_utf8();
                    let blank = self.lead[..before].ends_with(char::is_whitespace);
                    let apart = blank && !self.core.is_empty() && !self.core.ends_with(' ');
                    self.core.push(c);
                    !apart && may_become(&self.core)
                }
            };
            if !waits || self.lead.len() > self.limit {
                self.sent = Some((self.at, How::Own));
                self.way = Way::Out;
                out.intent(Intent::FinalText(&self.lead));
                self.lead.clear();
                let rest = &text[at + c.len_utf8()..];
                if !rest.is_empty() {
                    out.intent(Intent::FinalText(rest));
                }
                return;
            }
        }
    }

    /// Buffers more of a possible object.
    fn whole(&mut self, text: &str, out: &mut dyn Output) {
        let room = text.floor_char_boundary(self.limit.saturating_sub(self.lead.len() + self.current.len()));
        self.current.push_str(&text[..room]);
        if room < text.len() {
            // Too long to hold back: it is emitted as the message.
            self.send_whole(out);
            self.way = Way::Out;
            out.intent(Intent::FinalText(&text[room..]));
        }
    }

    /// Emits a held-back text as the message.
    fn send_whole(&mut self, out: &mut dyn Output) {
        self.sent = Some((self.at, How::Own));
        for held in [&mut self.lead, &mut self.current] {
            if !held.is_empty() {
                out.intent(Intent::FinalText(held));
            }
            held.clear();
        }
    }

    /// Emits a complete text as the message.
    pub(super) fn send(&mut self, text: &str, out: &mut dyn Output) {
        self.sent = Some((self.at, How::Own));
        out.intent(Intent::FinalText(text));
    }

    /// Emits the joined texts of the value at `at` as the message.
    pub(super) fn send_joined(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        (self.sent, self.joined) = (Some((at, How::Own)), true);
        self.lost.clear();
        out.intent(Intent::FinalText(text));
    }

    /// Returns true if the message is all texts of one value.
    pub(super) fn is_joined(&self) -> bool {
        self.joined
    }

    fn wait(&mut self, text: &str, out: &mut dyn Output) {
        let text = if self.current.is_empty() { text.trim_start() } else { text };
        let apart = self.other.is_some() && !self.goes_on();
        let named = self.is_named && self.named.is_none() && !self.is_sent();
        if !named && (self.is_sent() || self.several || apart) {
            for c in text.chars() {
                if self.current.len() >= ENOUGH {
                    break;
                }
                self.current.push(c);
            }
            return;
        }
        self.current.push_str(text);
        if self.current.len() > self.limit {
            let message = "a text under another key than the role is longer than `limits.hold`";
            let report = Report::new(rules::LIMIT_EXCEEDED, self.at, self.at.offset, message);
            out.report(report.repaired("taken as the message without waiting for the rest of `response`"));
            self.sent = Some((self.at, How::Other));
            self.way = Way::Out;
            out.intent(Intent::FinalText(&self.current));
            self.current.clear();
        }
    }

    /// Ends the string.
    pub(super) fn end(&mut self, out: &mut dyn Output) -> Ended {
        let way = std::mem::replace(&mut self.way, Way::Nowhere);
        let text = match way {
            Way::Begin => std::mem::take(&mut self.core),
            Way::Wait => std::mem::take(&mut self.current),
            Way::Whole => {
                self.lead.push_str(&self.current);
                self.current.clear();
                return Ended::Whole(std::mem::take(&mut self.lead));
            }
            Way::Out | Way::Nowhere => return Ended::Text,
        };
        let placeholder = is_placeholder(&text);
        if way == Way::Begin && !placeholder && !text.is_empty() {
            // The possible placeholder is ordinary text.
            self.sent = Some((self.at, How::Own));
            out.intent(Intent::FinalText(&self.lead));
        }
        self.lead.clear();
        if way == Way::Wait && !placeholder && !text.trim().is_empty() {
            let named = self.speaker.as_ref().is_none_or(|(name, _)| self.list.is_some() && *name == text);
            if self.naming && named && text.len() <= NAME {
                self.speaker.get_or_insert((text, self.at));
            } else if self.naming && self.list.is_some() && self.speaker.is_some() {
                // Different speakers make it a conversation, which has no single message.
                self.several = true;
                self.lose(self.at);
            } else if self.goes_on()
                && let Some((joined, _)) = &mut self.other
            {
                self.joined = true;
                joined.push_str("\n\n");
                joined.push_str(&text);
            } else if self.other.is_some() || self.several || self.is_sent() {
                self.several |= self.other.is_some();
                self.named_again |= self.is_named && self.named.is_some();
                if self.is_named && self.named.is_none() && !self.is_sent() {
                    self.named = Some((text, self.at));
                } else {
                    self.lose(self.at);
                }
            } else {
                self.other = Some((text, self.at));
                (self.other_list, self.other_named) = (self.list, self.is_named);
            }
        }
        if placeholder { Ended::Placeholder } else { Ended::Text }
    }

    /// Closes `response`: the held-back text is the message if there is no other.
    pub(super) fn close(&mut self, out: &mut dyn Output) {
        let mut several = std::mem::take(&mut self.several);
        let (mut other, mut speaker) = (self.other.take(), self.speaker.take());
        let named = (std::mem::take(&mut self.other_named), self.named.take());
        match (named, std::mem::take(&mut self.named_again)) {
            ((true, None), false) => several = false,
            ((false, Some(named)), false) => {
                several = false;
                if let Some((_, at)) = other.replace(named) {
                    self.lose(at);
                }
            }
            ((_, Some((_, at))), _) => self.lose(at),
            _ => {}
        }
        if other.is_none() && !self.is_sent() {
            // The speaker's name is the only text.
            other = speaker.take();
        }
        if let Some((_, at)) = speaker {
            self.lose(at);
        }
        let Some((text, at)) = other else { return };
        if several || self.is_sent() {
            self.lose(at);
        } else {
            self.sent = Some((at, How::Other));
            out.intent(Intent::FinalText(&text));
        }
    }
}
