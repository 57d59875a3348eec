//! JSON value dialect: one JSON value and nothing else, as services promise for the response formats
//! `json_object` and `json_schema`.
//!
//! `read` finds the value in a reply and checks it against the schema. Only leading reasoning is emitted as
//! it arrives; at the end of the reply, either a valid value is emitted as text of the answer, or an error.

mod read;
mod rules;

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use super::draft::{self, LeadingDraft};
use super::opening::Opening;
use super::{
    Dialect, DialectEntry, ExampleStyle, FormatInstructions, Intent, IntentSink, ReplyEnding, echo, marker,
};
use crate::error::Error;
use crate::event::Event;
use crate::finding::FindingReport;
use crate::grammar::{Grammar, GrammarBuilder, GrammarLimits, JsonSpace, JsonStyle, Node, leading_draft};
use crate::lex::marks::{self, MarkEffect, MarkKind, MarkMatch, OpenReasoning};
use crate::lex::space::is_blank;
use crate::options::{Options, Setting, SettingValues};
use crate::schema::Schema;
use crate::span::Place;
use crate::texts::{Language, format_count};
use read::{ValueChecker, ValueFault};

/// Entry in the table of dialects. `auto` never chooses it, because any reply may contain a JSON value.
pub(super) const ENTRY: DialectEntry = DialectEntry {
    name: "json_value",
    summary: "one JSON value, checked against a schema; a reply without a valid one is an error",
    reader: |options: &Arc<Options>| {
        echo::report_echoes(options, rules::EXAMPLE_ECHO, prompt, |options| {
            Box::new(JsonValueDialect::new(options))
        })
    },
    opening: Opening::NONE,
    settings: SETTINGS,
    rules: rules::RULES,
    write: None,
    prompt: Some(prompt),
    schema: Some(schema),
    grammar: Some(grammar),
    examples: ExampleStyle { languages: &["json"], includes_fence: false },
};

/// Requirements on the value of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
struct JsonValueOptions {
    /// Schema of the value; any object if absent.
    schema: Option<Arc<Schema>>,
}

const SETTINGS: &[Setting] = &[Setting {
    name: "json_value.schema",
    description: "the JSON Schema of the value; if absent, any object is valid",
    default: "",
    accepts: SettingValues::Json(|options, value| {
        let schema = Schema::from_checked(value.clone())
            .map_err(|error| Error::invalid(format!("json_value.schema: {error}")))?;
        options.set_json_schema(Arc::new(schema));
        Ok(())
    }),
}];

impl Options {
    /// Sets `json_value.schema` to a compiled schema.
    #[doc(hidden)]
    pub fn set_json_schema(&mut self, schema: Arc<Schema>) {
        self.update_section(|section: &mut JsonValueOptions| section.schema = Some(schema));
    }

    /// Returns the schema set as `json_value.schema`.
    #[doc(hidden)]
    #[must_use]
    pub fn json_schema(&self) -> Option<Arc<Schema>> {
        self.section::<JsonValueOptions>().schema
    }
}

/// Returns the schema of the reply.
fn schema(options: &Options) -> Value {
    options.json_schema().map_or_else(|| json!({ "type": "object" }), |schema| schema.value().clone())
}

/// Builds the grammar of the reply, from its schema.
fn grammar(options: &Options, _: &GrammarLimits) -> crate::error::Result<Grammar> {
    let mut builder = GrammarBuilder::default();
    let style = JsonStyle { space: JsonSpace::Pretty, escapes_tags: false };
    let value = builder.json(&schema(options), style)?;
    builder.leave(&["example_echo", "limit_exceeded"], "a grammar neither compares nor measures texts");
    let root = Node::sequence([leading_draft(""), value, Node::literal("\n").optional()]);
    builder.finish(ENTRY.name, root)
}

struct JsonValueDialect {
    checker: ValueChecker,
    /// Reader of leading reasoning, which is emitted as it arrives.
    draft: LeadingDraft,
    /// Set once reasoning has been emitted, so that its phase has begun.
    has_reasoning: bool,
    /// The reply after the leading reasoning, up to `limits.value` bytes.
    text: String,
    /// Set if the reply after the leading reasoning is longer than `limits.value`.
    is_too_long: bool,
    /// Place after all text so far.
    end: Place,
    /// The value, once it has been accepted.
    value: Option<String>,
}

impl JsonValueDialect {
    fn new(options: &Arc<Options>) -> JsonValueDialect {
        JsonValueDialect {
            checker: ValueChecker::new(options),
            draft: LeadingDraft::new(rules::REASONING_RULES, &options.limits),
            has_reasoning: false,
            text: String::new(),
            is_too_long: false,
            end: Place::START,
            value: None,
        }
    }

