//! The message of an answer, streamed out of the JSON while it arrives.
//!
//! Text under the configured role key is emitted at once, as is a `response` that is a plain string. Text
//! under another key is the message only if it is the only text (S-052), which is known when `response` is
//! closed; it is held back until then. A plain string that begins like an object is held back too, because it
//! may be one. Emitted text is never retracted, so the first message emitted is the message.

use super::names;
use super::placeholder::{is_placeholder, may_become_placeholder};
use super::rules;
use crate::dialect::{Intent, IntentSink};
use crate::finding::FindingReport;
use crate::span::Place;

/// The message being read.
#[derive(Clone, Debug)]
pub(super) struct AnswerMessage {
    /// Handling of the current string.
    handling: StringHandling,
    /// Beginning of the current string while it is only white space or a possible placeholder.
    held_start: String,
    /// The same text without leading white space; white space inside a possible placeholder is a blank.
    trimmed_start: String,
    /// A complete text under a key other than the role, with the place of that key.
    other_text: Option<(String, Place)>,
    /// The speaker's name in a chat-style message; it is the message only if there is no other text.
    speaker: Option<(String, Place)>,
    /// Set if the current string is the value of `response`, which should be an object.
    is_whole_response: bool,
    /// Set if the current string may be the speaker's name.
    is_speaker_key: bool,
    /// Set if several texts under keys other than the role exist, so that none can be used.
    has_several_texts: bool,
    /// Set if the current text is under a name of the message. If exactly one of several texts is, it is the
    /// message.
    is_named: bool,
    /// Set if the held-back text is under a name of the message.
    is_other_named: bool,
    /// A further text under a name of the message, with the place of its key.
    named_text: Option<(String, Place)>,
    /// Set if yet another text under a name of the message follows `named_text`.
    has_more_named_texts: bool,
    /// The current string.
    current_text: String,
    /// Place of its key.
    key_place: Place,
    /// Place and kind of the key of the message, once text of it has been emitted.
    sent_key: Option<(Place, MessageKeyKind)>,
    /// Places of keys whose text was not emitted.
    lost_keys: Vec<Place>,
    /// Set if the message is the joined texts of a value.
    has_joined: bool,
    /// Place of the key of the list that contains the current text.
    current_list: Option<Place>,
    /// Place of the key of the list that contains the held-back text.
    other_list: Option<Place>,
    /// Maximum number of bytes of one text held back (`limits.hold`).
    limit: usize,
}

/// Kind of key that holds the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKeyKind {
    /// The role, or `response` itself.
    RoleOrResponse,
    /// Any other key.
    Other,
}

/// Maximum number of recorded places of texts that were not emitted.
const MAX_LOST_KEYS: usize = 64;

/// Handling of the current string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringHandling {
    /// Leave it out.
    Discard,
    /// Emit it once it is more than white space and cannot become a placeholder.
    Start,
    /// Emit it as it arrives.
    Emit,
    /// Hold it back until the end of `response`.
    HoldUntilClose,
    /// Hold it back until its own end: it may be an object written as a string.
    HoldUntilEnd,
}

/// Kind of a string of `response` that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StringOutcome {
    /// The message, a part of it, or nothing.
    Text,
    /// A placeholder of the instructions.
    Placeholder,
    /// A possible object written as a string; no part of it has been emitted.
    PossibleObject(String),
}

/// Position of a text in `response`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPosition {
    /// The text is the value of `response`, which should be an object.
    WholeResponse,
    /// Under the role key.
    Role,
    /// Under `role`, the key of the speaker's name in a chat message.
    Speaker,
    /// Under a name of the message ([`names::is_message_key`]).
    Named,
    /// Anywhere else.
    OtherKey,
}

impl TextPosition {
    /// Returns the position of a text under `key`, which is not the role key.
    pub(super) fn for_key(key: &str) -> TextPosition {
        match key {
            "role" => TextPosition::Speaker,
            key if names::is_message_key(key) => TextPosition::Named,
            _ => TextPosition::OtherKey,
        }
    }
}

/// Bytes kept of a text that is not used, enough to show that it is not blank.
const MAX_FURTHER_TEXT: usize = 64;

