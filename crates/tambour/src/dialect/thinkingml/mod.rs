//! ThinkingML: `think?`, `serp?`, `thinking` with phases, `final` with a queries block.
//!
//! Only `frame` knows the parts of a reply: `think`, `serp`, `thinking`, `answer`, `block` and `late`. Each
//! part takes a token, its place and the output, keeps its own state, and returns an `Outcome` that tells the
//! frame how to continue. No part knows the frame or calls another.

mod answer;
mod block;
mod context;
mod escape;
mod frame;
mod late;
mod literals;
mod options;
mod outside;
mod prompt;
mod rules;
mod serp;
mod structure;
mod think;
mod thinking;
mod write;

use std::sync::Arc;

use frame::Frame;
pub use literals::escape_literals;

use super::opening::{Begin, Opening, When};
use super::{Dialect, Ending, Entry, Examples, MARKER, Output, echo};
use crate::event::Event;
use crate::lex::markup::Markup;
use crate::options::Options;
use crate::span::Place;

/// Entry in the table of dialects.
pub(super) const ENTRY: Entry = Entry {
    name: "thinkingml",
    summary: "strict XML replies: think?, serp?, thinking with phases, final with a queries block",
    reader: |options| {
        echo::watch(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| {
            Box::new(ThinkingMl::new(options))
        })
    },
    opening: Opening {
        tags: &[
            Begin { attributes: &["id", "title"], ..Begin::new("phase", When::InThinking) },
            Begin::new("serp", When::Before),
            Begin::new("final", When::EndsThinking),
        ],
        ..Opening::NONE
    },
    settings: options::SETTINGS,
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: None,
    examples: Examples { languages: &["xml", "html", "thinkingml"], fenced: false },
};

struct ThinkingMl {
    lexer: Markup,
    frame: Frame,
}

impl ThinkingMl {
    fn new(options: &Arc<Options>) -> ThinkingMl {
        let lexer = Markup::new(MARKER, options.limits.tag).with_reasoning();
        ThinkingMl { lexer, frame: Frame::new(options) }
    }
}

impl ThinkingMl {
    /// Reads the text of a comment outside the elements a second time, as ordinary text, if it hides the only
    /// structure of the reply.
    fn read_comment(&mut self, out: &mut dyn Output) {
        let mut runs = self.frame.take_commented();
        if let Some((last, _)) = runs.last_mut() {
            last.push_str(self.lexer.carry());
        }
        let frame = &mut self.frame;
        for (text, place) in runs {
            self.lexer.finish(&mut |token, place| frame.token(token, place, out));
            self.lexer = Markup::at(place, MARKER, frame.context().options.limits.tag).with_reasoning();
            self.lexer.push(&text, &mut |token, place| frame.token(token, place, out));
        }
    }
}

impl Dialect for ThinkingMl {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        let frame = &mut self.frame;
        self.lexer.push(text, &mut |token, place| frame.token(token, place, out));
        if !frame.reads_marks() {
            self.lexer.leave_reasoning();
        }
    }

    fn finish(&mut self, _ending: Ending, out: &mut dyn Output) {
        self.read_comment(out);
        if self.frame.is_half_tag(self.lexer.carry()) {
            let half = self.lexer.carry().to_owned();
            let place = self.lexer.drop_carry();
            self.frame.half_tag(&half, place, out);
        }
        let frame = &mut self.frame;
        self.lexer.finish(&mut |token, place| frame.token(token, place, out));
        let end = self.lexer.place();
        self.frame.finish(end, out);
    }

    fn place(&self) -> Place {
        self.lexer.place().after(self.lexer.carry())
    }

    fn held(&self) -> usize {
        self.lexer.carry().len() + self.frame.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::write_with(events, !self.frame.context().own.block_optional))
    }
}
