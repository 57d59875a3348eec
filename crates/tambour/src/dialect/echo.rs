//! Detection of replies that repeat an example of the instructions, as small models do.
//!
//! Answer text and actions are held back as long as the letters of the reply match the beginning of an
//! example; a few words usually settle that. A reply that matches to its end counts as empty, with the
//! fallback reason `example_echo`.

use std::sync::Arc;

use super::{Dialect, FormatInstructions, Intent, IntentSink, RawQueries, ReplyAction, ReplyEnding};
use crate::event::{AsideKind, Event};
use crate::finding::{FindingReport, Rule};
use crate::options::{Language, Options, Texts};
use crate::span::Place;

/// Fallback reason for a reply that repeats an example.
const ECHO_REASON: &str = "example_echo";

/// Builds the reader of a dialect.
type ReaderFactory = fn(&Arc<Options>) -> Box<dyn Dialect>;

/// Wraps the reader built by `factory` so that a reply that repeats an example counts as empty. The examples
/// are `options.examples` and, if the prompt contained the dialect's own instructions
/// (`options.has_own_examples`), the example of those instructions in each language. `rule` is the rule
/// against repeated examples; `prompt` builds the instructions.
pub(super) fn refuse_echoes(
    options: &Arc<Options>,
    rule: &'static Rule,
    prompt: fn(&Options) -> FormatInstructions,
    factory: ReaderFactory,
) -> Box<dyn Dialect> {
    let is_refusing = true;
    wrap_reader(options, rule, prompt, factory, is_refusing)
}

/// Like [`refuse_echoes`], but only reports a repeated example: it may be the requested value.
pub(super) fn report_echoes(
    options: &Arc<Options>,
    rule: &'static Rule,
    prompt: fn(&Options) -> FormatInstructions,
    factory: ReaderFactory,
) -> Box<dyn Dialect> {
    let is_refusing = false;
    wrap_reader(options, rule, prompt, factory, is_refusing)
}

fn wrap_reader(
    options: &Arc<Options>,
    rule: &'static Rule,
    prompt: fn(&Options) -> FormatInstructions,
    factory: ReaderFactory,
    is_refusing: bool,
) -> Box<dyn Dialect> {
    let inner = factory(options);
    let languages: &[Language] = if options.has_own_examples { &[Language::Zh, Language::En] } else { &[] };
    let own_examples = languages.iter().map(|language| {
        let options = Options { texts: Texts::from_language(*language), ..Options::clone(options) };
        prompt(&options).example.into_owned()
    });
    let custom_examples = options.examples.iter().cloned();
    let example_texts =
        custom_examples.chain(own_examples).map(|example| read_example(&example, options, factory));
    let examples: Vec<EchoExample> =
        example_texts.filter_map(|example_text| EchoExample::new(&example_text, &options.texts)).collect();
    if examples.is_empty() {
        return inner;
    }
    let held_output =
        HeldOutput { is_refusing, examples, max_bytes: options.limits.hold, ..HeldOutput::default() };
    Box::new(EchoReader {
        inner,
        factory,
        options: Arc::clone(options),
        rule,
        held_output,
        refused_end: None,
    })
}

