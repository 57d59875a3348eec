//! Detection of replies that repeat an example of the instructions, as small models do.
//!
//! Answer text and actions are held back as long as the answer matches the beginning of an example, which a
//! few words decide. A reply that matches to its end counts as empty, with the reason `example_echo`.

mod example;

use std::sync::Arc;

use self::example::{Example, Words};
use super::{Action, Dialect, Ending, Intent, Output, Prompt, Written};
use crate::event::{AsideKind, Event};
use crate::finding::{Report, Rule};
use crate::options::{Language, Options, Texts};
use crate::span::Place;

/// Fallback reason for a reply that repeats an example.
const REASON: &str = "example_echo";

type Make = fn(&Arc<Options>) -> Box<dyn Dialect>;

/// Wraps the reader built by `make` so that a reply that repeats an example counts as empty. Examples are
/// those of `options.examples`, read by the same reader, and those of the dialect's own instructions in each
/// language if they were given.
pub(super) fn watch(
    options: &Arc<Options>,
    rule: &'static Rule,
    prompt: fn(&Options) -> Prompt,
    make: Make,
) -> Box<dyn Dialect> {
    watched(options, rule, prompt, make, true)
}

/// Like [`watch`], but only reports a repeated example: it may be the requested value.
pub(super) fn tell(
    options: &Arc<Options>,
    rule: &'static Rule,
    prompt: fn(&Options) -> Prompt,
    make: Make,
) -> Box<dyn Dialect> {
    watched(options, rule, prompt, make, false)
}

fn watched(
    options: &Arc<Options>,
    rule: &'static Rule,
    prompt: fn(&Options) -> Prompt,
    make: Make,
    refuses: bool,
) -> Box<dyn Dialect> {
    let inner = make(options);
    let languages: &[Language] = if options.own_examples { &[Language::Zh, Language::En] } else { &[] };
    let own = languages.iter().map(|language| {
        let options = Options { texts: Texts::of(*language), ..Options::clone(options) };
        prompt(&options).example.into_owned()
    });
    let given = options.examples.iter().cloned();
    let words = given.chain(own).map(|example| words_of(&example, options, make));
    let examples: Vec<Example> = words.filter_map(|words| Example::new(&words, &options.texts)).collect();
    if examples.is_empty() {
        return inner;
    }
    let suspense = Suspense { refuses, examples, most: options.limits.hold, ..Suspense::default() };
    Box::new(Echo { inner, make, options: Arc::clone(options), rule, suspense, end: None })
}

