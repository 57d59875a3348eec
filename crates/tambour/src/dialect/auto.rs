//! `auto`: finds out how a reply is written (J-054, X-013).
//!
//! At most `limits.detect` bytes of text that is not blank are read before it decides; until then nothing is sent.
//! What has been taken for plain stays plain.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Dialect, Ending, Entry, Examples, Output, entry, plain};
use crate::event::{Event, EventKind, kind_of};
use crate::finding::Report;
use crate::lex::marks::{self, Effect, Kind, Mark, Open};
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::{self, JsonEvent, JsonSink, Origin};
use crate::span::Place;

/// The table entry.
pub(super) const ENTRY: Entry = Entry {
    name: "auto",
    summary: "finds out which dialect a reply is written in",
    reader: |options| Box::new(Auto::new(options)),
    settings: &[],
    rules: &[],
    write: None,
    prompt: None,
    schema: None,
    examples: Examples { languages: &[], fenced: false },
};

struct Auto {
    options: Arc<Options>,
    /// What came before the decision.
    seen: String,
    /// Bytes of it that are not blank.
    filled: usize,
    /// How many of them there were at the last look; white space alone tells nothing new.
    looked: usize,
    /// Whether reasoning had closed at its end.
    closed: bool,
    reader: Option<Box<dyn Dialect>>,
}

/// What the beginning of a reply tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Dialect(&'static str),
    Plain,
    Unknown,
}

impl Auto {
    fn new(options: &Arc<Options>) -> Auto {
        Auto {
            options: Arc::clone(options),
            seen: String::new(),
            filled: 0,
            looked: 0,
            closed: false,
            reader: None,
        }
    }

    fn decide(&mut self, verdict: Verdict, out: &mut dyn Output) {
        let reader = match verdict {
            Verdict::Dialect(name) => match entry(name) {
                Ok(entry) => (entry.reader)(&self.options),
                Err(_) => plain::detected(&self.options),
            },
            Verdict::Plain | Verdict::Unknown => plain::detected(&self.options),
        };
        let reader = self.reader.insert(reader);
        reader.text(&std::mem::take(&mut self.seen), out);
    }
}

impl Dialect for Auto {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        if let Some(reader) = &mut self.reader {
            return reader.text(text, out);
        }
        // One character at a time, so that the decision falls at the same place however the reply is cut. A look
        // is taken only where a token can have ended.
        for (at, c) in text.char_indices() {
            self.seen.push(c);
            self.filled += if c.is_whitespace() { 0 } else { c.len_utf8() };
            let full =
                self.filled >= self.options.limits.detect || self.seen.len() >= self.options.limits.hold;
            let telling = matches!(c, '>' | ']' | '▷' | '"' | '\'' | '”' | ':' | '\n')
                || (!c.is_whitespace() && self.closed);
            let verdict = if full || (telling && self.filled > self.looked) {
                self.looked = self.filled;
                let seen = look(&self.seen, full);
                self.closed = seen.closed;
                seen.verdict
            } else {
                Verdict::Unknown
            };
            if verdict != Verdict::Unknown || full {
                self.decide(verdict, out);
                if let Some(reader) = &mut self.reader {
                    reader.text(&text[at + c.len_utf8()..], out);
                }
                return;
            }
        }
    }

    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        match &mut self.reader {
            Some(reader) => reader.reasoning(text, out),
            // A model that reasons in a field of its own may still write any dialect.
            None => out.intent(super::Intent::Draft(text)),
        }
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        if self.reader.is_none() {
            self.decide(look(&self.seen, true).verdict, out);
        }
        if let Some(reader) = &mut self.reader {
            reader.finish(ending, out);
        }
    }

    fn place(&self) -> Place {
        match &self.reader {
            Some(reader) => reader.place(),
            None => Place::START.after(&self.seen),
        }
    }

    fn held(&self) -> usize {
        match &self.reader {
            Some(reader) => reader.held(),
            None => self.seen.len(),
        }
    }

    fn name(&self) -> &'static str {
        match &self.reader {
            Some(reader) => reader.name(),
            None => ENTRY.name,
        }
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        self.reader.as_ref()?.write(events)
    }
}

