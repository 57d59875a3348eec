//! Filament: a reply in tags (F-100 to F-237).
//!
//! `frame` tracks the open element and routes text, by the expected structure in `tags`; `prose` separates
//! tags from code, `content` emits text. A block is buffered until it closes: `update` with `patch` and
//! `commands`, `call`, `status`, `choice` and `parts` each read one kind, `body` reads JSON and elements in
//! it. Text streams; actions wait for the end of their block, calls for the end of the reply.

mod block;
mod body;
mod call;
mod choice;
mod commands;
mod content;
mod frame;
mod items;
mod options;
mod parts;
mod patch;
mod prompt;
mod prose;
mod rules;
mod status;
mod tags;
mod update;
mod write;

use std::sync::Arc;

use super::marker::Watch;
use super::opening::{Begin, Opening, When};
use super::{Dialect, Ending, Entry, Examples, Output, echo};
use crate::event::Event;
use crate::lex::markup::Tolerant;
use crate::options::Options;
use crate::span::{Counter, Place};
use frame::Frame;

/// Entry in the table of dialects.
pub(super) const ENTRY: Entry = Entry {
    name: "filament",
    summary: "tags for thought, content, state updates, choices and what else a story needs",
    reader: |options| {
        echo::watch(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| Box::new(Filament::new(options)))
    },
    opening: Opening {
        tags: &[
            Begin::new("content", When::First),
            Begin::new("variable_update", When::Alone),
            Begin::new("status_bar", When::Alone),
            Begin { attributes: &["view", "fallback"], ..Begin::new("ui_component", When::Alone) },
        ],
        ..Opening::NONE
    },
    settings: options::SETTINGS,
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: None,
    examples: Examples { languages: &["filament"], fenced: false },
};

struct Filament {
    /// Beginning of the reply, as long as it may be the failure marker and nothing else (J-055).
    lead: Option<Lead>,
    lexer: Tolerant,
    frame: Frame,
}

/// Beginning of a reply that may be the failure marker.
#[derive(Default)]
struct Lead {
    watch: Watch,
    text: String,
}

/// Longest beginning that may be the marker with its surroundings, in bytes.
const LEAD: usize = 1 << 10;

impl Filament {
    fn new(options: &Arc<Options>) -> Filament {
        let frame = Frame::new(options);
        let lexer = frame.lexer(Place::START);
        Filament { lead: Some(Lead::default()), lexer, frame }
    }

    fn read(&mut self, text: &str, out: &mut dyn Output) {
        let Filament { lexer, frame, .. } = self;
        if lexer.passes(text) && frame.flow(text, out) {
            return lexer.pass(text);
        }
        lexer.push(text, &mut |token, at| frame.read(token, at, out));
    }

    /// Reads text at the beginning, as long as it may be the marker.
    fn lead(&mut self, text: &str, out: &mut dyn Output) {
        let Some(lead) = &mut self.lead else { return };
        let most = text.floor_char_boundary(LEAD.saturating_sub(lead.text.len()));
        let taken = lead.watch.push(&text[..most]);
        lead.text.push_str(&text[..taken]);
        if taken == text.len() {
            return;
        }
        let held = self.lead.take().map(|lead| lead.text).unwrap_or_default();
        self.begin(&held, out);
        self.read(&text[taken..], out);
    }

    /// Reads the beginning of the reply. A byte order mark there is no text.
    fn begin(&mut self, text: &str, out: &mut dyn Output) {
        let body = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mark = &text[..text.len() - body.len()];
        if !mark.is_empty() {
            self.lexer = self.frame.lexer(Place::START.after(mark));
        }
        self.read(body, out);
    }
}

impl Dialect for Filament {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        if self.lead.is_some() {
            return self.lead(text, out);
        }
        self.read(text, out);
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        if let Some(Lead { watch, text }) = self.lead.take() {
            if let Some(form) = watch.form() {
                let start = text.len() - text.trim_start().len();
                let at = Place::START.after(&text[..start]);
                rules::MARKER.declare(form, at, at.offset + text.trim().len(), out);
                let mut place = Counter::new(Place::START);
                place.add(&text);
                self.lexer = self.frame.lexer(place.settle());
                return;
            }
            self.begin(&text, out);
        }
        let spaced = |half: &str| half.trim_start_matches(['<', '＜']).starts_with([' ', '\t']);
        if let Some(half) = self.lexer.half().filter(|half| !spaced(half)).map(str::to_owned) {
            let at = self.lexer.drop_carry();
            self.frame.half_tag(&half, at, out);
        }
        let Filament { lexer, frame, .. } = self;
        lexer.finish(&mut |token, at| frame.read(token, at, out));
        let end = lexer.place();
        frame.finish(end, ending.cut, out);
    }

    fn place(&self) -> Place {
        let place = self.lexer.place().after(self.lexer.carry());
        self.lead.as_ref().map_or(place, |lead| place.after(&lead.text))
    }

    fn held(&self) -> usize {
        let lead = self.lead.as_ref().map_or(0, |lead| lead.text.len());
        lead + self.lexer.carry().len() + self.frame.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::write_with(events, self.frame.tags()))
    }
}
