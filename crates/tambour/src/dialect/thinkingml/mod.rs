//! ThinkingML: `think?`, `serp?`, `thinking` with phases, `final` with a queries block.
//!
//! `parse` is the frame (what stands at the top level), `think` drafts, `thinking` the inside of `<thinking>`, `answer` the inside
//! of `<final>`, `block` the queries block.

mod answer;
mod block;
mod context;
mod early_final;
mod end;
mod escape;
mod kept;
mod late;
mod loose;
mod options;
mod outside;
mod parse;
mod prompt;
mod queries;
mod rules;
mod serp;
mod structure;
mod think;
mod thinking;
mod waiting;
mod write;

use std::sync::Arc;

use super::opening::{Opening, When};
use super::{Dialect, Ending, Entry, Examples, MARKER, Output, echo};
use crate::event::Event;
use crate::lex::markup::Markup;
use crate::options::Options;
use crate::span::Place;

/// The table entry.
pub(super) const ENTRY: Entry = Entry {
    name: "thinkingml",
    summary: "strict XML replies: think?, serp?, thinking with phases, final with a queries block",
    reader: |options| {
        echo::watch(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| {
            Box::new(ThinkingMl::new(options))
        })
    },
    opening: Opening {
        tags: &[("phase", When::InThinking), ("serp", When::Alone), ("final", When::EndsThinking)],
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
    reader: parse::Reader,
}

impl ThinkingMl {
    fn new(options: &Arc<Options>) -> ThinkingMl {
        let lexer = Markup::new(MARKER, options.limits.tag).with_reasoning();
        ThinkingMl { lexer, reader: parse::Reader::new(options) }
    }
}

impl ThinkingMl {
    /// Reads once more, now as text, the comment outside that hides the only structure there is.
    fn read_comment(&mut self, out: &mut dyn Output) {
        let mut runs = self.reader.take_commented();
        if let Some((last, _)) = runs.last_mut() {
            last.push_str(self.lexer.carry());
        }
        let reader = &mut self.reader;
        for (text, place) in runs {
            self.lexer.finish(&mut |token, place| reader.token(token, place, out));
            self.lexer = Markup::at(place, MARKER, reader.context.options.limits.tag).with_reasoning();
            self.lexer.push(&text, &mut |token, place| reader.token(token, place, out));
        }
    }
}

impl Dialect for ThinkingMl {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        let reader = &mut self.reader;
        self.lexer.push(text, &mut |token, place| reader.token(token, place, out));
        if !reader.reads_marks() {
            self.lexer.leave_reasoning();
        }
    }

    fn finish(&mut self, _ending: Ending, out: &mut dyn Output) {
        self.read_comment(out);
        if self.reader.is_half_tag(self.lexer.carry()) {
            let half = self.lexer.carry().to_owned();
            let place = self.lexer.drop_carry();
            self.reader.half_tag(&half, place, out);
        }
        let reader = &mut self.reader;
        self.lexer.finish(&mut |token, place| reader.token(token, place, out));
        let end = self.lexer.place();
        self.reader.finish(end, out);
    }

    fn place(&self) -> Place {
        self.lexer.place().after(self.lexer.carry())
    }

    fn held(&self) -> usize {
        self.lexer.carry().len() + self.reader.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::write_with(events, !self.reader.context.own.block_optional))
    }
}