/// What the beginning of a reply tells; `full` when no more will be looked at.
fn look(seen: &str, full: bool) -> Seen {
    let text = seen.trim_start_matches('\u{FEFF}').trim_start();
    let found = if event_named(&uncommented(text, full)) { Some("jsonseq") } else { object_of(text, full) };
    if let Some(name) = found {
        return Seen { verdict: Verdict::Dialect(name), closed: false };
    }
    let seen = markup(text, full);
    if seen.verdict == Verdict::Unknown && full { Seen { verdict: Verdict::Plain, ..seen } } else { seen }
}

/// What a look at the beginning told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    verdict: Verdict,
    /// Whether reasoning has closed and nothing has followed.
    closed: bool,
}

/// A dialect that is one object: its keys, and those that are common words, which do only as the first key of an object that
/// the reply begins with.
struct Object {
    dialect: &'static str,
    keys: &'static [&'static str],
    common: &'static [&'static str],
}

const OBJECTS: &[Object] = &[
    Object {
        dialect: "aiplan",
        keys: &["thought", "response_mode", "direct_response", "tool_calls"],
        common: &["thought", "tool_calls"],
    },
    Object {
        dialect: "ai_say",
        keys: &["assessment", "response", "should_exit", "exit_reason"],
        common: &["response", "exit_reason"],
    },
];

/// The keys of all of them.
const KEYS: &[&str] = &[
    "thought",
    "response_mode",
    "direct_response",
    "tool_calls",
    "assessment",
    "response",
    "should_exit",
    "exit_reason",
];

/// Keys of a dialect that an object has when it is complete (R-74).
const LEAST: usize = 2;

/// The dialect whose object begins in the text and stands alone in its lines or fence (R-74).
fn object_of(text: &str, full: bool) -> Option<&'static str> {
    let begins = text.starts_with(['{', '｛', '`', '~', '<']);
    let dialect = |found: &Found| {
        let first = found.keys.first().map(String::as_str).unwrap_or_default();
        let tells = |object: &&Object| {
            let known = object.keys.iter().filter(|key| found.keys.iter().any(|found| found == *key)).count();
            let common = object.common.contains(&first) && !(begins || first == "thought");
            known >= LEAST || known > 0 && full && !found.complete && !common
        };
        OBJECTS.iter().find(tells).map(|object| object.dialect)
    };
    objects(text, full).iter().filter(|found| found.alone).find_map(dialect)
}

/// A JSON object, as far as it has arrived.
struct Found {
    keys: Vec<String>,
    /// Whether nothing but white space stands before it on its line, or it stands in a fence.
    alone: bool,
    complete: bool,
}

fn objects(text: &str, full: bool) -> Vec<Found> {
    let (found, thinking) = read_objects(text, full, false);
    // Reasoning that is never closed, or only a mention of its mark: the object may stand in it (R-69, R-74).
    if thinking && full && !found.iter().any(|found| found.alone) {
        return read_objects(text, full, true).0;
    }
    found
}