/// Longest name of a speaker, in bytes.
const MAX_SPEAKER_NAME: usize = 64;

impl AnswerMessage {
    pub(super) fn new(limit: usize) -> AnswerMessage {
        AnswerMessage {
            handling: StringHandling::Discard,
            held_start: String::new(),
            trimmed_start: String::new(),
            other_text: None,
            speaker: None,
            is_whole_response: false,
            is_speaker_key: false,
            has_several_texts: false,
            is_named: false,
            is_other_named: false,
            named_text: None,
            has_more_named_texts: false,
            current_text: String::new(),
            key_place: Place::START,
            sent_key: None,
            lost_keys: Vec::new(),
            has_joined: false,
            current_list: None,
            other_list: None,
            limit,
        }
    }

    /// Returns true once text has been emitted.
    pub(super) fn is_sent(&self) -> bool {
        self.sent_key.is_some()
    }

    /// Returns the place and kind of the message's key, once text of it has been emitted.
    pub(super) fn sent_key(&self) -> Option<(Place, MessageKeyKind)> {
        self.sent_key
    }

    /// Returns the places of keys whose text was not emitted, without consecutive duplicates.
    pub(super) fn lost_keys(&self) -> &[Place] {
        &self.lost_keys
    }

    /// Forgets the lost texts, because another object begins.
    pub(super) fn forget_lost_keys(&mut self) {
        self.lost_keys.clear();
    }

