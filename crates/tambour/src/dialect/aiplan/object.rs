//! The object under way: its strings stream while they may, everything else is watched.

use super::check::{Checked, Places};
use super::modes::{Text, mode};
use super::options;
use super::outside::Frame;
use super::wrapped::LEAST;
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::Report;
use crate::lex::space::{is_blank, is_space};
use crate::options::Options;
use crate::repair::json::{JsonEvent, TopKey};
use crate::span::Place;

/// The object under way.
pub(super) struct PlanObject {
    pub(super) frame: Frame,
    pub(super) places: Places,
    /// Those of an object in it, which may be the plan.
    pub(super) inner: Places,
    /// Repairs of its JSON.
    pub(super) reports: Vec<Report>,
    /// Whether a number of it was rounded.
    pub(super) rounded: bool,
    /// Whether it has a field of plans, or an object in it has some.
    pub(super) likely: bool,
    /// Another object is the plan: nothing of this one is used.
    pub(super) idle: bool,
    /// Prose stands before it: one field of plans does not make a plan of it.
    beside_prose: bool,
    /// Its thought, until that is known.
    early: String,
    /// What is done with the string under way.
    target: Target,
    mode: String,
    /// Whether the mode is known to allow an answer; `None` before it is known.
    pub(super) allowed: Option<bool>,
    /// Whether a thought has come, or can no longer come.
    pub(super) thought: bool,
    /// The answer, while it may not be sent.
    pub(super) held: String,
    pub(super) sent: bool,
    /// Whether nothing of an answer had been sent when its key came last.
    pub(super) replaced: bool,
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

impl PlanObject {
    /// An object that begins at `start`; nothing of an `idle` one is used.
    pub(super) fn new(frame: Frame, start: Place, idle: bool, beside_prose: bool) -> PlanObject {
        PlanObject {
            frame,
            places: Places::starting_at(start),
            inner: Places::starting_at(start),
            reports: Vec::new(),
            rounded: false,
            likely: false,
            idle,
            beside_prose,
            early: String::new(),
            target: Target::Nowhere,
            mode: String::new(),
            allowed: None,
            thought: false,
            held: String::new(),
            sent: false,
            replaced: true,
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
                Target::Thought if !self.likely => self.early.push_str(text),
                Target::Thought => self.tell(text, (thought, *answered), out),
                // One byte more than is kept tells that the word is longer.
                Target::Mode => {
                    for c in text.chars() {
                        if self.mode.len() <= MODE {
                            self.mode.push(c);
                        }
                    }
                }
                Target::Answer if self.sent && self.held.is_empty() => out.intent(Intent::FinalText(text)),
                // It would wait for nothing.
                Target::Answer if self.too_large && !self.sent => {}
                Target::Answer => {
                    self.hold(text);
                    self.release(options, answered, out);
                }
            },
            JsonEvent::Key { text, place, depth } => match *depth {
                1 => {
                    self.top_key(text, place.get());
                    let least = if self.beside_prose { LEAST } else { 1 };
                    self.likely |= self.places.fields() >= least;
                    if self.likely {
                        self.tell_early((thought, *answered), out);
                    }
                }
                // In an object under a key, or in a list.
                2 if !self.likely || self.inner.fields() > 0 => {
                    self.inner.key(text, place.get());
                    self.likely |= self.inner.fields() >= LEAST;
                }
                3 if top.under() == Some("tool_calls") => self.places.item_key(|| place.get()),
                4 if self.inner.in_calls() => self.inner.item_key(|| place.get()),
                _ => {}
            },
            JsonEvent::ObjectStart | JsonEvent::ArrayStart => self.item(top, top.depth() - 1),
            JsonEvent::Number(_) | JsonEvent::Bool(_) | JsonEvent::Null => self.item(top, top.depth()),
            JsonEvent::StringStart => {
                self.item(top, top.depth());
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
                        let found = mode(options::variant(options), &self.mode);
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
    fn top_key(&mut self, text: &str, place: Place) {
        self.places.key(text, place);
        match text {
            "response_mode" => self.allowed = None,
            "direct_response" => {
                self.replaced = !self.sent;
                if self.replaced {
                    self.held.clear();
                }
            }
            _ => {}
        }
    }

    /// Whether it holds what looks like a plan, and is none itself.
    pub(super) fn is_wrapped(&self) -> bool {
        self.likely && self.places.fields() == 0
    }

    /// Holds the answer of a valid plan that was no text, and was read as one.
    pub(super) fn answer_as_text(&mut self, checked: &Checked) {
        if checked.valid && checked.from_value && !self.sent {
            self.held.clear();
            self.hold(checked.plan["direct_response"].as_str().unwrap_or_default());
        }
    }

    /// The thought so far, of an object that is a plan after all.
    pub(super) fn tell_early(&mut self, (thought, answered): (&mut bool, bool), out: &mut dyn Output) {
        let early = std::mem::take(&mut self.early);
        if !early.is_empty() {
            self.tell(&early, (thought, answered), out);
        }
    }

    /// Text of the thought. When an answer was sent, thinking is over in the stream.
    pub(super) fn tell(&self, text: &str, (thought, answered): (&mut bool, bool), out: &mut dyn Output) {
        if answered {
            return out.intent(Intent::Aside { kind: AsideKind::Thought, text });
        }
        if !*thought && !is_blank(text) {
            // In a tool loop the stream has phases already.
            out.intent(Intent::Phase("".into(), self.places.member("thought").0));
            *thought = true;
        }
        out.intent(Intent::PhaseText(text));
    }

    /// Text of the answer that may not be sent yet. White space in front of it never is.
    pub(super) fn hold(&mut self, text: &str) {
        let text = if self.held.is_empty() && !self.sent { text.trim_start_matches(is_space) } else { text };
        self.held.push_str(text);
    }

    /// The object is too large to be kept: it is no plan, and an answer that waits is not sent.
    pub(super) fn over(&mut self) {
        if !std::mem::replace(&mut self.too_large, true) {
            self.held = String::new();
            if !self.sent {
                self.allowed = Some(false);
            }
        }
    }

    /// A value begins in so many brackets: it may be an item of the list of calls.
    fn item(&mut self, top: &TopKey, depth: usize) {
        if self.too_large {
            return;
        }
        if depth == 2 && top.under() == Some("tool_calls") {
            self.places.item();
        } else if depth == 3 && self.inner.in_calls() {
            self.inner.item();
        }
    }

    /// Sends the answer so far, if it may be sent.
    pub(super) fn release(&mut self, options: &Options, answered: &mut bool, out: &mut dyn Output) {
        let waits = !self.thought && self.held.len() <= options.limits.hold;
        if self.allowed != Some(true) || waits || self.held.is_empty() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        out.intent(Intent::FinalText(&held));
        self.sent = true;
        *answered = true;
    }
}