impl IntentSink for ExampleText {
    fn emit_intent(&mut self, intent: Intent<'_>) {
        ExampleText::add_intent(self, &intent);
    }
    fn emit_queries(&mut self, raw_queries: RawQueries<'_>, _: Place, _: usize) -> Option<usize> {
        ExampleText::add_queries(self, raw_queries);
        None
    }
    fn emit_action(&mut self, action: ReplyAction) {
        ExampleText::add_action(self, &action);
    }
    fn report(&mut self, _: FindingReport) {}
    fn fall_back(&mut self, _: &'static str) {}
    fn fail(&mut self, _: &'static str, _: &str) {}
}

/// Collects the texts and actions of an example.
fn read_example(example: &str, options: &Arc<Options>, factory: ReaderFactory) -> ExampleText {
    let mut example_text = ExampleText::default();
    let mut reader = factory(options);
    reader.push_text(example, &mut example_text);
    let ending = ReplyEnding { is_truncated: false, is_failed: false, has_native_calls: false };
    reader.finish(ending, &mut example_text);
    example_text
}

/// Reader that compares replies with examples.
struct EchoReader {
    /// Reader of the reply; after a refusal, a new reader that gets no text.
    inner: Box<dyn Dialect>,
    factory: ReaderFactory,
    options: Arc<Options>,
    /// Rule against repeated examples.
    rule: &'static Rule,
    held_output: HeldOutput,
    /// End of a refused reply, which counts as empty.
    refused_end: Option<Place>,
}

/// Output held back while the reply may repeat an example.
#[derive(Default)]
struct HeldOutput {
    /// Set if a reply that repeats an example is refused.
    is_refusing: bool,
    examples: Vec<EchoExample>,
    /// Held items in order; adjacent texts of one kind are joined.
    queue: Vec<HeldItem>,
    /// Length of the held text in bytes.
    held_bytes: usize,
    /// Maximum of `held_bytes` (`limits.hold`).
    max_bytes: usize,
    /// Set once queries have been emitted, or dropped by a refusal, which then emits an empty list.
    has_queries: bool,
}

/// One held output of a reader.
enum HeldItem {
    Text(HeldTextKind, String),
    Intent(Intent<'static>),
    Action(ReplyAction),
    Report(FindingReport),
    /// Reason.
    Fallback(&'static str),
    /// Code and message.
    Failure(&'static str, String),
}

/// Kind of a held text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeldTextKind {
    Phase,
    Answer,
    Draft,
    Aside(AsideKind),
}

impl HeldItem {
    fn from_intent(intent: Intent<'_>) -> HeldItem {
        let held_text = |kind, text: &str| HeldItem::Text(kind, text.to_owned());
        HeldItem::Intent(match intent {
            Intent::PhaseText(content) => return held_text(HeldTextKind::Phase, content),
            Intent::FinalText(content) => return held_text(HeldTextKind::Answer, content),
            Intent::Draft(content) => return held_text(HeldTextKind::Draft, content),
            Intent::Aside { kind, text: content } => return held_text(HeldTextKind::Aside(kind), content),
            Intent::SkipThinking => Intent::SkipThinking,
            Intent::Summary(text) => Intent::Summary(text.into_owned().into()),
            Intent::ThinkingStart => Intent::ThinkingStart,
            Intent::Phase(title, place) => Intent::Phase(title.into_owned().into(), place),
            Intent::ThinkingEnd => Intent::ThinkingEnd,
            Intent::Queries(queries) => Intent::Queries(queries),
        })
    }

    fn emit(self, out: &mut dyn IntentSink) {
        match self {
            HeldItem::Text(kind, text) => out.emit_intent(match kind {
                HeldTextKind::Phase => Intent::PhaseText(&text),
                HeldTextKind::Answer => Intent::FinalText(&text),
                HeldTextKind::Draft => Intent::Draft(&text),
                HeldTextKind::Aside(kind) => Intent::Aside { kind, text: &text },
            }),
            HeldItem::Intent(intent) => out.emit_intent(intent),
            HeldItem::Action(action) => out.emit_action(action),
            HeldItem::Report(report) => out.report(report),
            HeldItem::Fallback(reason) => out.fall_back(reason),
            HeldItem::Failure(code, message) => out.fail(code, &message),
        }
    }
}

impl HeldOutput {
    /// Returns whether the reply may still be refused.
    fn may_refuse(&self) -> bool {
        self.is_refusing && self.examples.iter().any(EchoExample::may_be_repeated)
    }

    /// Appends an output to the queue until it is known whether the reply is refused.
    fn hold(&mut self, item: HeldItem, out: &mut dyn IntentSink) {
        match (self.queue.last_mut(), item) {
            (Some(HeldItem::Text(last_kind, last_text)), HeldItem::Text(kind, text))
                if *last_kind == kind =>
            {
                self.held_bytes += text.len();
                last_text.push_str(&text);
            }
            (_, item) => {
                if let HeldItem::Text(_, text) = &item {
                    self.held_bytes += text.len();
                }
                self.queue.push(item);
            }
        }
        if self.held_bytes > self.max_bytes {
            self.examples.iter_mut().for_each(EchoExample::give_up);
        }
        if !self.may_refuse() {
            self.release(out);
        }
    }

    /// Emits all held output.
    fn release(&mut self, out: &mut dyn IntentSink) {
        self.held_bytes = 0;
        for item in std::mem::take(&mut self.queue) {
            item.emit(out);
        }
    }

    /// Drops the held answer and its actions, and emits the other held items: thoughts and findings.
    fn refuse(&mut self, out: &mut dyn IntentSink) {
        self.held_bytes = 0;
        for item in std::mem::take(&mut self.queue) {
            match item {
                HeldItem::Text(HeldTextKind::Answer, _)
                | HeldItem::Action(_)
                | HeldItem::Fallback(_)
                | HeldItem::Failure(..) => {}
                HeldItem::Intent(Intent::Queries(_)) => self.has_queries = true,
                item => item.emit(out),
            }
        }
        if std::mem::take(&mut self.has_queries) {
            out.emit_intent(Intent::Queries(Vec::new()));
        }
    }
}

/// Sink that compares everything a reader emits with the examples, then passes it on or holds it back.
struct EchoSink<'a> {
    held_output: &'a mut HeldOutput,
    out: &'a mut dyn IntentSink,
}

impl EchoSink<'_> {
    /// Returns whether output is being held back, so that all further output must wait for it.
    fn is_holding(&self) -> bool {
        !self.held_output.queue.is_empty()
    }

    /// Returns whether output that a refusal would drop must be held back.
    fn must_hold(&self) -> bool {
        self.is_holding() || self.held_output.may_refuse()
    }
}

impl IntentSink for EchoSink<'_> {
    fn emit_intent(&mut self, intent: Intent<'_>) {
        self.held_output.examples.iter_mut().for_each(|example| example.compare_intent(&intent));
        let is_answer = matches!(intent, Intent::FinalText(_) | Intent::Queries(_));
        if self.is_holding() || is_answer && self.must_hold() {
            self.held_output.hold(HeldItem::from_intent(intent), self.out);
        } else {
            self.out.emit_intent(intent);
        }
    }

    fn emit_queries(&mut self, raw_queries: RawQueries<'_>, place: Place, end: usize) -> Option<usize> {
        self.held_output.examples.iter_mut().for_each(|example| example.compare_queries(raw_queries));
        // Queries are emitted after the answer in any case, so they need not wait.
        let query_count = self.out.emit_queries(raw_queries, place, end);
        self.held_output.has_queries |= query_count.is_some();
        query_count
    }

    fn emit_action(&mut self, action: ReplyAction) {
        self.held_output.examples.iter_mut().for_each(|example| example.compare_action(&action));
        if self.must_hold() {
            self.held_output.hold(HeldItem::Action(action), self.out);
        } else {
            self.out.emit_action(action);
        }
    }

    fn report(&mut self, report: FindingReport) {
        if self.is_holding() {
            self.held_output.hold(HeldItem::Report(report), self.out);
        } else {
            self.out.report(report);
        }
    }

    fn fall_back(&mut self, reason: &'static str) {
        if self.must_hold() {
            self.held_output.hold(HeldItem::Fallback(reason), self.out);
        } else {
            self.out.fall_back(reason);
        }
    }

    fn fail(&mut self, code: &'static str, message: &str) {
        if self.must_hold() {
            self.held_output.hold(HeldItem::Failure(code, message.to_owned()), self.out);
        } else {
            self.out.fail(code, message);
        }
    }
}

/// Sink that passes on only actions. An empty reply may have some, such as the safe fallback of a plan.
struct ActionSink<'a>(&'a mut dyn IntentSink);

