//! Toolcall dialect: tool calls that a model writes as text in the notation of its family, between other text
//! and reasoning.
//!
//! `formats` is the table of notations. `head` recognizes the beginning of a call, `scan` finds its end, and
//! `read` decodes it, with `arguments`, `python`, `elements` and `bare_values` for arguments that are not
//! JSON. `parse` splits the reply. All other text is plain text, read as by `plain`.

mod arguments;
mod bare_values;
mod elements;
mod formats;
mod grammar;
mod head;
mod parse;
mod python;
mod read;
mod rules;
mod scan;

use std::sync::Arc;

use super::opening::Opening;
use super::{Dialect, DialectEntry, ExampleStyle, IntentSink, ReplyEnding};
use crate::options::{Options, Setting, SettingValues};
use crate::span::Place;
use formats::CallFormat;
use parse::ToolcallReader;

/// Entry in the table of dialects. `auto` never chooses it, because marks of calls are text in all other
/// dialects.
pub(super) const ENTRY: DialectEntry = DialectEntry {
    name: "toolcall",
    summary: "text with tool calls in the forms of model families, such as <tool_call>",
    reader: |options: &Arc<Options>| Box::new(ToolcallDialect(ToolcallReader::new(options))),
    opening: Opening::NONE,
    settings: SETTINGS,
    rules: rules::ALL,
    write: None,
    prompt: None,
    schema: None,
    grammar: Some(grammar::grammar),
    examples: ExampleStyle { languages: &[], includes_fence: false },
};

/// Options for reading calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CallOptions {
    /// Format of the calls; if `None`, the first call decides.
    format: Option<CallFormat>,
}

const SETTINGS: &[Setting] = &[Setting {
    name: "toolcall.format",
    description: "the form that calls are written in; `auto`: the form of the first call",
    default: "auto",
    accepts: SettingValues::Choice(
        &[
            "auto",
            "hermes",
            "qwen3_coder",
            "llama",
            "mistral",
            "deepseek",
            "kimi",
            "glm",
            "harmony",
            "minimax",
        ],
        |options, choice_index| {
            // Choice 0 is `auto`; the others are in the order of the formats.
            let format = choice_index.checked_sub(1).map(|index| CallFormat::ALL[index]);
            options.update_section(|call_options: &mut CallOptions| call_options.format = format);
        },
    ),
}];

/// Interface of the reader to the pipeline.
struct ToolcallDialect(ToolcallReader);

impl Dialect for ToolcallDialect {
    #[inline]
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.0.push_text(text, out);
    }

    fn push_reasoning(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.0.plain.push_reasoning(text, out);
    }

    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        self.0.finish(ending, out);
    }

    fn place(&self) -> Place {
        self.0.plain.place().end_of(self.0.held_text())
    }

    fn held_bytes(&self) -> usize {
        self.0.plain.held_bytes() + self.0.held_bytes()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}
