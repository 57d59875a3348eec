//! Filament: a reply in tags (F-100 to F-237), or the failure marker `<<ParsingError>>` alone (J-055), with
//! which the model declares that it could not write such a reply.
//!
//! `frame` tracks the open element and routes text, according to the expected structure in `tags`.
//! `code_filter` finds tags that are in code, `content` emits text. A `block` is buffered until it closes.
//! `update` with `commands`, `tool_call`, `status`, `choice` and `elements` each read one kind of block;
//! `body` reads JSON and elements in it. Text streams; actions wait for the end of their block, calls for the
//! end of the reply.

mod block;
mod body;
mod choice;
mod code_filter;
mod commands;
mod content;
mod elements;
mod frame;
mod grammar;
mod operation_findings;
mod options;
mod prompt;
mod rules;
mod status;
mod tags;
mod tool_call;
mod update;
mod write;

use std::sync::Arc;

use super::marker::MarkerWatch;
use super::opening::{Opening, OpeningTag, TagPosition};
use super::{Dialect, DialectEntry, ExampleStyle, IntentSink, ReplyEnding, echo};
use crate::event::Event;
use crate::lex::markup::TolerantLexer;
use crate::options::Options;
use crate::span::{Place, PlaceCounter};
use frame::FilamentFrame;

/// Entry in the table of dialects.
pub(super) const ENTRY: DialectEntry = DialectEntry {
    name: "filament",
    summary: "tags for thought, content, state updates, choices and whatever else a story needs",
    reader: |options| {
        echo::refuse_echoes(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| {
            Box::new(FilamentReader::new(options))
        })
    },
    opening: Opening {
        tags: &[
            OpeningTag::new("content", TagPosition::First),
            OpeningTag::new("variable_update", TagPosition::Alone),
            OpeningTag::new("status_bar", TagPosition::Alone),
            OpeningTag {
                attributes: &["view", "fallback"],
                ..OpeningTag::new("ui_component", TagPosition::Alone)
            },
        ],
        ..Opening::NONE
    },
    settings: options::SETTINGS,
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: None,
    grammar: Some(grammar::grammar),
    examples: ExampleStyle { languages: &["filament"], includes_fence: false },
};

/// Reader of Filament replies.
struct FilamentReader {
    /// Beginning of the reply, as long as it may be the failure marker and nothing else (J-055).
    marker_prefix: Option<ReplyPrefix>,
    lexer: TolerantLexer,
    frame: FilamentFrame,
}

/// Beginning of a reply that may be the failure marker.
#[derive(Default)]
struct ReplyPrefix {
    watch: MarkerWatch,
    /// Held text.
    text: String,
}

/// Maximum length in bytes of the held beginning of a reply that may be the marker, with white space and a
/// fence around it.
const MAX_PREFIX_BYTES: usize = 1 << 10;

impl FilamentReader {
    fn new(options: &Arc<Options>) -> FilamentReader {
        let frame = FilamentFrame::new(options);
        let lexer = frame.new_lexer(Place::START);
        FilamentReader { marker_prefix: Some(ReplyPrefix::default()), lexer, frame }
    }

    /// Reads text of the reply.
    fn read_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        let FilamentReader { lexer, frame, .. } = self;
        if lexer.is_plain_text(text) && frame.try_pass(text, out) {
            return lexer.skip_text(text);
        }
        lexer.push(text, &mut |token, at| frame.read_token(token, at, out));
    }

    /// Reads text while the reply may be the marker; otherwise begins the reply with the held text.
    fn push_prefix(&mut self, text: &str, out: &mut dyn IntentSink) {
        let Some(prefix) = &mut self.marker_prefix else { return };
        let max_len = text.floor_char_boundary(MAX_PREFIX_BYTES.saturating_sub(prefix.text.len()));
        let taken_len = prefix.watch.push(&text[..max_len]);
        prefix.text.push_str(&text[..taken_len]);
        if taken_len == text.len() {
            return;
        }
        let held_text = self.marker_prefix.take().map(|prefix| prefix.text).unwrap_or_default();
        self.begin_reply(&held_text, out);
        self.read_text(&text[taken_len..], out);
    }

    /// Reads the beginning of a reply that is not the marker. A byte order mark does not count as text
    ///
    fn begin_reply(&mut self, text: &str, out: &mut dyn IntentSink) {
        let body = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let byte_order_mark = &text[..text.len() - body.len()];
        if !byte_order_mark.is_empty() {
            self.lexer = self.frame.new_lexer(Place::START.end_of(byte_order_mark));
        }
        self.read_text(body, out);
    }
}

impl Dialect for FilamentReader {
    #[inline]
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        if self.marker_prefix.is_some() {
            return self.push_prefix(text, out);
        }
        self.read_text(text, out);
    }

    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        if let Some(ReplyPrefix { watch, text }) = self.marker_prefix.take() {
            if let Some(form) = watch.form() {
                let start = text.len() - text.trim_start().len();
                let at = Place::START.end_of(&text[..start]);
                rules::MARKER_RULES.report_marker(form, at, at.offset + text.trim().len(), out);
                // The new lexer starts at the end of the reply, for [`Dialect::place`].
                let mut place_counter = PlaceCounter::new(Place::START);
                place_counter.add(&text);
                self.lexer = self.frame.new_lexer(place_counter.count_pending());
                return;
            }
            self.begin_reply(&text, out);
        }
        // `<` before a blank is text, not the beginning of a tag.
        let is_spaced =
            |partial_tag: &str| partial_tag.trim_start_matches(['<', '＜']).starts_with([' ', '\t']);
        if let Some(partial_tag) =
            self.lexer.unfinished_tag().filter(|partial_tag| !is_spaced(partial_tag)).map(str::to_owned)
        {
            let at = self.lexer.drop_carry();
            self.frame.report_partial_tag(&partial_tag, at, out);
        }
        let FilamentReader { lexer, frame, .. } = self;
        lexer.finish(&mut |token, at| frame.read_token(token, at, out));
        let end = lexer.place();
        frame.finish(end, ending.is_truncated, out);
    }

    fn place(&self) -> Place {
        let place = self.lexer.place().end_of(self.lexer.carry());
        self.marker_prefix.as_ref().map_or(place, |prefix| place.end_of(&prefix.text))
    }

    fn held_bytes(&self) -> usize {
        let prefix_len = self.marker_prefix.as_ref().map_or(0, |prefix| prefix.text.len());
        prefix_len + self.lexer.carry().len() + self.frame.held_bytes()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::write_with(events, self.frame.tags()))
    }
}