    /// Records that the text under the key at `at` is not used.
    pub(super) fn mark_lost(&mut self, at: Place) {
        if self.lost_keys.last() != Some(&at) && self.lost_keys.len() < MAX_LOST_KEYS {
            self.lost_keys.push(at);
        }
    }

    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        let text_len = |text: &Option<(String, Place)>| text.as_ref().map_or(0, |(text, _)| text.len());
        self.held_start.len()
            + self.current_text.len()
            + text_len(&self.other_text)
            + text_len(&self.speaker)
            + text_len(&self.named_text)
    }

    /// Like [`AnswerMessage::begin`], for a string in the list whose key is at `list_place`, if any.
    pub(super) fn begin_in_list(&mut self, list_place: Option<Place>, position: TextPosition, at: Place) {
        self.begin(position, at);
        self.current_list = list_place;
    }

    /// Returns true if the current text continues the held-back one: both are in one list.
    fn continues_other(&self) -> bool {
        self.current_list.is_some()
            && self.current_list == self.other_list
            && !self.has_several_texts
            && self.sent_key.is_none()
    }

    /// Begins a string of `response`; its key is at `at`.
    pub(super) fn begin(&mut self, position: TextPosition, at: Place) {
        self.held_start.clear();
        self.trimmed_start.clear();
        self.current_text.clear();
        self.current_list = None;
        self.is_whole_response = position == TextPosition::WholeResponse;
        self.is_speaker_key = position == TextPosition::Speaker;
        self.is_named = position == TextPosition::Named;
        self.key_place = at;
        self.handling = match position {
            TextPosition::Speaker | TextPosition::Named | TextPosition::OtherKey => {
                StringHandling::HoldUntilClose
            }
            _ if self.is_sent() => StringHandling::Discard,
            TextPosition::WholeResponse | TextPosition::Role => StringHandling::Start,
        };
    }

    /// Pushes text of the string.
    #[inline]
    pub(super) fn push(&mut self, text: &str, out: &mut dyn IntentSink) {
        match self.handling {
            StringHandling::Emit => out.emit_intent(Intent::FinalText(text)),
            StringHandling::Start => self.push_start(text, out),
            StringHandling::HoldUntilEnd => self.push_possible_object(text, out),
            StringHandling::HoldUntilClose => self.hold_text(text, out),
            StringHandling::Discard if text.trim().is_empty() => {}
            StringHandling::Discard => self.mark_lost(self.key_place),
        }
    }

    /// Reads the beginning of the message, one character at a time until its handling is decided.
    fn push_start(&mut self, text: &str, out: &mut dyn IntentSink) {
        for (at, c) in text.char_indices() {
            if c == '{' && self.is_whole_response && self.trimmed_start.is_empty() {
                self.handling = StringHandling::HoldUntilEnd;
                return self.push_possible_object(&text[at..], out);
            }
            self.held_start.push(c);
            let must_wait = match c.is_whitespace() {
                true if self.trimmed_start.is_empty() || is_placeholder(&self.trimmed_start) => true,
                // White space inside a possible placeholder.
                true => {
                    self.trimmed_start.push(' ');
                    may_become_placeholder(&self.trimmed_start)
                }
                false => {
                    let len_before = self.held_start.len() - c.len_utf8();
                    let is_after_blank = self.held_start[..len_before].ends_with(char::is_whitespace);
                    // White space after a complete placeholder is not in `trimmed_start`: another word shows
                    // that the text is not a placeholder.
                    let begins_word = is_after_blank
                        && !self.trimmed_start.is_empty()
                        && !self.trimmed_start.ends_with(' ');
                    self.trimmed_start.push(c);
                    !begins_word && may_become_placeholder(&self.trimmed_start)
                }
            };
            if !must_wait || self.held_start.len() > self.limit {
                self.sent_key = Some((self.key_place, MessageKeyKind::RoleOrResponse));
                self.handling = StringHandling::Emit;
                out.emit_intent(Intent::FinalText(&self.held_start));
                self.held_start.clear();
                let remaining_text = &text[at + c.len_utf8()..];
                if !remaining_text.is_empty() {
                    out.emit_intent(Intent::FinalText(remaining_text));
                }
                return;
            }
        }
    }

    /// Buffers more of a possible object.
    fn push_possible_object(&mut self, text: &str, out: &mut dyn IntentSink) {
        let held_bytes = self.held_start.len() + self.current_text.len();
        let held_len = text.floor_char_boundary(self.limit.saturating_sub(held_bytes));
        self.current_text.push_str(&text[..held_len]);
        if held_len < text.len() {
            // Too long to hold back: it is emitted as the message.
            self.send_held(out);
            self.handling = StringHandling::Emit;
            out.emit_intent(Intent::FinalText(&text[held_len..]));
        }
    }

    /// Emits the held-back beginning of the current string as the beginning of the message.
    fn send_held(&mut self, out: &mut dyn IntentSink) {
        self.sent_key = Some((self.key_place, MessageKeyKind::RoleOrResponse));
        for held_text in [&mut self.held_start, &mut self.current_text] {
            if !held_text.is_empty() {
                out.emit_intent(Intent::FinalText(held_text));
            }
            held_text.clear();
        }
    }

    /// Emits a complete text as the message.
    pub(super) fn send(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.sent_key = Some((self.key_place, MessageKeyKind::RoleOrResponse));
        out.emit_intent(Intent::FinalText(text));
    }

    /// Emits the joined texts of the value at `at` as the message.
    pub(super) fn send_joined(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) {
        (self.sent_key, self.has_joined) = (Some((at, MessageKeyKind::RoleOrResponse)), true);
        self.lost_keys.clear();
        out.emit_intent(Intent::FinalText(text));
    }

    /// Returns true if the message is all texts of one value.
    pub(super) fn is_joined(&self) -> bool {
        self.has_joined
    }

    /// Holds back more of the current string. Of a string that cannot be the message, it holds back only
    /// enough to show that the string is not blank.
    fn hold_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        let text = if self.current_text.is_empty() { text.trim_start() } else { text };
        let is_separate = self.other_text.is_some() && !self.continues_other();
        let is_named_text = self.is_named && self.named_text.is_none() && !self.is_sent();
        if !is_named_text && (self.is_sent() || self.has_several_texts || is_separate) {
            for c in text.chars() {
                if self.current_text.len() >= MAX_FURTHER_TEXT {
                    break;
                }
                self.current_text.push(c);
            }
            return;
        }
        self.current_text.push_str(text);
        if self.current_text.len() > self.limit {
            let message = "a text under a key other than the role is longer than `limits.hold`";
            let report =
                FindingReport::new(rules::LIMIT_EXCEEDED, self.key_place, self.key_place.offset, message);
            out.report(report.with_repair("taken as the message without waiting for the rest of `response`"));
            self.sent_key = Some((self.key_place, MessageKeyKind::Other));
            self.handling = StringHandling::Emit;
            out.emit_intent(Intent::FinalText(&self.current_text));
            self.current_text.clear();
        }
    }

    /// Ends the string, and decides which part of the message it may be.
    pub(super) fn end(&mut self, out: &mut dyn IntentSink) -> StringOutcome {
        let handling = std::mem::replace(&mut self.handling, StringHandling::Discard);
        let text = match handling {
            StringHandling::Start => std::mem::take(&mut self.trimmed_start),
            StringHandling::HoldUntilClose => std::mem::take(&mut self.current_text),
            StringHandling::HoldUntilEnd => {
                self.held_start.push_str(&self.current_text);
                self.current_text.clear();
                return StringOutcome::PossibleObject(std::mem::take(&mut self.held_start));
            }
            StringHandling::Emit | StringHandling::Discard => return StringOutcome::Text,
        };
        let is_placeholder_text = is_placeholder(&text);
        if handling == StringHandling::Start && !is_placeholder_text && !text.is_empty() {
            // The possible placeholder turned out to be ordinary text.
            self.sent_key = Some((self.key_place, MessageKeyKind::RoleOrResponse));
            out.emit_intent(Intent::FinalText(&self.held_start));
        }
        self.held_start.clear();
        if handling == StringHandling::HoldUntilClose && !is_placeholder_text && !text.trim().is_empty() {
            let is_same_speaker =
                self.speaker.as_ref().is_none_or(|(name, _)| self.current_list.is_some() && *name == text);
            if self.is_speaker_key && is_same_speaker && text.len() <= MAX_SPEAKER_NAME {
                self.speaker.get_or_insert((text, self.key_place));
            } else if self.is_speaker_key && self.current_list.is_some() && self.speaker.is_some() {
                // Different speakers make the list a conversation, which has no single message.
                self.has_several_texts = true;
                self.mark_lost(self.key_place);
            } else if self.continues_other()
                && let Some((joined_text, _)) = &mut self.other_text
            {
                self.has_joined = true;
                joined_text.push_str("\n\n");
                joined_text.push_str(&text);
            } else if self.other_text.is_some() || self.has_several_texts || self.is_sent() {
                self.has_several_texts |= self.other_text.is_some();
                self.has_more_named_texts |= self.is_named && self.named_text.is_some();
                if self.is_named && self.named_text.is_none() && !self.is_sent() {
                    self.named_text = Some((text, self.key_place));
                } else {
                    self.mark_lost(self.key_place);
                }
            } else {
                self.other_text = Some((text, self.key_place));
                (self.other_list, self.is_other_named) = (self.current_list, self.is_named);
            }
        }
        if is_placeholder_text { StringOutcome::Placeholder } else { StringOutcome::Text }
    }

    /// Closes `response`: the held-back text is the message if there is no other.
    pub(super) fn close(&mut self, out: &mut dyn IntentSink) {
        let mut has_several_texts = std::mem::take(&mut self.has_several_texts);
        let (mut other, mut speaker) = (self.other_text.take(), self.speaker.take());
        let is_other_named = std::mem::take(&mut self.is_other_named);
        let has_more_named_texts = std::mem::take(&mut self.has_more_named_texts);
        // The only text under a name of the message is preferred to texts under other keys.
        match (is_other_named, self.named_text.take(), has_more_named_texts) {
            (true, None, false) => has_several_texts = false,
            (false, Some(named_text), false) => {
                has_several_texts = false;
                if let Some((_, at)) = other.replace(named_text) {
                    self.mark_lost(at);
                }
            }
            (_, Some((_, at)), _) => self.mark_lost(at),
            _ => {}
        }
        if other.is_none() && !self.is_sent() {
            // The speaker's name is the only text.
            other = speaker.take();
        }
        if let Some((_, at)) = speaker {
            self.mark_lost(at);
        }
        let Some((text, at)) = other else { return };
        if has_several_texts || self.is_sent() {
            self.mark_lost(at);
        } else {
            self.sent_key = Some((at, MessageKeyKind::Other));
            out.emit_intent(Intent::FinalText(&text));
        }
    }
}
