//! Plain replies: leading reasoning, between marks or in a separate field of the upstream, then the answer
//!
//!
//! `parse` separates reasoning from the answer, with `lead_in`, `leading_mark` and `held_reasoning` for marks
//! that are not decided at once. `answer` emits the answer, `template_marks` drops marks between messages,
//! and `late_structure` reports structures that begin too late.

mod answer;
mod held_reasoning;
mod late_structure;
mod lead_in;
mod leading_mark;
mod parse;
pub(super) mod rules;
mod template_marks;
mod write;

use super::opening::Opening;
use super::{Dialect, DialectEntry, ExampleStyle, FAILURE_MARKER, Intent, IntentSink, ReplyEnding};
use crate::event::Event;
use crate::lex::marks::ReasoningMark;
use crate::lex::markup::{MarkupLexer, MarkupToken};
use crate::lex::prose::{ProseLine, ProseTracker};
use crate::lex::scan::SignMasks;
use crate::options::{Options, Setting, SettingValues};
use crate::span::Place;
pub(super) use lead_in::is_role_word;

/// Entry in the table of dialects.
pub(super) const ENTRY: DialectEntry = DialectEntry {
    name: "plain",
    summary: "text without a contract; a leading <think> is reasoning",
    reader: |options| {
        let is_detected = false;
        Box::new(PlainReader::new(options, is_detected))
    },
    opening: Opening::NONE,
    settings: SETTINGS,
    rules: rules::RULES,
    write: Some(|events| {
        let starts_in_reasoning = false;
        write::write(events, starts_in_reasoning)
    }),
    prompt: None,
    schema: None,
    grammar: None,
    examples: ExampleStyle { languages: &[], includes_fence: false },
};

/// Options for reading plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PlainOptions {
    /// Set if the reply gets no thinking block.
    skips_thinking: bool,
    /// Location of the reasoning.
    reasoning: ReasoningMode,
}

/// Location of the reasoning in plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReasoningMode {
    /// In a leading reasoning mark, if there is one.
    #[default]
    Auto,
    /// At the start of the reply, without an opening mark.
    Open,
    /// Nowhere: marks are text.
    None,
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "plain.thinking",
        description: "one phase with the fallback title, so that the required events exist, or none (R-24)",
        default: "block",
        accepts: SettingValues::Choice(&["block", "skip"], |options, choice_index| {
            options.update_section(|plain: &mut PlainOptions| plain.skips_thinking = choice_index == 1);
        }),
    },
    Setting {
        name: "plain.reasoning",
        description: "reasoning is in a leading mark, the reply starts inside it, or marks are text (X-012)",
        default: "auto",
        accepts: SettingValues::Choice(&["auto", "open", "none"], |options, choice_index| {
            let reasoning = [ReasoningMode::Auto, ReasoningMode::Open, ReasoningMode::None][choice_index];
            options.update_section(|plain: &mut PlainOptions| plain.reasoning = reasoning);
        }),
    },
];

/// Creates a reader for a reply that `auto` took for plain: a structure that begins later is reported.
pub(super) fn detected_reader(options: &Options) -> Box<dyn Dialect> {
    let is_detected = true;
    Box::new(PlainReader::new(options, is_detected))
}

/// Reader of plain replies, also for dialects whose replies contain plain text.
pub(super) struct PlainReader {
    lexer: MarkupLexer,
    parser: parse::PlainParser,
    /// Set if replies start inside reasoning.
    starts_in_reasoning: bool,
    /// Set if the stream gets no thinking block, until [`Intent::SkipThinking`] has been emitted.
    skips_thinking: bool,
}

