//! One example of the instructions, and how far a reply is the same, word for word.

use crate::dialect::{Action, Intent, Written};
use crate::options::Texts;

/// Bytes of letters and digits from which the beginning of an example is no chance: eight words or so, as many Chinese characters.
/// A reply that is cut, or that stops in the middle of the example, has repeated it then.
const TELLING: usize = 24;

/// An example, compared with a reply as it comes.
pub(super) struct Example {
    /// Everything it says, what it wants done included.
    all: Likeness,
    /// What a user would see of it.
    answer: Likeness,
}

/// What an example says, as it is read.
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
    /// The example that says this; `None` where there is nothing to compare.
    pub(super) fn new(words: &Words, texts: &Texts) -> Option<Example> {
        let (all, mut answer) = (plain(&words.all), plain(&words.answer));
        // A text of ours that stands beside calls is in every reply with calls.
        if [&texts.running, &texts.fallback].iter().any(|text| plain(text) == answer) {
            answer.clear();
        }
        let example = Example { all: Likeness::new(all), answer: Likeness::new(answer) };
        (!example.all.text.is_empty()).then_some(example)
    }

    /// Whether the reply so far may still repeat it.
    pub(super) fn may_be_repeated(&self) -> bool {
        self.all.same || self.answer.same
    }

    /// Whether a reply that ends here repeats it: all that it says, or the answer alone, or the beginning of that.
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

    /// The reply is too long to wait for.
    pub(super) fn give_up(&mut self) {
        self.all.differ();
        self.answer.differ();
    }
}

/// A text, and how far another one is the same.
struct Likeness {
    /// Letters and digits alone.
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
        // Nobody looks at it any more, and a reply is long.
        *self = Likeness { text: String::new(), at: 0, same: false };
    }
}

fn plain(text: &str) -> String {
    letters(text).collect()
}

/// The letters and digits of a text, small ones of the usual width: what is left when a model changes marks and spaces.
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

/// What is to be done, where a reply that says the same may still mean something else: its calls and operations.
fn act(action: &Action) -> String {
    match action {
        Action::Plan(plan) => plan.plan.get("tool_calls").map(ToString::to_string).unwrap_or_default(),
        Action::Call(call) => format!("{}{}", call.name, call.args),
        Action::Update(update) => serde_json::to_string(&update.operations).unwrap_or_default(),
        Action::Show(shown) => shown.data().to_string(),
        Action::Answer(_) | Action::Notice(..) => String::new(),
    }
}
