//! One example of the instructions, compared with a reply letter by letter.

use crate::dialect::{Action, Intent, Written};
use crate::options::Texts;

/// Bytes of letters and digits from which a match with the beginning of an example is no coincidence: about
/// eight words, or as many Chinese characters. From there on, a reply that is truncated or stops in the
/// middle of the example has repeated it.
const TELLING: usize = 24;

/// An example, compared with a reply as it arrives.
pub(super) struct Example {
    /// Comparison with the whole example, actions included.
    all: Likeness,
    /// Comparison with the answer that a user would see.
    answer: Likeness,
}

/// Texts of an example, collected while it is read.
#[derive(Default)]
pub(super) struct Words {
    all: String,
    answer: String,
}

impl Words {
    pub(super) fn intent(&mut self, intent: &Intent<'_>) {
        each_text(intent, &mut |text| self.all.push_str(text));
        if let Intent::FinalText(text) = intent {
            self.answer.push_str(text);
        }
    }

    pub(super) fn queries(&mut self, written: Written<'_>) {
        each_query(written, &mut |text| self.all.push_str(text));
    }

    pub(super) fn act(&mut self, action: &Action) {
        self.all.push_str(&act(action));
    }
}

impl Example {
    /// Creates an example from its texts; `None` if there is nothing to compare.
    pub(super) fn new(words: &Words, texts: &Texts) -> Option<Example> {
        let (all, mut answer) = (plain(&words.all), plain(&words.answer));
        // Our own text beside tool calls is in every reply with calls.
        if [&texts.running, &texts.fallback].iter().any(|text| plain(text) == answer) {
            answer.clear();
        }
        let example = Example { all: Likeness::new(all), answer: Likeness::new(answer) };
        (!example.all.text.is_empty()).then_some(example)
    }

    /// Returns whether the reply so far may still repeat the example.
    pub(super) fn may_be_repeated(&self) -> bool {
        self.all.same || self.answer.same
    }

    /// Returns whether a reply that ends here repeats the example: all of it, or the beginning of its answer.
    pub(super) fn is_repeated(&self) -> bool {
        self.all.same && self.all.at == self.all.text.len() || self.answer.same && self.answer.at >= TELLING
    }

    pub(super) fn intent(&mut self, intent: &Intent<'_>) {
        each_text(intent, &mut |text| self.all.see(text));
        if let Intent::FinalText(text) = intent {
            self.answer.see(text);
        }
    }

    pub(super) fn queries(&mut self, written: Written<'_>) {
        each_query(written, &mut |text| self.all.see(text));
    }

    pub(super) fn act(&mut self, action: &Action) {
        if self.all.same {
            self.all.see(&act(action));
        }
    }

    /// Gives up the comparison, because the reply is too long to hold back.
    pub(super) fn give_up(&mut self) {
        self.all.differ();
        self.answer.differ();
    }
}

/// A text, and the length of its prefix that another text has matched.
struct Likeness {
    /// Letters and digits only.
    text: String,
    at: usize,
    same: bool,
}

impl Likeness {
    fn new(text: String) -> Likeness {
        Likeness { at: 0, same: !text.is_empty(), text }
    }

    fn see(&mut self, text: &str) {
        if !self.same {
            return;
        }
        for c in letters(text) {
            if self.text[self.at..].starts_with(c) {
                self.at += c.len_utf8();
            } else {
                return self.differ();
            }
        }
    }

    fn differ(&mut self) {
        // The text is not needed any more, and replies are long.
        *self = Likeness { text: String::new(), at: 0, same: false };
    }
}

fn plain(text: &str) -> String {
    letters(text).collect()
}

/// Letters and digits of a text, in lower case and usual width: they survive changes of punctuation and
/// spaces.
fn letters(text: &str) -> impl Iterator<Item = char> {
    let narrow = |c: char| match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        c => c,
    };
    text.chars().map(narrow).filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

fn each_text(intent: &Intent<'_>, see: &mut dyn FnMut(&str)) {
    match intent {
        Intent::PhaseText(text) | Intent::FinalText(text) => see(text),
        Intent::Summary(text) | Intent::Phase(text, _) => see(text),
        Intent::Queries(queries) => queries.iter().for_each(|query| see(query)),
        _ => {}
    }
}

fn each_query(written: Written<'_>, see: &mut dyn FnMut(&str)) {
    match written {
        Written::Text(text) => see(text),
        Written::Value(value) => {
            value.as_array().into_iter().flatten().filter_map(|query| query.as_str()).for_each(see);
        }
    }
}

/// Returns the text of an action whose difference matters even between equal replies: calls and operations.
fn act(action: &Action) -> String {
    match action {
        Action::Plan(plan) => plan.plan.get("tool_calls").map(ToString::to_string).unwrap_or_default(),
        Action::Call(call) => format!("{}{}", call.name, call.args),
        Action::Update(update) => serde_json::to_string(&update.operations).unwrap_or_default(),
        Action::Show(shown) => shown.data().to_string(),
        Action::Answer(_) | Action::Notice(..) => String::new(),
    }
}
