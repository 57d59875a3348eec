//! ThinkingML: a reply of the elements `think` (a draft) and `serp` (a summary), both optional, `thinking`
//! with phases, and `final`, the answer, with a block of search queries at its end.
//!
//! Only `frame` knows the parts of a reply: `draft`, `serp`, `thinking`, `answer`, `block` and
//! `late_element`. Each part takes a token, its place and the output, keeps its own state, and returns an
//! outcome, such as `ThinkingOutcome`, that tells the frame how to continue. No part knows the frame or calls
//! another.

mod answer;
mod block;
mod context;
mod draft;
mod escape;
mod frame;
mod grammar;
mod late_element;
mod prompt;
mod rules;
mod serp;
mod structure;
mod thinking;
mod top_level_text;
mod write;

use std::sync::Arc;

use super::opening::{Opening, OpeningTag, TagPosition};
use super::{Dialect, DialectEntry, ExampleStyle, FAILURE_MARKER, IntentSink, ReplyEnding, echo};
use crate::event::Event;
use crate::lex::markup::MarkupLexer;
use crate::options::{Options, Setting, SettingValues};
use crate::span::Place;
use frame::ReplyFrame;

pub(crate) use escape::escape_literals;

/// Entry in the table of dialects.
pub(super) const ENTRY: DialectEntry = DialectEntry {
    name: "thinkingml",
    summary: "strict XML replies: think?, serp?, thinking with phases, final with a queries block",
    reader: |options| {
        echo::refuse_echoes(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| {
            Box::new(ThinkingMlReader::new(options))
        })
    },
    opening: Opening {
        tags: &[
            OpeningTag { attributes: &["id", "title"], ..OpeningTag::new("phase", TagPosition::InThinking) },
            OpeningTag::new("serp", TagPosition::Before),
            OpeningTag::new("final", TagPosition::EndsThinking),
        ],
        ..Opening::NONE
    },
    settings: SETTINGS,
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: None,
    grammar: Some(grammar::grammar),
    examples: ExampleStyle { languages: &["xml", "html", "thinkingml"], includes_fence: false },
};

/// Options for reading ThinkingML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ThinkingMlOptions {
    /// Set if the queries block may be absent (T-040).
    is_block_optional: bool,
    /// Set if `<final>` alone on its line ends an unclosed phase.
    closes_at_lone_final: bool,
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "thinkingml.serp_block",
        description: "whether the queries block is required (T-040)",
        default: "required",
        accepts: SettingValues::Choice(&["required", "optional"], |options, choice| {
            options.update_section(|section: &mut ThinkingMlOptions| {
                section.is_block_optional = choice == 1;
            });
        }),
    },
    Setting {
        name: "thinkingml.lone_final",
        description: "`<final>` alone on its line in an unclosed phase is text, or ends it (R-06)",
        default: "literal",
        accepts: SettingValues::Choice(&["literal", "close"], |options, choice| {
            options.update_section(|section: &mut ThinkingMlOptions| {
                section.closes_at_lone_final = choice == 1;
            });
        }),
    },
];

/// Reader of a ThinkingML reply: the lexer, and the frame that takes its tokens.
struct ThinkingMlReader {
    lexer: MarkupLexer,
    frame: ReplyFrame,
}

impl ThinkingMlReader {
    fn new(options: &Arc<Options>) -> ThinkingMlReader {
        let lexer = MarkupLexer::new(FAILURE_MARKER, options.limits.tag).with_reasoning();
        ThinkingMlReader { lexer, frame: ReplyFrame::new(options) }
    }
}

impl ThinkingMlReader {
    /// Reads the text of a comment outside the elements a second time, as ordinary text, if the comment hides
    /// an element and the reply has no `<final>` outside of it.
    fn reread_comment(&mut self, out: &mut dyn IntentSink) {
        let mut runs = self.frame.take_commented_text();
        if let Some((last, _)) = runs.last_mut() {
            // The unfinished token belongs to the comment too.
            last.push_str(self.lexer.carry());
        }
        let frame = &mut self.frame;
        // A new lexer for each run, since the runs are not contiguous.
        for (text, place) in runs {
            self.lexer.finish(&mut |token, place| frame.push_token(token, place, out));
            self.lexer = MarkupLexer::from_place(place, FAILURE_MARKER, frame.context().options.limits.tag)
                .with_reasoning();
            self.lexer.push(&text, &mut |token, place| frame.push_token(token, place, out));
        }
    }
}

impl Dialect for ThinkingMlReader {
    #[inline]
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        let frame = &mut self.frame;
        self.lexer.push(text, &mut |token, place| frame.push_token(token, place, out));
        if !frame.accepts_marks() {
            self.lexer.leave_reasoning();
        }
    }

    fn finish(&mut self, _ending: ReplyEnding, out: &mut dyn IntentSink) {
        self.reread_comment(out);
        if self.frame.is_half_tag(self.lexer.carry()) {
            let partial_tag = self.lexer.carry().to_owned();
            let place = self.lexer.drop_carry();
            self.frame.report_partial_tag(&partial_tag, place, out);
        }
        let frame = &mut self.frame;
        self.lexer.finish(&mut |token, place| frame.push_token(token, place, out));
        let end = self.lexer.place();
        self.frame.finish(end, out);
    }

    fn place(&self) -> Place {
        self.lexer.place().end_of(self.lexer.carry())
    }

    fn held_bytes(&self) -> usize {
        self.lexer.carry().len() + self.frame.held_bytes()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::write_with(events, !self.frame.context().dialect_options.is_block_optional))
    }
}
