//! The object under way: its strings stream while they may, everything else is watched.

use super::around::Frame;
use super::check::{FIELDS, Places};
use super::modes::{Text, mode};
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::Report;
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::repair::json::{JsonEvent, TopKey};
use crate::repair::rules as json_rules;
use crate::span::Place;

/// The object under way.
pub(super) struct Object {
    pub(super) frame: Frame,
    pub(super) places: Places,
    /// Repairs of its JSON.
    pub(super) reports: Vec<Report>,
    /// Whether one of them was more than cosmetic.
    pub(super) guessed: bool,
    /// Whether a number of it was rounded.
    pub(super) rounded: bool,
    pub(super) likely: bool,
    /// Another object is the plan: nothing of this one is used.
    pub(super) idle: bool,
    /// What is done with the string under way.
    target: Target,
    mode: String,
    /// How often the key of the calls has come.
    pub(super) lists: usize,
    /// Whether the mode is known to allow an answer; `None` before it is known.
    pub(super) allowed: Option<bool>,
    /// Whether a thought has come, or can no longer come.
    pub(super) thought: bool,
    /// The answer, while it may not be sent.
    pub(super) held: String,
    pub(super) sent: bool,
    pub(super) too_large: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Nowhere,
    Thought,
    Mode,
    Answer,
}

/// Bytes of a mode that are kept while it arrives.
const MODE: usize = 64;

/// Keys of an object whose places are kept.
const KEYS: usize = 64;

impl Object {
    /// An object that begins at `start`; nothing of an `idle` one is used.
    pub(super) fn new(frame: Frame, start: Place, idle: bool) -> Object {
        Object {
            frame,
            places: Places { start, ..Places::default() },
            reports: Vec::new(),
            guessed: false,
            rounded: false,
            likely: false,
            idle,
            target: Target::Nowhere,
            mode: String::new(),
            lists: 0,
            allowed: None,
            thought: false,
            held: String::new(),
            sent: false,
            too_large: false,
        }
    }

    /// Follows the JSON of the object, and sends what may be sent.
    #[inline]
    pub(super) fn follow(
        &mut self,
        event: &JsonEvent<'_>,
        top: &TopKey,
        options: &Options,
        (thought, answered): (&mut bool, &mut bool),
        out: &mut dyn Output,
    ) {
        match event {
            JsonEvent::StringDelta(text) => match self.target {
                Target::Nowhere => {}
                Target::Thought => {
                    if *answered {
                        // Thinking is over in the stream.
                        return out.intent(Intent::Aside { kind: AsideKind::Thought, text });
                    }
                    if !*thought && !is_blank(text) {
                        // In a tool loop the stream has phases already.
                        out.intent(Intent::Phase("".into(), self.places.key("thought")));
                        *thought = true;
                    }
                    out.intent(Intent::PhaseText(text));
                }
                // One byte more than is kept tells that the word is longer.
                Target::Mode => {
                    for c in text.chars() {
                        if self.mode.len() <= MODE {
                            self.mode.push(c);
                        }
                    }
                }
                Target::Answer if self.sent && self.held.is_empty() => out.intent(Intent::FinalText(text)),
                Target::Answer => {
                    self.held.push_str(text);
                    self.release(options, answered, out);
                }
            },
            JsonEvent::Key { text, place, depth } => {
                if *depth == 1 {
                    self.likely |= FIELDS.contains(text);
                    self.top_key(text, || place.get());
                } else if *depth == 3
                    && top.under() == Some("tool_calls")
                    && let Some(call @ None) = self.places.calls.last_mut()
                {
                    *call = Some(place.get());
                }
            }
            JsonEvent::ObjectStart | JsonEvent::ArrayStart if top.depth() == 3 => self.item(top),
            JsonEvent::Number(_) | JsonEvent::Bool(_) | JsonEvent::Null if top.depth() == 2 => self.item(top),
            JsonEvent::StringStart => {
                if top.depth() == 2 {
                    self.item(top);
                }
                self.target = match top.get() {
                    Some("thought") => {
                        if *thought && !*answered {
                            // A reply is one phase, also when its first plan proves to be none.
                            out.intent(Intent::PhaseText("\n\n"));
                        }
                        Target::Thought
                    }
                    Some("response_mode") => {
                        self.mode.clear();
                        Target::Mode
                    }
                    Some("direct_response") => {
                        // The last of several counts; what was sent is not taken back.
                        self.held.clear();
                        if self.sent {
                            self.held.push('\n');
                        }
                        Target::Answer
                    }
                    _ => Target::Nowhere,
                };
            }
            JsonEvent::StringEnd => {
                match std::mem::replace(&mut self.target, Target::Nowhere) {
                    Target::Thought => self.thought = true,
                    Target::Mode => {
                        let found = mode(options.plan_variant, &self.mode);
                        let found = found.filter(|_| self.mode.len() <= MODE);
                        self.allowed =
                            Some(!self.too_large && found.is_some_and(|mode| mode.text != Text::None));
                    }
                    Target::Answer | Target::Nowhere => return,
                }
                self.release(options, answered, out);
            }
            _ => {}
        }
    }

    /// A key of the object itself. What an earlier one of its name has brought and was not used counts no more.
    fn top_key(&mut self, text: &str, place: impl Fn() -> Place) {
        let keys = &mut self.places.keys;
        let known = FIELDS.contains(&text);
        match keys.iter().rposition(|(key, _)| known && key == text) {
            Some(at) => keys[at].1 = place(),
            None if known || keys.len() < KEYS => keys.push((text.to_owned(), place())),
            None => {}
        }
        match text {
            "tool_calls" => self.lists += 1,
            "response_mode" => self.allowed = None,
            "direct_response" if !self.sent => self.held.clear(),
            _ => {}
        }
    }

    /// The object is too large to be kept: it is no plan, and an answer that waits is not sent.
    pub(super) fn over(&mut self, options: &Options) {
        if std::mem::replace(&mut self.too_large, true) {
            return;
        }
        let place = self.places.start;
        let message = format!(
            "the object has more than {} bytes of text or {} values",
            options.limits.value, options.limits.items
        );
        self.reports.push(Report::new(&json_rules::LIMIT_EXCEEDED, place, place.offset, message));
        self.held = String::new();
        if !self.sent {
            self.allowed = Some(false);
        }
    }

    /// An item of a list begins: a call, if the list is that of calls.
    fn item(&mut self, top: &TopKey) {
        if top.under() == Some("tool_calls") && !self.too_large {
            self.places.calls.push(None);
        }
    }

    /// Sends the answer so far, if it may be sent.
    pub(super) fn release(&mut self, options: &Options, answered: &mut bool, out: &mut dyn Output) {
        let waits = !self.thought && self.held.len() <= options.limits.hold;
        if self.allowed != Some(true) || waits || self.held.is_empty() {
            return;
        }
        if !self.sent && is_blank(&self.held) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        out.intent(Intent::FinalText(&held));
        self.sent = true;
        *answered = true;
    }
}
