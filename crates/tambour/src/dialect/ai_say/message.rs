//! The message of an answer, on its way out of the JSON while it arrives.
//!
//! The text under the configured role key goes out at once, as does a plain string in the place of `response`. A text
//! under another key is the message only if it is the only one (S-052), which is known when `response` is closed: it
//! waits until then. So does a plain string that begins like an object, since it may be one. Text that was sent is
//! never taken back, so the first message that was sent is the message.

use super::names;
use super::placeholder::{is_placeholder, may_become};
use super::rules;
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::span::Place;

/// The message under way.
#[derive(Clone, Debug)]
pub(super) struct Message {
    way: Way,
    /// Blanks or the beginning of a placeholder, until it is known what they are; and their text without blanks around.
    lead: String,
    core: String,
    /// A text under another key than the role's, whole, and where that key stands.
    other: Option<(String, Place)>,
    /// The name of the speaker in the form of chat messages, which is no message beside one.
    speaker: Option<(String, Place)>,
    /// Whether the string under way stands in the place of the object, and whether it may be that name.
    plain: bool,
    naming: bool,
    /// Whether there are several of them, so that none can be used.
    several: bool,
    /// Whether the text under way, and the one that waits, stand under a name of the message; another that does, and whether there are
    /// still more. Of several texts the only one with such a name is the message.
    is_named: bool,
    other_named: bool,
    named: Option<(String, Place)>,
    named_again: bool,
    /// The one under way.
    current: String,
    /// Where its key stands.
    at: Place,
    /// Where the key of the message stands, once text of it has been sent, and what key it is.
    sent: Option<(Place, How)>,
    /// Where the keys of texts stand that were not sent.
    lost: Vec<Place>,
    /// Whether the message was joined of all texts of a value.
    joined: bool,
    /// The list that the text under way stands in, and that of the text that waits.
    list: Option<Place>,
    other_list: Option<Place>,
    limit: usize,
}

/// The key under which the message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The role, or `response` itself.
    Own,
    Other,
}

/// Texts that were not sent of which the places are kept.
const LOST: usize = 64;

/// What becomes of the string under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nowhere,
    /// Out, once it is more than blanks and no placeholder.
    Begin,
    Out,
    /// It waits for the end of `response`.
    Wait,
    /// It waits for its own end: it may be an object, written as a string.
    Whole,
}

/// What a string of `response` was, once it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The message, or a part of it, or nothing.
    Text,
    /// A placeholder of the instructions.
    Placeholder,
    /// What may be an object, written as a string; nothing of it has been sent.
    Whole(String),
}

/// Where a text of `response` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// In the place of the object.
    Plain,
    /// Under the role key.
    Role,
    /// Under `role`, where a chat message names its speaker.
    Speaker,
    /// Under a name of the message.
    Named,
    /// Somewhere else in it.
    Elsewhere,
}

impl Stand {
    /// Where a text under `key` stands that is not under the role key.
    pub(super) fn under(key: &str) -> Stand {
        match key {
            "role" => Stand::Speaker,
            key if names::is_message(key) => Stand::Named,
            _ => Stand::Elsewhere,
        }
    }
}

/// Bytes of a further text that tell whether it is one.
const ENOUGH: usize = 64;

/// Most bytes of the name of a speaker.
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

    /// Whether text has been sent.
    pub(super) fn is_sent(&self) -> bool {
        self.sent.is_some()
    }

    /// Where the key of the message stands, if text of it has been sent, and what key it is.
    pub(super) fn sent(&self) -> Option<(Place, How)> {
        self.sent
    }

    /// Where the keys of texts stand that were not sent; none are twice in a row.
    pub(super) fn lost(&self) -> &[Place] {
        &self.lost
    }

    /// Another object begins.
    pub(super) fn forget(&mut self) {
        self.lost.clear();
    }

    /// What stands under the key at `at` is not used.
    pub(super) fn lose(&mut self, at: Place) {
        if self.lost.last() != Some(&at) && self.lost.len() < LOST {
            self.lost.push(at);
        }
    }

    /// Bytes that wait.
    pub(super) fn held(&self) -> usize {
        let waiting = |text: &Option<(String, Place)>| text.as_ref().map_or(0, |(text, _)| text.len());
        self.lead.len()
            + self.current.len()
            + waiting(&self.other)
            + waiting(&self.speaker)
            + waiting(&self.named)
    }

    /// As [`Message::begin`], in the list whose key stands there.
    pub(super) fn begin_in(&mut self, list: Option<Place>, stand: Stand, at: Place) {
        self.begin(stand, at);
        self.list = list;
    }

    /// Whether the text under way goes on with the one that waits: both stand in one list.
    fn goes_on(&self) -> bool {
        self.list.is_some() && self.list == self.other_list && !self.several && self.sent.is_none()
    }

    /// A string of `response` begins, whose key stands at `at`.
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

    /// Text of the string.
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

    /// The beginning of the message, a character at a time until it is one.
    fn lead(&mut self, text: &str, out: &mut dyn Output) {
        for (at, c) in text.char_indices() {
            if c == '{' && self.plain && self.core.is_empty() {
                self.way = Way::Whole;
                return self.whole(&text[at..], out);
            }
            self.lead.push(c);
            let waits = match c.is_whitespace() {
                true if self.core.is_empty() || is_placeholder(&self.core) => true,
                // White space within one.
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

    /// More of what may be an object.
    fn whole(&mut self, text: &str, out: &mut dyn Output) {
        let room = text.floor_char_boundary(self.limit.saturating_sub(self.lead.len() + self.current.len()));
        self.current.push_str(&text[..room]);
        if room < text.len() {
            // Too long to be held: the message as it stands.
            self.send_whole(out);
            self.way = Way::Out;
            out.intent(Intent::FinalText(&text[room..]));
        }
    }

    /// Sends a text that was held for what it may be.
    fn send_whole(&mut self, out: &mut dyn Output) {
        self.sent = Some((self.at, How::Own));
        for held in [&mut self.lead, &mut self.current] {
            if !held.is_empty() {
                out.intent(Intent::FinalText(held));
            }
            held.clear();
        }
    }

    /// A whole text that is the message.
    pub(super) fn send(&mut self, text: &str, out: &mut dyn Output) {
        self.sent = Some((self.at, How::Own));
        out.intent(Intent::FinalText(text));
    }

    /// The texts of the value at `at`, which are the message.
    pub(super) fn send_joined(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        (self.sent, self.joined) = (Some((at, How::Own)), true);
        self.lost.clear();
        out.intent(Intent::FinalText(text));
    }

    /// Whether all texts of the value where it stands are the message.
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

    /// The string ends.
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
            // What might have become a placeholder has not.
            self.sent = Some((self.at, How::Own));
            out.intent(Intent::FinalText(&self.lead));
        }
        self.lead.clear();
        if way == Way::Wait && !placeholder && !text.trim().is_empty() {
            let named = self.speaker.as_ref().is_none_or(|(name, _)| self.list.is_some() && *name == text);
            if self.naming && named && text.len() <= NAME {
                self.speaker.get_or_insert((text, self.at));
            } else if self.naming && self.list.is_some() && self.speaker.is_some() {
                // Speakers differ: a conversation, and no message.
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

    /// `response` is closed: what waited is the message, if nothing else is.
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
            // The only text.
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
