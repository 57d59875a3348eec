//! JSONSeq dialect: one JSON object per line, each an event (J-050 to J-053).
//!
//! `parse` finds the objects; `line` has the state of one object while it arrives, and of the array that may
//! hold it. `event` converts an object to an event, `surroundings` tracks the text between objects, `order`
//! puts events in order and numbers phases. `reports` holds findings back until the first event. `write`
//! writes a reply in this dialect, `prompt` the instructions for it.

mod event;
mod grammar;
mod line;
mod order;
mod parse;
mod prompt;
mod reports;
mod rules;
mod surroundings;
mod write;

use std::sync::Arc;

use super::opening::{NeededKey, Opening, ValueShape, WrappedList};
use super::structure_reader::{ReplyShape, StructureReader};
use super::{Dialect, DialectEntry, ExampleStyle, Intent, IntentSink, ReplyEnding, echo, marker};
use crate::event::{EventKind, parse_kind};
use crate::finding::FindingReport;
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::{Extent, Place};

/// Entry in the table of dialects.
pub(super) const ENTRY: DialectEntry = DialectEntry {
    name: "jsonseq",
    summary: "JSON Lines, each an event of the JSONSeq protocol",
    reader: |options| {
        echo::refuse_echoes(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| {
            Box::new(JsonseqDialect::new(options))
        })
    },
    opening: Opening {
        keys: &[NeededKey {
            text_test: Some(is_contract_event),
            ..NeededKey::new(&["event", "type"], &[ValueShape::Text])
        }],
        may_be_listed: true,
        wrapped_list: Some(WrappedList {
            names: &["events"],
            item_test: may_be_event,
            reply_test: is_complete_reply,
        }),
        ..Opening::NONE
    },
    settings: &[],
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: Some(write::schema),
    grammar: Some(grammar::grammar),
    examples: ExampleStyle { languages: &["jsonl", "json", "jsonseq"], includes_fence: false },
};

struct JsonseqDialect {
    reader: StructureReader<parse::JsonseqReader>,
}

impl JsonseqDialect {
    fn new(options: &Arc<Options>) -> JsonseqDialect {
        JsonseqDialect { reader: StructureReader::new(parse::JsonseqReader::new(options), &options.limits) }
    }
}

impl Dialect for JsonseqDialect {
    #[inline]
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.reader.push_text(text, out);
    }

    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        match self.reader.finish(out) {
            ReplyShape::Plain => self.report_no_events(out),
            ReplyShape::Text(_) if self.reader.structure.is_truncated => {
                let Extent { place, end } = self.reader.extent();
                let message = "the reply ends before its first event has a name";
                out.report(
                    FindingReport::new(rules::LINE_CUT, place, end, message).with_repair("fallback text"),
                );
                out.fall_back(if ending.is_truncated { "truncated" } else { "answer_missing" });
            }
            ReplyShape::Text(text) if !is_blank(&text) => self.emit_as_answer(&text, out),
            ReplyShape::Text(_) | ReplyShape::Structure => {
                let end = self.reader.place();
                self.reader.structure.finish(end, out);
            }
        }
    }

    fn place(&self) -> Place {
        self.reader.place()
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}

impl JsonseqDialect {
    /// Emits a reply without any event as the answer, or handles the failure marker.
    fn emit_as_answer(&self, reply: &str, out: &mut dyn IntentSink) {
        if let Some(form) = marker::marker_form(reply) {
            let Extent { place, end } = self.reader.extent();
            return rules::MARKER_RULES.report_marker(form, place, end, out);
        }
        out.emit_intent(Intent::FinalText(reply));
        self.report_no_events(out);
    }

    /// Reports a reply without any event, after its text has been emitted.
    fn report_no_events(&self, out: &mut dyn IntentSink) {
        let (Extent { place, end }, message) = (self.reader.extent(), "the reply holds no event");
        let report = FindingReport::new(rules::EVENTS_MISSING, place, end, message);
        out.report(report.with_repair("its text is the answer"));
        out.fall_back("events_missing");
    }
}

/// Returns true for the name of a contract event (J-050, R-76). Other names give no evidence.
fn is_contract_event(name: &str) -> bool {
    parse_kind(name) == Some(EventKind::Contract)
}

/// Returns true for a name that an event in a list may have.
fn may_be_event(name: &str) -> bool {
    matches!(parse_kind(name), Some(EventKind::Contract | EventKind::System))
}

/// Recognizes a complete reply by its event names: it has an answer and nothing follows the end.
fn is_complete_reply(names: &[&str]) -> bool {
    let last = names.iter().rfind(|name| is_contract_event(name));
    names.contains(&"final_delta")
        && last.is_some_and(|name| matches!(*name, "final_delta" | "serp_queries" | "final_end"))
}