impl IntentSink for ActionSink<'_> {
    fn emit_intent(&mut self, _: Intent<'_>) {}
    fn emit_queries(&mut self, _: RawQueries<'_>, _: Place, _: usize) -> Option<usize> {
        None
    }
    fn emit_action(&mut self, action: ReplyAction) {
        self.0.emit_action(action);
    }
    fn report(&mut self, _: FindingReport) {}
    fn fall_back(&mut self, _: &'static str) {}
    fn fail(&mut self, _: &'static str, _: &str) {}
}

impl Dialect for EchoReader {
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.inner.push_text(text, &mut EchoSink { held_output: &mut self.held_output, out });
    }

    fn push_reasoning(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.inner.push_reasoning(text, &mut EchoSink { held_output: &mut self.held_output, out });
    }

    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        let EchoReader { inner, held_output, .. } = self;
        inner.finish(ending, &mut EchoSink { held_output, out });
        if !held_output.examples.iter().any(EchoExample::is_repeated) {
            return held_output.release(out);
        }
        let message = "the reply repeats an example of the instructions";
        let end = inner.place();
        let report = FindingReport::new(self.rule, Place::START, end.offset, message);
        if !held_output.is_refusing {
            held_output.release(out);
            return out.report(report);
        }
        out.fall_back(ECHO_REASON);
        held_output.refuse(out);
        out.report(report.with_repair("not used"));
        // The actions of an empty reply replace those of the refused one.
        let mut empty_reader = (self.factory)(&self.options);
        empty_reader.finish(ending, &mut ActionSink(out));
        (self.inner, self.refused_end) = (empty_reader, Some(end));
    }

    fn place(&self) -> Place {
        self.refused_end.unwrap_or_else(|| self.inner.place())
    }

    fn held_bytes(&self) -> usize {
        self.inner.held_bytes() + self.held_output.held_bytes
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        self.inner.write(events)
    }
}

