//! JSON objects at the beginning of a reply, and the dialect that their keys identify.

use std::sync::LazyLock;

use super::wrapped::{self, Items};
use super::{Extent, Needed, Opening, Shape, document};
use crate::dialect::{DIALECTS, Entry};
use crate::finding::Report;
use crate::lex::fence::{self, Fence};
use crate::limits::Limits;
use crate::repair::json::{self, JsonEvent, JsonSink, Origin};

/// Keys of all dialects.
static KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let needed = DIALECTS.iter().flat_map(|entry| entry.opening.keys);
    needed.flat_map(|key| key.names).copied().collect()
});

/// Keys of a dialect that an object needs to be recognised when it extends beyond the window.
const LEAST: usize = 2;

/// Bracket depth of the keys of an object in a list under a key.
const ITEM: usize = 3;

/// Longest text that may be a name, in bytes.
const NAME: usize = 64;

/// Evidence from the objects at the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    /// An object has begun whose later keys may decide.
    Perhaps,
    Dialect(&'static str),
}

/// Finds the dialect whose object begins in the text and stands alone on its lines or in its fence.
pub(super) fn dialect_of(text: &str, extent: Extent) -> Told {
    let mut told = Told::Nothing;
    for found in objects(text, extent) {
        match DIALECTS.iter().map(|entry| found.tells(entry, text, extent)).max_by_key(rank) {
            Some(dialect @ Told::Dialect(_)) => return dialect,
            Some(Told::Perhaps) => told = Told::Perhaps,
            _ => {}
        }
    }
    told
}

fn rank(told: &Told) -> u8 {
    match told {
        Told::Nothing => 0,
        Told::Perhaps => 1,
        Told::Dialect(_) => 2,
    }
}

/// A JSON object, possibly incomplete.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) keys: Vec<Key>,
    /// Set if only a fence precedes the object in the reply.
    pub(super) first: bool,
    /// The list under its first key.
    pub(super) items: Option<Items>,
    /// Set if only white space precedes the object on its line, or a fence surrounds it.
    alone: bool,
    /// Set if a fence surrounds the object.
    fenced: bool,
    /// Set if the object is an item of a list.
    listed: bool,
    /// Offset after the object, once it is complete.
    pub(super) end: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) value: Option<Shape>,
    /// A text value that may be a name, once it is complete.
    pub(super) text: Option<String>,
}

impl Found {
    /// Returns the evidence for one dialect.
    fn tells(&self, entry: &Entry, text: &str, extent: Extent) -> Told {
        let Opening { keys, listed, .. } = entry.opening;
        if keys.is_empty() || !self.alone || self.listed && !listed {
            return Told::Nothing;
        }
        if let Some(told) = wrapped::tells(self, entry, text, extent) {
            return told;
        }
        let key = |needed: &Needed| self.keys.iter().find(|key| needed.is(key));
        let fits = keys.iter().all(|needed| key(needed).is_none_or(|key| needed.fits(key)));
        let all = keys.iter().all(|needed| key(needed).is_some_and(|key| needed.holds(key)));
        let known = keys.iter().filter(|needed| key(needed).is_some()).count();
        let foreign = self.keys.len() > known;
        if !fits {
            return Told::Nothing;
        }
        let Some(end) = self.end else {
            // Keys in the usual order decide at once.
            let first = self.keys.iter().zip(keys).take_while(|(key, needed)| needed.is(key)).count();
            let ordered = first >= LEAST && first == self.keys.len();
            let told = match extent {
                Extent::Part if all || !foreign => Told::Perhaps,
                Extent::Window | Extent::All if all || ordered => Told::Dialect(entry.name),
                Extent::All if known >= LEAST && !foreign => Told::Dialect(entry.name),
                // Other objects may have such keys too: the next keys decide.
                Extent::Window if !foreign && (known >= LEAST || key(&keys[0]).is_some()) => Told::Perhaps,
                _ => Told::Nothing,
            };
            // The text after the fence decides whether the object is an example.
            let waits = self.fenced && !self.first && extent != Extent::All;
            return if waits && told != Told::Nothing { Told::Perhaps } else { told };
        };
        let behind = text[end..].trim_start_matches([' ', '\t', '\r']);
        match behind.chars().next() {
            _ if !all => Told::Nothing,
            // It may be an example in the text before it: the text after the fence decides.
            _ if self.fenced && !self.first && extent != Extent::All => Told::Perhaps,
            _ if self.fenced && !self.first && !ends_fence(&text[end..]) => Told::Nothing,
            Some(',') if extent == Extent::Part && behind[1..].trim().is_empty() => Told::Perhaps,
            Some(',') if behind[1..].trim_start_matches([' ', '\t']).starts_with(char::is_alphanumeric) => {
                Told::Nothing
            }
            None if extent == Extent::Part && !self.listed => Told::Perhaps,
            // A sentence continues after the object.
            Some(c) if c.is_alphanumeric() || SENTENCE.contains(&c) => Told::Nothing,
            _ => Told::Dialect(entry.name),
        }
    }
}