impl PlainReader {
    /// Creates a reader. `is_detected` is set if `auto` took the reply for plain: a structure that begins
    /// later is then reported.
    pub(super) fn new(options: &Options, is_detected: bool) -> PlainReader {
        let section: PlainOptions = options.section();
        let reads_marks = section.reasoning != ReasoningMode::None;
        PlainReader {
            lexer: new_lexer(Place::START, options.limits.tag, reads_marks),
            parser: parse::PlainParser::new(options, is_detected),
            starts_in_reasoning: section.reasoning == ReasoningMode::Open,
            skips_thinking: section.skips_thinking,
        }
    }
}

/// Methods for dialects that read their own parts of a reply, and pass the surrounding text here.
impl PlainReader {
    /// Returns whether a mark of another dialect counts at the current place: not in reasoning, nor in code
    /// as far as it is known.
    pub(super) fn admits_mark(&self) -> bool {
        self.parser.admits_mark()
    }

    /// Returns whether only white space and finished reasoning were read.
    pub(super) fn is_blank(&self) -> bool {
        self.lexer.carry().is_empty() && self.parser.is_blank()
    }

    /// Returns whether the answer has begun.
    pub(super) fn has_answer(&self) -> bool {
        self.parser.has_answer()
    }

    /// Skips a part of the reply that the other dialect reads. No markup spans it.
    pub(super) fn skip(&mut self, raw: &str, out: &mut dyn IntentSink) {
        self.emit_skip_thinking(out);
        let parser = &mut self.parser;
        self.lexer.finish(&mut |token, place| parser.push_token(token, place, out));
        parser.interrupt(out);
        if let Some(prose) = parser.answer().prose() {
            prose.skip_value();
        }
        self.lexer.skip_text(raw);
    }

    /// Skips marks that begin the next message of the answer. The message begins a new paragraph.
    pub(super) fn begin_message(&mut self, raw: &str, out: &mut dyn IntentSink) {
        self.skip(raw, out);
        self.parser.begin_message(self.lexer.place(), out);
    }

    /// Handles a reasoning mark that the other dialect writes in its own notation.
    pub(super) fn push_mark(&mut self, raw: &str, mark: ReasoningMark, out: &mut dyn IntentSink) {
        self.insert_token(MarkupToken::Reasoning(raw, mark), raw, out);
    }

    /// Reads text in which nothing is a mark.
    pub(super) fn push_verbatim(&mut self, raw: &str, out: &mut dyn IntentSink) {
        self.parser.track_marks(raw, self.lexer.place());
        self.insert_token(MarkupToken::Text(raw), raw, out);
    }

    /// Reads the source text of a tool call that is shown as text: nothing in it is a mark or Markdown.
    pub(super) fn push_call_form(&mut self, raw: &str, out: &mut dyn IntentSink) {
        self.emit_skip_thinking(out);
        let parser = &mut self.parser;
        self.lexer.finish(&mut |token, place| parser.push_token(token, place, out));
        parser.track_marks(raw, self.lexer.place());
        parser.push_call_form(raw, self.lexer.place(), out);
        self.lexer.skip_text(raw);
    }

    /// Handles `token` in place of its source text `raw`, which the lexer skips.
    fn insert_token(&mut self, token: MarkupToken<'_>, raw: &str, out: &mut dyn IntentSink) {
        self.emit_skip_thinking(out);
        let parser = &mut self.parser;
        self.lexer.finish(&mut |token, place| parser.push_token(token, place, out));
        parser.push_token(token, self.lexer.place(), out);
        self.lexer.skip_text(raw);
    }

    /// Tracks the prose of the answer, for [`PlainReader::current_line`] and [`PlainReader::watch_skipped`].
    pub(super) fn with_prose(mut self) -> PlainReader {
        self.parser.answer().track_prose();
        self
    }

    /// Returns the line at the current place.
    pub(super) fn current_line(&mut self) -> ProseLine {
        self.parser.answer().current_line()
    }

    /// Watches the part that was skipped last. Returns the `watch_id` for [`PlainReader::is_text`].
    pub(super) fn watch_skipped(&mut self) -> usize {
        self.parser.answer().prose().map_or(0, ProseTracker::watch)
    }