/// Minimum number of bytes of letters and digits that must match the beginning of an example's answer: about
/// five English words or eight Chinese characters, too many for a coincidence. A reply that ends in the
/// middle of that answer has then repeated the example.
const MIN_MATCH_BYTES: usize = 24;

/// An example, compared with a reply as it arrives.
struct EchoExample {
    /// Comparison with the whole example, actions included.
    full_match: PrefixMatch,
    /// Comparison with the answer that a user would see.
    answer_match: PrefixMatch,
}

/// Texts of an example, collected while it is read.
#[derive(Default)]
struct ExampleText {
    /// All texts and actions, in order.
    full_text: String,
    /// Text of the answer only.
    answer_text: String,
}

impl ExampleText {
    fn add_intent(&mut self, intent: &Intent<'_>) {
        for_each_text(intent, &mut |text| self.full_text.push_str(text));
        if let Intent::FinalText(text) = intent {
            self.answer_text.push_str(text);
        }
    }

    fn add_queries(&mut self, raw_queries: RawQueries<'_>) {
        for_each_query(raw_queries, &mut |text| self.full_text.push_str(text));
    }

    fn add_action(&mut self, action: &ReplyAction) {
        self.full_text.push_str(&action_text(action));
    }
}

impl EchoExample {
    /// Creates an example from its texts; `None` if there is nothing to compare.
    fn new(example_text: &ExampleText, texts: &Texts) -> Option<EchoExample> {
        let (full_text, mut answer_text) =
            (normalize(&example_text.full_text), normalize(&example_text.answer_text));
        // A default text is in every reply that only calls tools or has no answer, so its match proves
        // nothing.
        if [&texts.running_tools, &texts.fallback].iter().any(|text| normalize(text) == answer_text) {
            answer_text.clear();
        }
        let (full_match, answer_match) = (PrefixMatch::new(full_text), PrefixMatch::new(answer_text));
        let example = EchoExample { full_match, answer_match };
        (!example.full_match.text.is_empty()).then_some(example)
    }

    /// Returns whether the reply so far may still repeat the example.
    fn may_be_repeated(&self) -> bool {
        self.full_match.is_match || self.answer_match.is_match
    }

