//! Replies that repeat an example of the instructions, as small models do.

use std::sync::Arc;

use super::{Action, Dialect, Ending, Intent, Output, Prompt, Written};
use crate::event::Event;
use crate::finding::{Report, Rule};
use crate::options::{Language, Options, Texts};
use crate::span::Place;

/// The reader that `reader` makes, watched for what `options.examples` say when they are read by the same; and for what
/// the examples of the dialect's own instructions say, in each language, if they were given.
pub(super) fn watch(
    options: &Arc<Options>,
    rule: &'static Rule,
    prompt: fn(&Options) -> Prompt,
    reader: fn(&Arc<Options>) -> Box<dyn Dialect>,
) -> Box<dyn Dialect> {
    let inner = reader(options);
    let languages: &[Language] = if options.own_examples { &[Language::Zh, Language::En] } else { &[] };
    let own = languages.iter().map(|language| {
        let options = Options { texts: Texts::of(*language), ..Options::clone(options) };
        prompt(&options).example.into_owned()
    });
    let given = options.examples.iter().cloned();
    let examples = given.chain(own).map(|example| Example::new(&texts(&example, options, reader)));
    let examples: Vec<Example> = examples.filter(|example| !example.text.is_empty()).collect();
    if examples.is_empty() { inner } else { Box::new(Echo { inner, rule, examples }) }
}

/// Texts and queries of an example, one after the other.
fn texts(example: &str, options: &Arc<Options>, reader: fn(&Arc<Options>) -> Box<dyn Dialect>) -> String {
    #[derive(Default)]
    struct Texts(String);
    impl Output for Texts {
        fn intent(&mut self, intent: Intent<'_>) {
            each_text(&intent, &mut |text| self.0.push_str(text));
        }
        fn queries(&mut self, written: Written<'_>, _: Place, _: usize) -> Option<usize> {
            each_query(written, &mut |text| self.0.push_str(text));
            None
        }
        fn act(&mut self, _: Action) {}
        fn report(&mut self, _: Report) {}
        fn fall_back(&mut self, _: &'static str) {}
        fn fail(&mut self, _: &'static str, _: &str) {}
    }
    let mut texts = Texts::default();
    let mut reader = reader(options);
    reader.text(example, &mut texts);
    reader.finish(Ending { cut: false, failed: false, calls: false }, &mut texts);
    texts.0
}

/// An example, and how far the reply is the same.
struct Example {
    /// Without white space.
    text: String,
    at: usize,
    same: bool,
}

impl Example {
    fn new(text: &str) -> Example {
        Example { text: text.chars().filter(|c| !c.is_whitespace()).collect(), at: 0, same: true }
    }

    fn see(&mut self, text: &str) {
        for c in text.chars().filter(|c| self.same && !c.is_whitespace()) {
            if self.text[self.at..].starts_with(c) {
                self.at += c.len_utf8();
            } else {
                self.same = false;
                // Nobody looks at it any more, and a reply is long.
                (self.text, self.at) = (String::new(), 0);
                return;
            }
        }
    }
}

/// A reader whose texts are compared with those of examples.
struct Echo {
    inner: Box<dyn Dialect>,
    rule: &'static Rule,
    examples: Vec<Example>,
}

/// Hands on what a reader says, with a look at its texts.
struct Watched<'a> {
    examples: &'a mut [Example],
    out: &'a mut dyn Output,
}

impl Output for Watched<'_> {
    fn intent(&mut self, intent: Intent<'_>) {
        each_text(&intent, &mut |text| self.examples.iter_mut().for_each(|example| example.see(text)));
        self.out.intent(intent);
    }

    fn queries(&mut self, written: Written<'_>, place: Place, end: usize) -> Option<usize> {
        each_query(written, &mut |text| self.examples.iter_mut().for_each(|example| example.see(text)));
        self.out.queries(written, place, end)
    }

    fn act(&mut self, action: Action) {
        self.out.act(action);
    }

    fn report(&mut self, report: Report) {
        self.out.report(report);
    }

    fn fall_back(&mut self, reason: &'static str) {
        self.out.fall_back(reason);
    }

    fn fail(&mut self, code: &'static str, message: &str) {
        self.out.fail(code, message);
    }
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

impl Dialect for Echo {
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        self.inner.text(text, &mut Watched { examples: &mut self.examples, out });
    }

    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        self.inner.reasoning(text, out);
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        self.inner.finish(ending, &mut Watched { examples: &mut self.examples, out });
        if self.examples.iter().any(|example| example.same && example.at == example.text.len()) {
            let message = "the reply repeats an example of the instructions";
            out.report(Report::new(self.rule, Place::START, self.inner.place().offset, message));
        }
    }

    fn place(&self) -> Place {
        self.inner.place()
    }

    fn held(&self) -> usize {
        self.inner.held()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        self.inner.write(events)
    }
}