/// The objects of a text, and whether it ends in reasoning; `unmarked` when marks of that are text.
fn read_objects(text: &str, full: bool, unmarked: bool) -> (Vec<Found>, bool) {
    struct Objects<'a>(Vec<Found>, &'a str, bool);
    impl JsonSink for Objects<'_> {
        fn event(&mut self, event: JsonEvent<'_>) {
            match event {
                JsonEvent::ThoughtStart(_) => self.2 = true,
                JsonEvent::ThoughtEnd(..) => self.2 = false,
                JsonEvent::ValueStart(start) => {
                    let before = &self.1[..start.place.offset];
                    let line = before.rfind('\n').map_or(before, |at| &before[at + 1..]).trim_end();
                    // A mark of reasoning or a fence ends what stood before it.
                    let alone = line.trim().is_empty() || line.ends_with(['>', ']', '▷', '`', '~']);
                    let alone = alone || start.origin != Origin::Bare;
                    self.0.push(Found { keys: Vec::new(), alone, complete: false });
                }
                JsonEvent::Key { text, depth: 1, .. } => {
                    if let Some(found) = self.0.last_mut() {
                        found.keys.push(text.to_owned());
                    }
                }
                JsonEvent::ValueEnd(end) => {
                    if let Some(found) = self.0.last_mut() {
                        found.complete = !end.closed_by_us;
                    }
                }
                _ => {}
            }
        }
        fn report(&mut self, _: Report) {}
    }
    let mut objects = Objects(Vec::new(), text, false);
    let mut reader = json::Reader::chat(&Limits::default()).seeking(KEYS);
    if unmarked {
        reader = reader.without_thoughts();
    }
    reader.push(text, &mut objects);
    if full {
        reader.finish(&mut objects);
    }
    (objects.0, objects.2)
}

/// The text without its HTML comments; one that may still end is left out with what follows.
fn uncommented(text: &str, full: bool) -> Cow<'_, str> {
    let mut kept = Cow::Borrowed("");
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        let Some((_, after)) = comment.split_once("-->") else {
            rest = if full { rest } else { before };
            break;
        };
        kept += before;
        rest = after;
    }
    kept + rest
}

/// Whether an `event` field or line names an event (J-050), or a `type` field one of the contract (R-76).
fn event_named(text: &str) -> bool {
    let contract = |name: &str| kind_of(name) == Some(EventKind::Contract);
    named_by("event", true, text, |name| kind_of(name).is_some()) || named_by("type", false, text, contract)
}

/// Whether a field called `field`, or a line where `lines` may do it, gives a name that is one.
fn named_by(field: &str, lines: bool, text: &str, is_name: impl Fn(&str) -> bool) -> bool {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '“' | '”' | '`' | '\\') || c.is_whitespace();
    text.match_indices(field).any(|(at, word)| {
        let before = text[..at].trim_end_matches(is_quote).chars().next_back();
        let after = text[at + word.len()..].trim_start_matches(is_quote);
        let Some(value) = after.strip_prefix([':', '：']) else { return false };
        let value = value.trim_start_matches(is_quote);
        let name = value.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
        // An unfinished name may still grow.
        let complete = name.len() < value.len();
        let in_object = matches!(before, Some('{' | ',' | '｛' | '，'));
        let line = text[..at].rfind('\n').map_or(&text[..at], |start| &text[start + 1..at]);
        // In a sentence it decides nothing (R-74).
        let alone = line.trim_start().starts_with(['{', '[', ',', '"', '｛', '，', '`', '~', '<', '◁'])
            || line.trim_start().starts_with("data:");
        complete && (in_object && alone || lines && line.is_empty()) && is_name(name)
    })
}

/// What the tags tell.
fn markup(text: &str, full: bool) -> Seen {
    let mut lexer = Markup::new(super::MARKER, 1 << 10).with_reasoning();
    let mut tags = Tags { led: true, alone: true, ..Tags::default() };
    lexer.push(text, &mut |token, _| tags.see(token));
    if full {
        lexer.finish(&mut |token, _| tags.see(token));
        let answered = tags.thinking && tags.open.is_some() && tags.ended;
        if tags.verdict.is_none() && (tags.began && !tags.led || answered) {
            tags.verdict = Some(Verdict::Dialect("thinkingml"));
        }
    }
    Seen { verdict: tags.verdict.unwrap_or(Verdict::Unknown), closed: tags.just_closed }
}