/// Returns whether nothing follows the fence that is open at the beginning of a text.
fn ends_fence(text: &str) -> bool {
    let mut lines = text.split('\n');
    let closed =
        lines.by_ref().any(|line| Fence::of(line.trim()).is_some_and(|(_, rest)| rest.trim().is_empty()));
    !closed || lines.all(|line| line.trim().is_empty())
}

/// Characters that continue or end a sentence after an object.
const SENTENCE: &[char] =
    &['.', ';', ':', ')', '?', '!', '(', '。', '，', '；', '：', '）', '？', '！', '、'];

impl Needed {
    /// Returns whether a key has one of the accepted names.
    pub(super) fn is(&self, key: &Key) -> bool {
        self.names.contains(&key.name.as_str())
    }

    /// Returns whether nothing of a key contradicts the requirement so far.
    fn fits(&self, key: &Key) -> bool {
        key.value.is_none_or(|value| self.values.contains(&value))
            && match (self.named, &key.text) {
                (Some(named), Some(text)) => named(text),
                _ => true,
            }
    }

    /// Returns whether a key satisfies the requirement.
    fn holds(&self, key: &Key) -> bool {
        key.value.is_some() && self.fits(key) && (self.named.is_none() || key.text.is_some())
    }
}

fn objects(text: &str, extent: Extent) -> Vec<Found> {
    let (found, thinking) = read_objects(text, extent, false);
    // The object may be in reasoning that is never closed.
    if thinking && extent != Extent::Part && !found.iter().any(|found| found.alone) {
        return read_objects(text, extent, true).0;
    }
    found
}

/// Reads the objects of a text, and returns whether it ends in reasoning; with `unmarked`, reasoning marks
/// are text.
fn read_objects(text: &str, extent: Extent, unmarked: bool) -> (Vec<Found>, bool) {
    let mut objects =
        Objects { text, found: Vec::new(), thinking: false, thought: 0, depth: 0, base: 1, naming: None };
    let mut reader = json::Reader::chat(&Limits::default()).seeking(&KEYS);
    if unmarked {
        reader = reader.without_thoughts();
    }
    reader.push(text, &mut objects);
    if extent != Extent::Part {
        reader.finish(&mut objects);
    }
    (objects.found, objects.thinking)
}

struct Objects<'a> {
    text: &'a str,
    found: Vec<Found>,
    thinking: bool,
    /// Offset after the last mark that ended reasoning.
    thought: usize,
    /// Open brackets, and the number of them around the keys of the object.
    depth: usize,
    base: usize,
    /// Current text that may be a name.
    naming: Option<String>,
}

