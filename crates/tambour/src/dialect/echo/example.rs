//! One example of the instructions, compared with a reply letter by letter.

use crate::dialect::{Intent, RawQueries, ReplyAction};
use crate::options::Texts;

/// Bytes of letters and digits from which a match with the beginning of an example is no coincidence: about
/// eight words, or as many Chinese characters. From there on, a reply that is truncated or stops in the
/// middle of the example has repeated it.
const MIN_MATCH_BYTES: usize = 24;

/// An example, compared with a reply as it arrives.
pub(super) struct EchoExample {
    /// Comparison with the whole example, actions included.
    all: PrefixMatch,
    /// Comparison with the answer that a user would see.
    answer: PrefixMatch,
}

/// Texts of an example, collected while it is read.
#[derive(Default)]
pub(super) struct ExampleText {
    all: String,
    answer: String,
}

impl ExampleText {
    pub(super) fn add_intent(&mut self, intent: &Intent<'_>) {
        for_each_text(intent, &mut |text| self.all.push_str(text));
        if let Intent::FinalText(text) = intent {
            self.answer.push_str(text);
        }
    }

    pub(super) fn add_queries(&mut self, raw_queries: RawQueries<'_>) {
        for_each_query(raw_queries, &mut |text| self.all.push_str(text));
    }

    pub(super) fn add_action(&mut self, action: &ReplyAction) {
        self.all.push_str(&action_text(action));
    }
}

impl EchoExample {
    /// Creates an example from its texts; `None` if there is nothing to compare.
    pub(super) fn new(words: &ExampleText, texts: &Texts) -> Option<EchoExample> {
        let (all, mut answer) = (normalize(&words.all), normalize(&words.answer));
        // Our own text beside tool calls is in every reply with calls.
        if [&texts.running_tools, &texts.fallback].iter().any(|text| normalize(text) == answer) {
            answer.clear();
        }
        let example = EchoExample { all: PrefixMatch::new(all), answer: PrefixMatch::new(answer) };
        (!example.all.text.is_empty()).then_some(example)
    }

    /// Returns whether the reply so far may still repeat the example.
    pub(super) fn may_be_repeated(&self) -> bool {
        self.all.is_match || self.answer.is_match
    }

    /// Returns whether a reply that ends here repeats the example: all of it, or the beginning of its answer.
    pub(super) fn is_repeated(&self) -> bool {
        self.all.is_match && self.all.matched_len == self.all.text.len()
            || self.answer.is_match && self.answer.matched_len >= MIN_MATCH_BYTES
    }

    pub(super) fn compare_intent(&mut self, intent: &Intent<'_>) {
        for_each_text(intent, &mut |text| self.all.compare(text));
        if let Intent::FinalText(text) = intent {
            self.answer.compare(text);
        }
    }

    pub(super) fn compare_queries(&mut self, raw_queries: RawQueries<'_>) {
        for_each_query(raw_queries, &mut |text| self.all.compare(text));
    }

    pub(super) fn compare_action(&mut self, action: &ReplyAction) {
        if self.all.is_match {
            self.all.compare(&action_text(action));
        }
    }

    /// Gives up the comparison, because the reply is too long to hold back.
    pub(super) fn give_up(&mut self) {
        self.all.reject();
        self.answer.reject();
    }
}

/// A text, and the length of its prefix that another text has matched.
struct PrefixMatch {
    /// Letters and digits only.
    text: String,
    matched_len: usize,
    is_match: bool,
}

impl PrefixMatch {
    fn new(text: String) -> PrefixMatch {
        PrefixMatch { matched_len: 0, is_match: !text.is_empty(), text }
    }

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

fn normalize(text: &str) -> String {
    normalized_letters(text).collect()
}

/// Letters and digits of a text, in lower case and usual width: they survive changes of punctuation and
/// spaces.
fn normalized_letters(text: &str) -> impl Iterator<Item = char> {
    let to_half_width = |c: char| match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        c => c,
    };
    text.chars().map(to_half_width).filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

fn for_each_text(intent: &Intent<'_>, visit: &mut dyn FnMut(&str)) {
    match intent {
        Intent::PhaseText(text) | Intent::FinalText(text) => visit(text),
        Intent::Summary(text) | Intent::Phase(text, _) => visit(text),
        Intent::Queries(queries) => queries.iter().for_each(|query| visit(query)),
        _ => {}
    }
}

fn for_each_query(raw_queries: RawQueries<'_>, visit: &mut dyn FnMut(&str)) {
    match raw_queries {
        RawQueries::Text(text) => visit(text),
        RawQueries::Value(value) => {
            value.as_array().into_iter().flatten().filter_map(|query| query.as_str()).for_each(visit);
        }
    }
}

/// Returns the text of an action whose difference matters even between equal replies: calls and operations.
fn action_text(action: &ReplyAction) -> String {
    match action {
        ReplyAction::Plan(plan) => plan.plan.get("tool_calls").map(ToString::to_string).unwrap_or_default(),
        ReplyAction::Call(call) => format!("{}{}", call.name, call.args),
        ReplyAction::Update(update) => serde_json::to_string(&update.operations).unwrap_or_default(),
        ReplyAction::Extension(extension) => extension.data().to_string(),
        ReplyAction::Answer(_) | ReplyAction::Notice(..) => String::new(),
    }
}