    /// Returns whether a reply that ends here repeats the example: all of it, or the beginning of its answer.
    fn is_repeated(&self) -> bool {
        self.full_match.is_match && self.full_match.matched_len == self.full_match.text.len()
            || self.answer_match.is_match && self.answer_match.matched_len >= MIN_MATCH_BYTES
    }

    fn compare_intent(&mut self, intent: &Intent<'_>) {
        for_each_text(intent, &mut |text| self.full_match.compare(text));
        if let Intent::FinalText(text) = intent {
            self.answer_match.compare(text);
        }
    }

    fn compare_queries(&mut self, raw_queries: RawQueries<'_>) {
        for_each_query(raw_queries, &mut |text| self.full_match.compare(text));
    }

    fn compare_action(&mut self, action: &ReplyAction) {
        if self.full_match.is_match {
            self.full_match.compare(&action_text(action));
        }
    }

    /// Gives up the comparison, because the reply is too long to hold back.
    fn give_up(&mut self) {
        self.full_match.reject();
        self.answer_match.reject();
    }
}

/// A text, and the length of its prefix that another text has matched.
struct PrefixMatch {
    /// The text, normalized.
    text: String,
    /// Length of the matched prefix, in bytes.
    matched_len: usize,
    /// Set while everything compared so far matches; never set for an empty text.
    is_match: bool,
}

impl PrefixMatch {
    fn new(text: String) -> PrefixMatch {
        PrefixMatch { matched_len: 0, is_match: !text.is_empty(), text }
    }

    /// Compares the next piece of the other text.
    fn compare(&mut self, text: &str) {
        if !self.is_match {
            return;
        }
        for c in normalized_letters(text) {
            if self.text[self.matched_len..].starts_with(c) {
                self.matched_len += c.len_utf8();
            } else {
                return self.reject();
            }
        }
    }

    fn reject(&mut self) {
        // The text is not needed any more, and replies are long.
        *self = PrefixMatch { text: String::new(), matched_len: 0, is_match: false };
    }
}

/// Returns the letters and digits of a text by which it is compared with another.
fn normalize(text: &str) -> String {
    normalized_letters(text).collect()
}

/// Returns the letters and digits of a text, in lower case and with full-width forms as ASCII. Two texts that
/// differ only in punctuation or spaces have the same letters and digits.
fn normalized_letters(text: &str) -> impl Iterator<Item = char> {
    let to_half_width = |c: char| match c {
        // 0xFEE0 is the distance of the full-width forms from their ASCII characters.
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        c => c,
    };
    text.chars().map(to_half_width).filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// Visits the texts of an intent that count for the comparison.
fn for_each_text(intent: &Intent<'_>, visit: &mut dyn FnMut(&str)) {
    match intent {
        Intent::PhaseText(text) | Intent::FinalText(text) => visit(text),
        Intent::Summary(text) | Intent::Phase(text, _) => visit(text),
        Intent::Queries(queries) => queries.iter().for_each(|query| visit(query)),
        // Drafts and asides are not compared; the start and end of thinking have no text.
        _ => {}
    }
}

/// Visits the texts of search queries.
fn for_each_query(raw_queries: RawQueries<'_>, visit: &mut dyn FnMut(&str)) {
    match raw_queries {
        RawQueries::Text(text) => visit(text),
        RawQueries::Value(value) => {
            value.as_array().into_iter().flatten().filter_map(|query| query.as_str()).for_each(visit);
        }
    }
}

/// Returns the part of an action that is compared. A reply with other calls or operations than the example
/// does not repeat the whole example; only its answer may still count as repeated.
fn action_text(action: &ReplyAction) -> String {
    match action {
        ReplyAction::Plan(plan) => plan.plan.get("tool_calls").map(ToString::to_string).unwrap_or_default(),
        ReplyAction::Call(call) => format!("{}{}", call.name, call.args),
        ReplyAction::Update(update) => serde_json::to_string(&update.operations).unwrap_or_default(),
        ReplyAction::Extension(extension) => extension.data().to_string(),
        ReplyAction::Answer(_) | ReplyAction::Notice(..) => String::new(),
    }
}