impl JsonSink for Objects<'_> {
    fn event(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::ThoughtStart(_) => self.thinking = true,
            JsonEvent::ThoughtEnd(mark, _) => {
                self.thinking = false;
                self.thought = mark.place.offset + mark.text.len();
            }
            JsonEvent::ValueStart(start) => {
                let before = &self.text[..start.place.offset];
                let alone = match start.origin {
                    Origin::Bare => {
                        let line = before.rfind('\n').map_or(0, |at| at + 1).max(self.thought);
                        before[line..].trim().is_empty()
                    }
                    _ => is_data(before),
                };
                let alone = alone && !document(&before[self.thought..]);
                let first = self.found.is_empty() && wrapped::begins(&before[self.thought..]);
                (self.depth, self.base) = (0, 1);
                let fenced = start.origin != Origin::Bare;
                self.found.push(Found { alone, first, fenced, ..Found::default() });
            }
            JsonEvent::ObjectStart => {
                self.value(Shape::Object);
                self.item(|items| {
                    items.keys.push(Vec::new());
                    items.inside = true;
                });
                self.depth += 1;
            }
            JsonEvent::ArrayStart => {
                self.value(Shape::List);
                if self.depth == 0 {
                    self.base = 2;
                    self.object(|found| found.listed = true);
                } else if self.depth == 1 && self.base == 1 {
                    self.object(|found| {
                        if found.keys.len() == 1 {
                            found.items = Some(Items::begin());
                        }
                    });
                }
                self.depth += 1;
            }
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                self.depth = self.depth.saturating_sub(1);
                self.item(|items| items.inside = false);
                if self.base == 1 && self.depth == 1 {
                    self.object(|found| {
                        found.items.as_mut().into_iter().for_each(|items| items.open = false);
                    });
                }
                if self.base == 2 && self.depth == 1 {
                    // Only the first object of a list counts.
                    let end = self.text.len();
                    self.object(|found| found.end = Some(end));
                }
            }
            JsonEvent::Key { text, depth, .. } if depth == self.base => {
                let key = Key { name: text.to_owned(), value: None, text: None };
                self.object(|found| found.keys.push(key));
            }
            JsonEvent::Key { text, depth, .. } if depth == ITEM && self.base == 1 => {
                let key = Key { name: text.to_owned(), value: None, text: None };
                if let Some(keys) = self.items().and_then(|items| items.keys.last_mut()) {
                    keys.push(key);
                }
            }
            JsonEvent::StringStart => {
                self.value(Shape::Text);
                self.naming = self.key().is_some().then(String::new);
            }
            JsonEvent::StringDelta(text) => {
                if let Some(name) = self.naming.as_mut().filter(|name| name.len() < NAME) {
                    name.push_str(text);
                }
            }
            JsonEvent::StringEnd => {
                if let Some(name) = self.naming.take()
                    && let Some(key) = self.key()
                {
                    key.text.get_or_insert(name);
                }
            }
            JsonEvent::Bool(_) => self.value(Shape::Bool),
            JsonEvent::Null => self.value(Shape::Null),
            JsonEvent::Number(_) | JsonEvent::Digits(_) => self.value(Shape::Number),
            JsonEvent::ValueEnd(end) if !end.closed_by_us => {
                self.object(|found| found.end = Some(end.offset));
            }
            _ => {}
        }
    }

    fn report(&mut self, _: Report) {}
}

impl Objects<'_> {
    /// Changes the current object, unless it has ended.
    fn object(&mut self, change: impl FnOnce(&mut Found)) {
        if let Some(found) = self.found.last_mut().filter(|found| found.end.is_none()) {
            change(found);
        }
    }

    /// Records the shape of a value for the current key, if the value is its own.
    fn value(&mut self, shape: Shape) {
        if let Some(key) = self.key() {
            key.value.get_or_insert(shape);
        }
        if shape != Shape::Object {
            self.item(|items| items.others = true);
        }
    }

    /// Returns the current key if a value here belongs to it.
    fn key(&mut self) -> Option<&mut Key> {
        if self.depth == self.base {
            return self.found.last_mut().and_then(|found| found.keys.last_mut());
        }
        let here = self.depth == ITEM && self.base == 1;
        self.items().filter(|_| here)?.keys.last_mut()?.last_mut()
    }

    /// Returns the list under the first key of the object, while it is open.
    fn items(&mut self) -> Option<&mut Items> {
        self.found.last_mut().and_then(|found| found.items.as_mut()).filter(|items| items.open)
    }

    /// Changes that list, if the current value is an item of it.
    fn item(&mut self, change: impl FnOnce(&mut Items)) {
        if self.depth + 1 == ITEM
            && self.base == 1
            && let Some(items) = self.items()
        {
            change(items);
        }
    }
}

/// Returns whether the fence open at the end of a text is for JSON; content in other languages is code
///
fn is_data(before: &str) -> bool {
    let opened = before.rsplit('\n').find_map(|line| Fence::of(line.trim_start()));
    opened.is_none_or(|(_, info)| {
        let language = info.split(|c: char| c.is_whitespace() || c == '{').next().unwrap_or_default();
        language.is_empty() || fence::is_json(language)
    })
}