impl Output for Words {
    fn intent(&mut self, intent: Intent<'_>) {
        Words::intent(self, &intent);
    }
    fn queries(&mut self, written: Written<'_>, _: Place, _: usize) -> Option<usize> {
        Words::queries(self, written);
        None
    }
    fn act(&mut self, action: Action) {
        Words::act(self, &action);
    }
    fn report(&mut self, _: Report) {}
    fn fall_back(&mut self, _: &'static str) {}
    fn fail(&mut self, _: &'static str, _: &str) {}
}

/// Collects the texts and actions of an example.
fn words_of(example: &str, options: &Arc<Options>, make: Make) -> Words {
    let mut words = Words::default();
    let mut reader = make(options);
    reader.text(example, &mut words);
    reader.finish(Ending { cut: false, failed: false, calls: false }, &mut words);
    words
}

/// Reader that compares replies with examples.
struct Echo {
    inner: Box<dyn Dialect>,
    make: Make,
    options: Arc<Options>,
    rule: &'static Rule,
    suspense: Suspense,
    /// End of a reply that was replaced by an empty one.
    end: Option<Place>,
}

/// Output held back while the reply may repeat an example.
#[derive(Default)]
struct Suspense {
    /// Set if a reply that repeats an example is refused.
    refuses: bool,
    examples: Vec<Example>,
    waiting: Vec<Held>,
    /// Bytes of held text, and their limit.
    bytes: usize,
    most: usize,
    /// Set once queries have been emitted.
    queried: bool,
}

/// One held output of a reader.
enum Held {
    Text(Kind, String),
    Intent(Intent<'static>),
    Act(Action),
    Report(Report),
    FallBack(&'static str),
    Fail(&'static str, String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Phase,
    Answer,
    Draft,
    Aside(AsideKind),
}

impl Held {
    fn of(intent: Intent<'_>) -> Held {
        let text = |kind, text: &str| Held::Text(kind, text.to_owned());
        Held::Intent(match intent {
            Intent::PhaseText(said) => return text(Kind::Phase, said),
            Intent::FinalText(said) => return text(Kind::Answer, said),
            Intent::Draft(said) => return text(Kind::Draft, said),
            Intent::Aside { kind, text: said } => return text(Kind::Aside(kind), said),
            Intent::SkipThinking => Intent::SkipThinking,
            Intent::Summary(text) => Intent::Summary(text.into_owned().into()),
            Intent::ThinkingStart => Intent::ThinkingStart,
            Intent::Phase(title, place) => Intent::Phase(title.into_owned().into(), place),
            Intent::ThinkingEnd => Intent::ThinkingEnd,
            Intent::Queries(queries) => Intent::Queries(queries),
        })
    }

    fn say(self, out: &mut dyn Output) {
        match self {
            Held::Text(kind, text) => out.intent(match kind {
                Kind::Phase => Intent::PhaseText(&text),
                Kind::Answer => Intent::FinalText(&text),
                Kind::Draft => Intent::Draft(&text),
                Kind::Aside(kind) => Intent::Aside { kind, text: &text },
            }),
            Held::Intent(intent) => out.intent(intent),
            Held::Act(action) => out.act(action),
            Held::Report(report) => out.report(report),
            Held::FallBack(reason) => out.fall_back(reason),
            Held::Fail(code, message) => out.fail(code, &message),
        }
    }
}

impl Suspense {
    /// Returns whether the reply may still be refused.
    fn lasts(&self) -> bool {
        self.refuses && self.examples.iter().any(Example::may_be_repeated)
    }

    /// Holds back an output, in order, until the reply is decided.
    fn keep(&mut self, held: Held, out: &mut dyn Output) {
        match (self.waiting.last_mut(), held) {
            (Some(Held::Text(before, all)), Held::Text(kind, text)) if *before == kind => {
                self.bytes += text.len();
                all.push_str(&text);
            }
            (_, held) => {
                if let Held::Text(_, text) = &held {
                    self.bytes += text.len();
                }
                self.waiting.push(held);
            }
        }
        if self.bytes > self.most {
            self.examples.iter_mut().for_each(Example::give_up);
        }
        if !self.lasts() {
            self.go_on(out);
        }
    }

    /// Emits all held output.
    fn go_on(&mut self, out: &mut dyn Output) {
        self.bytes = 0;
        for held in std::mem::take(&mut self.waiting) {
            held.say(out);
        }
    }

    /// Drops the held answer and its actions, and emits the rest: thoughts and findings.
    fn refuse(&mut self, out: &mut dyn Output) {
        self.bytes = 0;
        for held in std::mem::take(&mut self.waiting) {
            match held {
                Held::Text(Kind::Answer, _) | Held::Act(_) | Held::FallBack(_) | Held::Fail(..) => {}
                Held::Intent(Intent::Queries(_)) => self.queried = true,
                held => held.say(out),
            }
        }
        if std::mem::take(&mut self.queried) {
            out.intent(Intent::Queries(Vec::new()));
        }
    }
}

/// Output that compares everything a reader emits before passing it on or holding it back.
struct Watched<'a> {
    suspense: &'a mut Suspense,
    out: &'a mut dyn Output,
}

impl Watched<'_> {
    /// Returns whether an output must be held back; `begins` is set for output that may start the holding.
    fn holds(&self, begins: bool) -> bool {
        !self.suspense.waiting.is_empty() || begins && self.suspense.lasts()
    }
}

impl Output for Watched<'_> {
    fn intent(&mut self, intent: Intent<'_>) {
        self.suspense.examples.iter_mut().for_each(|example| example.intent(&intent));
        if self.holds(matches!(intent, Intent::FinalText(_) | Intent::Queries(_))) {
            self.suspense.keep(Held::of(intent), self.out);
        } else {
            self.out.intent(intent);
        }
    }

    fn queries(&mut self, written: Written<'_>, place: Place, end: usize) -> Option<usize> {
        self.suspense.examples.iter_mut().for_each(|example| example.queries(written));
        // Queries are emitted after the answer in any case, so they need not wait.
        let used = self.out.queries(written, place, end);
        self.suspense.queried |= used.is_some();
        used
    }

    fn act(&mut self, action: Action) {
        self.suspense.examples.iter_mut().for_each(|example| example.act(&action));
        if self.holds(true) {
            self.suspense.keep(Held::Act(action), self.out);
        } else {
            self.out.act(action);
        }
    }

    fn report(&mut self, report: Report) {
        if self.holds(false) {
            self.suspense.keep(Held::Report(report), self.out);
        } else {
            self.out.report(report);
        }
    }

    fn fall_back(&mut self, reason: &'static str) {
        if self.holds(true) {
            self.suspense.keep(Held::FallBack(reason), self.out);
        } else {
            self.out.fall_back(reason);
        }
    }

    fn fail(&mut self, code: &'static str, message: &str) {
        if self.holds(true) {
            self.suspense.keep(Held::Fail(code, message.to_owned()), self.out);
        } else {
            self.out.fail(code, message);
        }
    }
}

/// Output that passes on only the actions of an empty reply, such as the safe fallback of a plan.
struct Empty<'a>(&'a mut dyn Output);

impl Output for Empty<'_> {
    fn intent(&mut self, _: Intent<'_>) {}
    fn queries(&mut self, _: Written<'_>, _: Place, _: usize) -> Option<usize> {
        None
    }
    fn act(&mut self, action: Action) {
        self.0.act(action);
    }
    fn report(&mut self, _: Report) {}
    fn fall_back(&mut self, _: &'static str) {}
    fn fail(&mut self, _: &'static str, _: &str) {}
}

impl Dialect for Echo {
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        self.inner.text(text, &mut Watched { suspense: &mut self.suspense, out });
    }

    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        self.inner.reasoning(text, &mut Watched { suspense: &mut self.suspense, out });
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        let Echo { inner, suspense, .. } = self;
        inner.finish(ending, &mut Watched { suspense, out });
        if !suspense.examples.iter().any(Example::is_repeated) {
            return suspense.go_on(out);
        }
        let message = "the reply repeats an example of the instructions";
        let end = inner.place();
        let report = Report::new(self.rule, Place::START, end.offset, message);
        if !suspense.refuses {
            suspense.go_on(out);
            return out.report(report);
        }
        out.fall_back(REASON);
        suspense.refuse(out);
        out.report(report.repaired("not used"));
        let mut empty = (self.make)(&self.options);
        empty.finish(ending, &mut Empty(out));
        (self.inner, self.end) = (empty, Some(end));
    }

    fn place(&self) -> Place {
        self.end.unwrap_or_else(|| self.inner.place())
    }

    fn held(&self) -> usize {
        self.inner.held() + self.suspense.bytes
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        self.inner.write(events)
    }
}