    /// Returns whether a watched part skipped at `offset` has turned out to be text: in a code span, in
    /// reasoning shown as text, or in reasoning without a beginning.
    pub(super) fn is_text(&mut self, offset: usize, watch_id: usize) -> bool {
        is_skipped_text(&mut self.parser, offset, watch_id)
    }

    /// Ends the reply. `acting_parts` lists the skipped parts that act unless they turn out to be text, each
    /// with the arguments of [`PlainReader::is_text`]: offset and `watch_id`. If one of them acts, the reply
    /// needs no answer.
    pub(super) fn finish_with(
        &mut self,
        ending: ReplyEnding,
        acting_parts: &[(usize, usize)],
        out: &mut dyn IntentSink,
    ) {
        self.emit_skip_thinking(out);
        let parser = &mut self.parser;
        if parser.is_partial_close(self.lexer.carry()) {
            // The reply ends inside its reasoning, with a part of the closing mark.
            self.lexer.drop_carry();
        }
        self.lexer.finish(&mut |token, place| parser.push_token(token, place, out));
        let mut needs_no_answer = |parser: &mut parse::PlainParser| {
            ending.is_truncated
                || acting_parts.iter().any(|(offset, watch_id)| !is_skipped_text(parser, *offset, *watch_id))
        };
        parser.finish(self.lexer.place(), &mut needs_no_answer, out);
    }

    /// Reads text in which tokens may begin. Not inlined, to keep the fast path for most text short.
    #[inline(never)]
    fn push_tokens(&mut self, text: &str, out: &mut dyn IntentSink) {
        let parser = &mut self.parser;
        self.lexer.push(text, &mut |token, place| parser.push_token(token, place, out));
    }

    #[inline]
    fn emit_skip_thinking(&mut self, out: &mut dyn IntentSink) {
        if std::mem::take(&mut self.skips_thinking) {
            out.emit_intent(Intent::SkipThinking);
        }
    }
}

/// Returns whether a skipped part is text, like [`PlainReader::is_text`].
fn is_skipped_text(parser: &mut parse::PlainParser, offset: usize, watch_id: usize) -> bool {
    parser.is_before_unopened(offset) || parser.answer().prose().is_some_and(|prose| prose.is_text(watch_id))
}

/// Creates a lexer for plain replies that starts at `place`. Comments are tracked where the answer is
/// emitted.
fn new_lexer(place: Place, tag_limit: usize, reads_marks: bool) -> MarkupLexer {
    let lexer = MarkupLexer::from_place(place, FAILURE_MARKER, tag_limit).without_comments();
    if reads_marks { lexer.with_reasoning() } else { lexer }
}

impl Dialect for PlainReader {
    #[inline]
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.emit_skip_thinking(out);
        let parser = &mut self.parser;
        // Fast path past the lexer, for text in which no tag, mark or code begins. For a short text the masks
        // show this in one pass.
        if parser.can_continue() {
            match SignMasks::scan(text) {
                Some(masks) if self.lexer.is_plain_with_signs(text, masks) => {
                    parser.push_with_signs(text, Some(masks), || self.lexer.place(), out);
                    return self.lexer.skip_with_signs(text, masks);
                }
                None if self.lexer.is_plain_text(text) => {
                    parser.push_with_signs(text, None, || self.lexer.place(), out);
                    return self.lexer.skip_text(text);
                }
                _ => {}
            }
        }
        self.push_tokens(text, out);
    }

    fn push_reasoning(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.parser.push_reasoning(text, out);
    }

    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        self.finish_with(ending, &[], out);
    }

    fn place(&self) -> Place {
        self.lexer.place().end_of(self.lexer.carry())
    }

    fn held_bytes(&self) -> usize {
        self.lexer.carry().len() + self.parser.held_bytes()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::write(events, self.starts_in_reasoning))
    }
}
