//! Toolcall dialect: tool calls that a model writes as text in the notation of its family, amid text and
//! reasoning.
//!
//! `formats` is the table of notations. `head` recognizes the beginning of a call, `scan` finds its end, and
//! `read` decodes it, with `arguments`, `python`, `invokes` and `typed` for arguments that are not JSON.
//! `parse` splits the reply. All other text is plain text, read as by `plain`.

mod arguments;
mod formats;
mod head;
mod invokes;
mod options;
mod parse;
mod python;
mod read;
mod rules;
mod scan;
mod typed;

use super::opening::Opening;
use super::{Dialect, Ending, Entry, Examples, Output};
use crate::options::Options;
use crate::span::Place;
use parse::Reader;
use std::sync::Arc;

/// Entry in the table of dialects. `auto` never chooses it, because marks of calls are text in all other
/// dialects.
pub(super) const ENTRY: Entry = Entry {
    name: "toolcall",
    summary: "text with tool calls in the forms of model families, such as <tool_call>",
    reader: |options: &Arc<Options>| Box::new(ToolCall(Reader::new(options))),
    opening: Opening::NONE,
    settings: options::SETTINGS,
    rules: rules::ALL,
    write: None,
    prompt: None,
    schema: None,
    examples: Examples { languages: &[], fenced: false },
};

struct ToolCall(Reader);

impl Dialect for ToolCall {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        self.0.text(text, out);
    }

    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        self.0.plain.reasoning(text, out);
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        self.0.finish(ending, out);
    }

    fn place(&self) -> Place {
        self.0.plain.place().after(self.0.raw())
    }

    fn held(&self) -> usize {
        self.0.plain.held() + self.0.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}
