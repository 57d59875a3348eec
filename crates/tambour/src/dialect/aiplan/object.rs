//! The current object: its strings are streamed when allowed, its places and mode are tracked.

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

/// State of the object being read.
pub(super) struct PlanObject {
    pub(super) frame: Frame,
    pub(super) places: Places,
    /// Places of an object nested in it, which may be the plan.
    pub(super) inner: Places,
    /// Findings on its JSON.
    pub(super) reports: Vec<Report>,
    /// Set if a number in it was rounded.
    pub(super) rounded: bool,
    /// Set if it has a field of plans, or an object in it has several.
    pub(super) likely: bool,
    /// Set if another object is the plan, so that nothing of this one is used.
    pub(super) idle: bool,
    /// Set if prose precedes it, so that a single plan field does not make it a plan.
    beside_prose: bool,
    /// Its thought, held back until it looks like a plan.
    early: String,
    /// Destination of the current string.
    target: Target,
    mode: String,
    /// True if the mode allows an answer; `None` until the mode is known.
    pub(super) allowed: Option<bool>,
    /// Set once a thought has been read, or can no longer follow.
    pub(super) thought: bool,
    /// The answer, while it is held back.
    pub(super) held: String,
    pub(super) sent: bool,
    /// Set if nothing of an answer had been emitted at the last key of the answer.
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

/// Bytes of a mode that are buffered.
const MODE: usize = 64;

impl PlanObject {
    /// Creates the state of an object that begins at `start`; if `idle`, nothing of it is used.
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

    /// Follows the JSON of the object and emits text that may be emitted.
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
                // One byte more than is kept shows that the word is too long.
                Target::Mode => {
                    for c in text.chars() {
                        if self.mode.len() <= MODE {
                            self.mode.push(c);
                        }
                    }
                }
                Target::Answer if self.sent && self.held.is_empty() => out.intent(Intent::FinalText(text)),
                // The object is too large, so the answer will never be emitted.
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
                // A key in an object under a key, or in a list.
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
                            // A reply has one phase, even if its first plan turns out to be none.
                            out.intent(Intent::PhaseText("\n\n"));
                        }
                        Target::Thought
                    }
                    Some("response_mode") => {
                        self.mode.clear();
                        Target::Mode
                    }
                    Some("direct_response") => {
                        // The last of several answers counts; emitted text is not retracted.
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

    /// Handles a top-level key. The unused value of an earlier key with this name is dropped.
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

    /// Returns true if the object contains a likely plan and is none itself.
    pub(super) fn is_wrapped(&self) -> bool {
        self.likely && self.places.fields() == 0
    }

    /// Buffers the answer of a valid plan that was converted to text.
    pub(super) fn answer_as_text(&mut self, checked: &Checked) {
        if checked.valid && checked.from_value && !self.sent {
            self.held.clear();
            self.hold(checked.plan["direct_response"].as_str().unwrap_or_default());
        }
    }

    /// Emits the thought so far, for an object that is a plan after all.
    pub(super) fn tell_early(&mut self, (thought, answered): (&mut bool, bool), out: &mut dyn Output) {
        let early = std::mem::take(&mut self.early);
        if !early.is_empty() {
            self.tell(&early, (thought, answered), out);
        }
    }

    /// Emits text of the thought. Once an answer was emitted, thinking is over and the text is an aside.
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

    /// Buffers text of the answer; leading white space is dropped.
    pub(super) fn hold(&mut self, text: &str) {
        let text = if self.held.is_empty() && !self.sent { text.trim_start_matches(is_space) } else { text };
        self.held.push_str(text);
    }

    /// Marks the object as too large: it is no plan, and a held-back answer is dropped.
    pub(super) fn over(&mut self) {
        if !std::mem::replace(&mut self.too_large, true) {
            self.held = String::new();
            if !self.sent {
                self.allowed = Some(false);
            }
        }
    }

    /// Begins a value at this nesting depth, which may be an item of the list of calls.
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

    /// Emits the buffered answer, if allowed.
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