    /// Keeps text of the reply after the leading reasoning.
    fn keep_text(&mut self, text: &str) {
        if self.text.len() + text.len() <= self.checker.options.limits.value {
            self.text.push_str(text);
        } else {
            self.is_too_long = true;
        }
    }

    /// Finds and checks the value of the reply, and emits reasoning in front of it.
    fn read_value(&mut self, is_truncated: bool, out: &mut dyn IntentSink) -> Result<String, ValueFault> {
        let at = self.draft.place();
        if self.is_too_long {
            let limit = self.checker.options.limits.value;
            let message = format!("the reply is longer than `limits.value`, {}", format_count(limit, "byte"));
            return Err(ValueFault::new(rules::LIMIT_EXCEEDED, message));
        }
        let reply = std::mem::take(&mut self.text);
        if let Some(form) = marker::marker_form(reply.trim()) {
            rules::MARKER_RULES.report_marker(form, at, self.end.offset, out);
            return Err(ValueFault::missing_value("the model says that it cannot comply"));
        }
        let found = self.checker.find_value(&reply);
        let from = self.emit_reasoning(&reply[..found.span.start], at, out);
        let (reports, value) = self.checker.select_value(&reply, from, found, is_truncated);
        reports.into_iter().for_each(|report| out.report(read::relocate_report(report, at)));
        // Kept in case the model calls tools: then the text is not a failed answer.
        self.text = reply;
        value
    }

    /// Emits the reasoning in `text`, which precedes the value and begins at `place`. Returns the offset in
    /// `text` after the reasoning.
    fn emit_reasoning(&mut self, text: &str, mut place: Place, out: &mut dyn IntentSink) -> usize {
        let mut from = 0;
        for ReasoningRange { open, close, is_mismatched } in find_reasoning(text) {
            let is_opened = open.is_some();
            if let Some(open) = open {
                let before = &text[from..open.start];
                if let Some(report) = read::report_surrounding(before, 0..before.len(), "before") {
                    out.report(read::relocate_report(report, place));
                }
                place.advance(before);
                let mark = &text[open.clone()];
                draft::report_attributes(rules::THINK_ATTRIBUTES, mark, place, out);
                place.advance(mark);
                from = open.end;
            }
            let (thought, mark) = (&text[from..close.start], &text[close.clone()]);
            place.advance(thought);
            if is_mismatched {
                out.report(draft::mismatched_report(rules::THINK_MISMATCHED, mark, place));
            } else if !is_opened {
                let report = FindingReport::new(
                    rules::THINK_UNOPENED,
                    place,
                    place.offset + mark.len(),
                    "a mark closes reasoning that was not opened",
                );
                out.report(report.with_repair("the text before it is reasoning"));
            }
            draft::report_attributes(rules::THINK_ATTRIBUTES, mark, place, out);
            place.advance(mark);
            from = close.end;
            if !thought.is_empty() {
                let has_reasoning = &mut self.has_reasoning;
                ReasoningSink { out, has_reasoning }.emit_intent(Intent::Draft(thought));
            }
        }
        from
    }
}

/// Reasoning in the text before the value.
struct ReasoningRange {
    /// Opening mark; if `None`, all text since the previous reasoning is part of this one.
    open: Option<Range<usize>>,
    /// Closing mark.
    close: Range<usize>,
    /// True if the closing mark belongs to another family than the opening one.
    is_mismatched: bool,
}

/// Finds the closed reasoning in the text before the value; leading reasoning was read before.
fn find_reasoning(text: &str) -> Vec<ReasoningRange> {
    let (mut at, mut found) = (0, Vec::new());
    let mut open: Option<(OpenReasoning, Range<usize>)> = None;
    while let Some(offset) = marks::find(&text.as_bytes()[at..]) {
        at += offset;
        let MarkMatch::Mark(mark, len) = marks::match_mark(&text.as_bytes()[at..]) else {
            at += 1;
            continue;
        };
        let range = at..at + len;
        at = range.end;
        match open.as_mut().map(|(reasoning, _)| reasoning.apply(mark)) {
            None if mark.kind == MarkKind::Open => open = Some((OpenReasoning::new(mark), range)),
            None if mark.kind == MarkKind::Close => {
                found.push(ReasoningRange { open: None, close: range, is_mismatched: false });
            }
            None | Some(MarkEffect::Text) => {}
            Some(effect) => found.push(ReasoningRange {
                open: open.take().map(|(_, open_mark)| open_mark),
                close: range,
                is_mismatched: effect == MarkEffect::CloseForeign,
            }),
        }
    }
    found
}