/// What the tags of a beginning tell so far.
#[derive(Default)]
struct Tags {
    verdict: Option<Verdict>,
    /// Reasoning that is open.
    open: Option<Open>,
    /// Whether `<thinking>` has come, and whether it stood alone.
    thinking: bool,
    began: bool,
    /// Whether a `<thinking>` in a sentence of a draft came last, which a phase makes the end of the draft (T-016).
    nested: bool,
    /// Whether a `<final>` in a sentence of thinking has come, and has ended: the answer, if no other one comes (R-06).
    mentioned: bool,
    ended: bool,
    /// Whether nothing but reasoning has come.
    led: bool,
    /// Whether reasoning has closed, and whether that came last.
    closed: bool,
    just_closed: bool,
    /// Whether no text stands before this place on its line: a tag in a sentence is a mention (R-74).
    alone: bool,
    /// Whether a code span opens directly before this place: what it quotes begins nothing.
    quoted: bool,
}

impl Tags {
    fn see(&mut self, token: Token<'_>) {
        if self.verdict.is_some() {
            return;
        }
        let quotes = matches!(token, Token::Text(text) if text.ends_with('`') && !text.ends_with("```"));
        let in_code = std::mem::replace(&mut self.quoted, quotes);
        match token {
            Token::Tag(tag) if in_code || tag.kind == TagKind::SelfClosing => {}
            Token::Tag(tag) => self.tag(&tag),
            Token::Reasoning(_, mark) => self.mark(mark),
            Token::Text(text) if is_blank(text) => self.alone |= text.contains('\n'),
            Token::Mark(_) => {}
            Token::Text(text) => self.text(text),
            Token::CommentOpen | Token::CommentClose => self.text(token.raw()),
        }
    }

    fn tag(&mut self, tag: &Tag<'_>) {
        let name = tag.name.to_ascii_lowercase();
        let opening = tag.kind == TagKind::Open;
        let in_draft = self.open.is_some_and(|open| !open.mark().is_thinking());
        match (name.as_str(), opening) {
            ("phase", true) if self.thinking || self.nested => {
                self.verdict = Some(Verdict::Dialect("thinkingml"))
            }
            ("serp", true) if self.open.is_none() && self.alone => {
                self.verdict = Some(Verdict::Dialect("thinkingml"));
            }
            ("final", true) if !in_draft && self.alone => self.verdict = Some(Verdict::Dialect("thinkingml")),
            ("final", true) if !in_draft && self.thinking => self.mentioned = true,
            ("final", false) if self.mentioned => self.ended = true,
            ("thinking", true) if self.open.is_none() => {
                self.thinking = true;
                self.began |= self.alone;
            }
            // It ends a draft that is not closed, if a phase follows (T-016).
            ("thinking", true) if in_draft && self.alone => {
                self.thinking = true;
                self.mark(marks::THINKING);
            }
            _ => {
                self.nested = name == "thinking" && opening && in_draft;
                if let Some(mark) = marks::of_tag(tag.name, !opening) {
                    self.mark(mark);
                }
            }
        }
    }

    /// A mark of reasoning.
    fn mark(&mut self, mark: Mark) {
        let Some(open) = &mut self.open else {
            if mark.kind == Kind::Open && self.led && !self.thinking {
                self.open = Some(Open::new(mark));
            }
            return;
        };
        if open.see(mark) != Effect::Text {
            self.open = None;
            (self.closed, self.just_closed, self.alone) = (true, true, true);
        }
    }

    fn text(&mut self, text: &str) {
        self.alone = text.rfind('\n').is_some_and(|at| is_blank(&text[at..]));
        (self.just_closed, self.nested) = (false, false);
        // Something other than a phase after a leading `<thinking>`: what follows its end will tell whether it is plain
        // reasoning or ThinkingML without phases.
        if self.thinking && self.led && self.open.is_none() && !self.closed {
            self.open = Some(Open::new(marks::THINKING));
        } else if self.closed && self.open.is_none() && !may_begin(text) {
            self.verdict = Some(Verdict::Plain);
        } else if self.open.is_none() && !self.closed {
            self.led = false;
        }
    }
}

/// Whether text after the reasoning may begin a fence or JSON.
fn may_begin(text: &str) -> bool {
    matches!(text.trim_start().chars().next(), Some('`' | '~' | '{' | '｛' | 'e'))
}