/// Sink that passes on drafts as text of one phase, and findings. The readers of reasoning emit nothing else.
struct ReasoningSink<'a> {
    out: &'a mut dyn IntentSink,
    has_reasoning: &'a mut bool,
}

impl IntentSink for ReasoningSink<'_> {
    fn emit_intent(&mut self, intent: Intent<'_>) {
        let Intent::Draft(text) = intent else { return };
        if is_blank(text) && !*self.has_reasoning {
            return;
        }
        if !std::mem::replace(self.has_reasoning, true) {
            self.out.emit_intent(Intent::Phase("".into(), Place::START));
        }
        self.out.emit_intent(Intent::PhaseText(text));
    }

    fn emit_queries(&mut self, _: super::RawQueries<'_>, _: Place, _: usize) -> Option<usize> {
        None
    }

    fn emit_action(&mut self, _: super::ReplyAction) {}

    fn report(&mut self, report: FindingReport) {
        self.out.report(report);
    }

    fn fall_back(&mut self, _: &'static str) {}

    fn fail(&mut self, _: &'static str, _: &str) {}
}

impl Dialect for JsonValueDialect {
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.end.advance(text);
        if self.draft.is_over() {
            return self.keep_text(text);
        }
        let JsonValueDialect { draft, has_reasoning, .. } = self;
        let reply_text = draft.push(text, &mut ReasoningSink { out, has_reasoning });
        self.keep_text(&reply_text);
    }

    fn push_reasoning(&mut self, text: &str, out: &mut dyn IntentSink) {
        ReasoningSink { out, has_reasoning: &mut self.has_reasoning }.emit_intent(Intent::Draft(text));
    }

    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        if !self.draft.is_over() {
            let JsonValueDialect { draft, has_reasoning, .. } = self;
            let reply_text = draft.finish(&mut ReasoningSink { out, has_reasoning });
            self.keep_text(&reply_text);
        }
        if ending.is_failed {
            // The pipeline ends the stream with `error`.
            let message = "the reply broke off";
            return out.report(FindingReport::new(
                rules::JSON_INCOMPLETE,
                Place::START,
                self.end.offset,
                message,
            ));
        }
        match self.read_value(ending.is_truncated, out) {
            Ok(value) => {
                out.emit_intent(Intent::FinalText(&value));
                self.value = Some(value);
            }
            Err(_) if ending.has_native_calls && !ending.is_truncated => {
                // The model calls tools and answers after they have run; its text so far is not an answer.
                let JsonValueDialect { text, has_reasoning, .. } = self;
                ReasoningSink { out, has_reasoning }.emit_intent(Intent::Draft(text));
            }
            Err(ValueFault { rule, message }) => {
                out.report(FindingReport::new(rule, Place::START, self.end.offset, &*message));
                out.fail(rule.code, &message);
            }
        }
    }

    fn place(&self) -> Place {
        self.end
    }

    // The value is not counted, since it can only be emitted as a whole.
    fn held_bytes(&self) -> usize {
        self.draft.held_bytes()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, _: &[Event<'_>]) -> Option<String> {
        self.value.clone()
    }
}

/// Returns the format instructions: one value, its schema, an example.
fn prompt(options: &Options) -> FormatInstructions {
    let schema = options.json_schema();
    let example = match &schema {
        None => Some(json!({ "answer": 42 })),
        Some(schema) => schema.sample(),
    };
    let (opening, schema_intro, example_intro, rules) = match options.texts.language {
        Language::En => (
            "Answer with one JSON value and nothing else.",
            "It satisfies this JSON Schema:",
            "For example:",
            "Nothing stands before or behind it, no Markdown fence around it, no comment in it. Keys and texts stand in double \
             quotes, line breaks in texts are written as \\n. Write it to its end and leave nothing out.\n",
        ),
        Language::Zh => (
            "只输出一个 JSON 值，不要输出其他内容。",
            "它必须符合以下 JSON Schema：",
            "例如：",
            "前后不要有任何文字，不要使用 Markdown 代码块，不要写注释。键和文本使用双引号，文本中的换行写作 \\n。请完整写出，不要省略。\n",
        ),
    };
    let mut opening = format!("{opening}\n\n");
    if schema.is_some() {
        opening.push_str(&format!("{schema_intro}\n\n{}\n\n", self::schema(options)));
    }
    let example = example.map(|example| example.to_string()).unwrap_or_default();
    if !example.is_empty() {
        opening.push_str(&format!("{example_intro}\n\n"));
    }
    let rules = if example.is_empty() { rules.to_owned() } else { format!("\n\n{rules}") };
    FormatInstructions { opening: opening.into(), example: example.into(), rules: rules.into(), turn: None }
}
